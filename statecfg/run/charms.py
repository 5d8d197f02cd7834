"""Charms: directories with a service's hooks, read on this machine: what is in them, and whether they can be used."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from statecfg.playbook import service_options
from statecfg.playbook.service_options import Option
from statecfg.playbook.services import RELATION
from statecfg.playbook.trust import others_could_change, together
from statecfg.problems import InvalidInput, Problem, nearest, problem, report, reporting
from statecfg.problems.positions import SourceLocation
from statecfg.remote.graph.values import kind_of
from statecfg.remote.units.hooks import DISPATCH

LINK = 0o120000  # the mode that stands for a symbolic link
MAX_BYTES = 64 * 1024 * 1024
MAX_FILES = 10_000
MAX_PATH = 1024  # bytes
METADATA, CONFIG = "metadata.yaml", "config.yaml"
KINDS = ("provides", "requires", "peers")
# What every unit offers without saying so, as in juju.
IMPLICIT = {"juju-info": ("provides", "juju-info")}
LIFECYCLE = ("install", "config-changed", "start", "stop", "upgrade-charm", "upgrade")
EVENTS = ("joined", "changed", "departed", "broken")
# Hooks that juju has and that never run here: a charm may bring them.
ELSEWHERE = ("update-status", "leader-elected", "leader-settings-changed", "collect-metrics", "remove")
# Files in what charms are built from, which has no hooks of its own yet.
SOURCES = ("src/charm.py", "layer.yaml", "charmcraft.yaml")
SKIPPED = (".git", ".hg", ".bzr", ".svn", "__pycache__")
PLAIN = re.compile(r"[a-z][a-z0-9_-]*\Z")


@dataclass(frozen=True)
class Charm:
    """A charm.

    :param name: as its metadata.yaml says, or its directory's name
    :param digest: SHA-256 in hex over names, modes and contents
    :param files: path inside the charm → (0o755 or 0o644, the file here), or (`LINK`, what the link holds)
    :param endpoints: relation → (provides, requires or peers; interface); empty where nothing says
    :param options: those of its config.yaml, by name
    :param hooks: names of the files that are hooks, sorted
    :param contents: SHA-256 in hex of what each file holds, but for links
    :param described: it has a metadata.yaml, so `endpoints` are all that there are
    """

    name: str
    digest: str
    files: Mapping[str, tuple[int, Path | str]] = field(repr=False)
    endpoints: Mapping[str, tuple[str, str]]
    options: Mapping[str, Option]
    hooks: tuple[str, ...]
    described: bool = False
    contents: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def related(self) -> dict[str, tuple[str, str]]:
        """Return all relations that there are, as `endpoints` has them; empty where nothing says which."""
        return {**IMPLICIT, **self.endpoints} if self.described else {}

    def content(self, name: str) -> bytes:
        """Return what a file holds. Raises InvalidInput where that is not what the charm's digest was made of."""
        path = self.files[name][1]
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise InvalidInput([problem("SC0703", f"{path}: {error.strerror}", "check the file")]) from None
        if hashlib.sha256(data).hexdigest() != self.contents[name]:
            raise InvalidInput([problem("SC0703", f"{path} has changed during the run", "run it again")])
        return data


def read(directory: Path, *places: SourceLocation) -> Charm | None:
    """Return the charm in a directory; None where there is none, or it can't be used, which is reported.

    :param directory: an absolute path; it has `hooks/`, or holds the programs that `hooks/` would hold
    :param places: where the charm is asked for
    """
    try:
        return _read(directory, places)
    except OSError as error:
        report(problem("SC0703", f"{error.filename or directory}: {error.strerror}", "check the file", *places))
        return None


def _read(directory: Path, places: tuple[SourceLocation, ...]) -> Charm | None:
    if not directory.is_dir():
        report(problem("SC0703", f"there is no directory {directory}", "name the directory that has hooks/", *places))
        return None
    wrong = [found for path in (directory.parent, directory) if (found := others_could_change(path)) is not None]
    bare = not any((directory / name).exists() for name in ("hooks", DISPATCH, *SOURCES))
    files = _Files(directory, bare)
    for _ in files.walk(directory):
        if files.size > MAX_BYTES or len(files.files) > MAX_FILES:
            detail = f"{directory} holds {files.size:,} bytes in {len(files.files):,} files, and perhaps more"
            report(problem("SC0704", detail, "keep packages and images elsewhere", *places))
            return None
    wrong += files.open_to_others
    if wrong:
        report(together(wrong))
        return None
    metadata = _map(directory / METADATA)
    endpoints = _endpoints(metadata, directory / METADATA)
    hooks = files.hooks(endpoints if metadata is not None else None)
    sources = [name for name in SOURCES if name in files.files]
    nothing = not hooks and not files.misspelt and DISPATCH not in files.files
    if nothing and sources:
        detail = f"{directory} has {sources[0]} and no hook: it is what a charm is built from"
        report(problem("SC0703", detail, "build it, and name the directory that came out", *places))
    elif nothing and metadata is None:
        hint = f"put programs called {', '.join(LIFECYCLE[:4])} into its hooks/"
        report(problem("SC0703", f"nothing in {directory} is a hook", hint, *places))
    name = (metadata or {}).get("name")
    options = _options(directory / CONFIG)
    title = name if isinstance(name, str) and name else directory.name
    contents = {name: _digest(path) for name, (_, path) in files.files.items() if isinstance(path, Path)}
    return Charm(
        title,
        files.digest(contents),
        MappingProxyType(files.files),
        endpoints,
        options,
        hooks,
        metadata is not None,
        contents,
    )


class _Files:
    """The files of a charm, gathered; what is wrong with them is reported."""

    def __init__(self, directory: Path, bare: bool) -> None:
        self.directory, self.bare = directory, bare
        self.files: dict[str, tuple[int, Path | str]] = {}
        self.size = 0
        self.misspelt = False
        self.open_to_others: list[Problem] = []

    def walk(self, folder: Path) -> Iterator[None]:
        """Gather what lies in a folder, a file at a time."""
        for path in sorted(folder.iterdir()):
            if path.name in SKIPPED:
                continue
            inside = str(path.relative_to(self.directory))
            name = f"hooks/{inside}" if self.bare and inside not in (METADATA, CONFIG) else inside
            if not self._nameable(name, path):
                continue
            if path.is_symlink():
                self._link(name, path)
            elif (others := others_could_change(path)) is not None:
                self.open_to_others.append(others)
            elif path.is_dir():
                yield from self.walk(path)
            elif stat.S_ISREG((status := path.stat()).st_mode):
                self.size += status.st_size
                self.files[name] = (0o755 if status.st_mode & 0o111 else 0o644, path)
            else:
                report(problem("SC0703", f"{path} is no file", "a charm holds files, links to them, and directories"))
            yield

    def _nameable(self, name: str, path: Path) -> bool:
        right = name.isprintable() and len(os.fsencode(name)) <= MAX_PATH
        if not right:
            rule = f"use printable UTF-8, at most {MAX_PATH} bytes"
            report(problem("SC0703", f"{ascii(str(path))[1:-1][:200]} can't be the name of a file there", rule))
        return right

    def _link(self, name: str, path: Path) -> None:
        text = os.readlink(path)
        target = os.path.realpath(path)
        root = os.path.realpath(self.directory)
        if os.path.isabs(text) or os.path.commonpath((root, target)) != root or not os.path.exists(target):
            detail = f"{path} links to {text}, which is {'outside the charm' if os.path.exists(target) else 'missing'}"
            report(
                problem("SC0703", detail, "link, by a relative path, to what lies inside", SourceLocation(str(path), 0))
            )
        else:
            self.files[name] = (LINK, text)

    def hooks(self, endpoints: Mapping[str, Any] | None) -> tuple[str, ...]:
        """Return the names of the hooks; report those that can't be executed, and those that are misspelt.

        :param endpoints: relations that the charm has; None where nothing says
        """
        found = []
        for inside in sorted(self.files):
            name = inside.removeprefix("hooks/")
            if inside == name or "/" in name:
                continue
            self._misspelt(name, endpoints)
            if not is_hook(name):
                continue
            found.append(name)
            self._check_executable(inside)
        if DISPATCH in self.files:
            self._check_executable(DISPATCH)
        return tuple(found)

    def _check_executable(self, inside: str) -> None:
        if not self._executable(inside):
            path = self._here(inside)
            report(problem("SC0705", f"{path} is not executable", f"chmod a+x {path}", SourceLocation(str(path), 0)))

    def _here(self, inside: str) -> Path:
        return self.directory / (inside.removeprefix("hooks/") if self.bare else inside)

    def _executable(self, inside: str) -> bool:
        status = self._here(inside).stat()
        return stat.S_ISREG(status.st_mode) and bool(status.st_mode & 0o111)

    def _misspelt(self, name: str, endpoints: Mapping[str, Any] | None) -> None:
        meant = _meant(name, endpoints)
        if meant is not None:
            self.misspelt = True
            place = SourceLocation(str(self._here(f"hooks/{name}")), 0)
            report(problem("SC0706", f"there is no hook {name}", f"did you mean `{meant}`?", place))

    def digest(self, contents: Mapping[str, str]) -> str:
        """Return the SHA-256 over names, modes and the digests of contents, or what links hold."""
        whole = hashlib.sha256()
        for name, (mode, source) in sorted(self.files.items()):
            whole.update(f"{name}\0{mode:o}\0{contents.get(name, source)}\0".encode())
        return whole.hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def is_hook(name: str) -> bool:
    """Return whether a file of this name in `hooks/` runs at some time."""
    relation, _, event = name.rpartition("-relation-")
    return name in LIFECYCLE or (event in EVENTS and bool(RELATION.match(relation)))


def _meant(name: str, endpoints: Mapping[str, Any] | None) -> str | None:
    """Return the name of the hook that a file's name is a slip of; None where it is right, or no hook's at all."""
    relation, _, event = name.rpartition("-relation-")
    if not PLAIN.match(name) or name in LIFECYCLE or name in ELSEWHERE:
        return None
    if is_hook(name):
        known = () if endpoints is None or relation in endpoints or relation in IMPLICIT else (*endpoints, *IMPLICIT)
        # Charms keep hooks of relations that they have no longer, and these may be called much like others.
        near = nearest(relation, known, 1, 1)
        return f"{near[0]}-relation-{event}" if near else None
    hooks = [f"{each}-relation-{event}" for each in endpoints or () for event in EVENTS]
    if name.count("-") > 1:
        hooks += [f"{name.rsplit('-', 2)[0]}-relation-{event}" for event in EVENTS]
    near = nearest(name, [*LIFECYCLE, *hooks], 1 if len(name) < 8 else 2, 1)
    return near[0] if near else None


def _map(path: Path) -> dict[str, Any] | None:
    """Return what a YAML file of the charm holds; None where it is not there, or is no map, which is reported."""
    if not path.is_file():
        return None
    from statecfg.dialects import yaml_text

    found: Any = None
    with reporting():
        found = yaml_text.foreign(path)
    if isinstance(found, dict):
        return found
    if found is not None:
        report(problem("SC0703", f"{path} is {kind_of(found)}", "it must be a map", SourceLocation(str(path), 1)))
    return {}


def _endpoints(metadata: Mapping[str, Any] | None, path: Path) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for kind in KINDS:
        given = (metadata or {}).get(kind) or {}
        if not isinstance(given, dict):
            report(problem("SC0703", f"`{kind}:` is {kind_of(given)}", "it must be a map", _line(path, kind)))
            continue
        for name, parts in given.items():
            interface = parts.get("interface") if isinstance(parts, dict) else parts
            if not isinstance(name, str) or not RELATION.match(name) or not isinstance(interface, str):
                example = f"write {kind}: {{db: {{interface: mysql}}}}"
                report(problem("SC0703", f"`{name}` of `{kind}:` is no relation", example, _line(path, str(name))))
            elif name in found:
                detail = f"`{name}` stands in `{found[name][0]}:` and in `{kind}:`"
                report(problem("SC0703", detail, "rename one", _line(path, name)))
            else:
                found[name] = (kind, interface)
    return found


def _options(path: Path) -> dict[str, Option]:
    given = (_map(path) or {}).get("options") or {}
    if not isinstance(given, dict):
        report(problem("SC0707", f"`options:` is {kind_of(given)}", "it must be a map", _line(path, "options")))
        return {}
    return service_options.read(given, lambda name: _line(path, name), lenient=True)


def _line(path: Path, key: str) -> SourceLocation:
    """Return the first line of a YAML file in which a key seems to stand."""
    pattern = re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*:""")
    lines = path.read_text("utf-8", "replace").splitlines()
    return SourceLocation(str(path), next((number for number, line in enumerate(lines, 1) if pattern.match(line)), 1))
