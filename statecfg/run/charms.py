"""Charms: reads and checks the directories with the hooks of services, on the controller."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from statecfg.playbook import service_options
from statecfg.playbook.service_options import ServiceOption
from statecfg.playbook.services import RELATION
from statecfg.playbook.trust import others_could_change, together
from statecfg.problems import InvalidInput, Problem, nearest, problem, report, reporting
from statecfg.problems.frozen import dataclass
from statecfg.problems.positions import SourceLocation
from statecfg.remote.graph.suggestions import question
from statecfg.remote.graph.wrong_values import type_words
from statecfg.remote.units.hooks import DISPATCH

LINK = 0o120000  # the mode of a symbolic link
MAX_BYTES = 64 * 1024 * 1024
MAX_FILES = 10_000
MAX_PATH = 1024  # bytes
METADATA, CONFIG = "metadata.yaml", "config.yaml"
ROLES = ("provides", "requires", "peers")
# The relations that every unit offers without declaring them, as in juju.
IMPLICIT = {"juju-info": ("provides", "juju-info")}
LIFECYCLE = ("install", "config-changed", "start", "stop", "upgrade-charm", "upgrade")
EVENTS = ("joined", "changed", "departed", "broken")
# Hooks of juju that statecfg never runs. A charm may contain them.
ELSEWHERE = ("update-status", "leader-elected", "leader-settings-changed", "collect-metrics", "remove")
# Files that show that a directory is the source of a charm, which has no hooks before it is built.
SOURCES = ("src/charm.py", "layer.yaml", "charmcraft.yaml")
SKIPPED = (".git", ".hg", ".bzr", ".svn", "__pycache__")
PLAIN = re.compile(r"[a-z][a-z0-9_-]*\Z")


@dataclass(frozen=True)
class Charm:
    """A charm.

    :param name: the name in its metadata.yaml, otherwise the name of its directory
    :param digest: SHA-256 in hex of names, modes and contents
    :param files: path inside the charm → (0o755 or 0o644, the file on the controller), or (`LINK`, the link's text)
    :param endpoints: relation → (provides, requires or peers; interface); empty without a metadata.yaml
    :param options: the options in its config.yaml, by name
    :param hooks: names of the files that are hooks, sorted
    :param described: whether it has a metadata.yaml, so that `endpoints` is complete
    :param contents: file → SHA-256 in hex of its content, without links
    """

    name: str
    digest: str
    files: Mapping[str, tuple[int, Path | str]] = field(repr=False)
    endpoints: Mapping[str, tuple[str, str]]
    options: Mapping[str, ServiceOption]
    hooks: tuple[str, ...]
    described: bool = False
    contents: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def related(self) -> dict[str, tuple[str, str]]:
        """All relations including the implicit ones, in the form of `endpoints`; empty without a metadata.yaml."""
        return {**IMPLICIT, **self.endpoints} if self.described else {}

    def content(self, name: str) -> bytes:
        """Return the content of a file.

        :param name: its path inside the charm
        :raises InvalidInput: if the file can't be read, or changed after the charm's digest was computed
        """
        path = self.files[name][1]
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise InvalidInput([problem("SC0703", f"{path}: {error.strerror}", "check the file")]) from None
        if hashlib.sha256(data).hexdigest() != self.contents[name]:
            raise InvalidInput([problem("SC0703", f"{path} has changed during the run", "run it again")])
        return data


def read(directory: Path, *locations: SourceLocation) -> Charm | None:
    """Return the charm in a directory; report the problem and return None if there is no usable one.

    :param directory: an absolute path; the directory contains `hooks/`, or the hooks themselves
    :param locations: source locations that use the charm
    """
    try:
        return _read(directory, locations)
    except OSError as error:
        report(problem("SC0703", f"{error.filename or directory}: {error.strerror}", "check the file", *locations))
        return None


def _read(directory: Path, locations: tuple[SourceLocation, ...]) -> Charm | None:
    if not directory.is_dir():
        report(
            problem("SC0703", f"directory {directory} does not exist", "name the directory that has hooks/", *locations)
        )
        return None
    wrong = [unsafe for path in (directory.parent, directory) if (unsafe := others_could_change(path)) is not None]
    bare = not any((directory / name).exists() for name in ("hooks", DISPATCH, *SOURCES))
    files = _CharmFiles(directory, bare)
    for _ in files.walk(directory):
        if files.size > MAX_BYTES or len(files.files) > MAX_FILES:
            detail = f"{directory} contains at least {files.size:,} bytes in {len(files.files):,} files"
            report(problem("SC0704", detail, "keep packages and images elsewhere", *locations))
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
        detail = f"{directory} has {sources[0]} but no hook: it contains the sources of a charm"
        report(problem("SC0703", detail, "build the charm, and name the resulting directory", *locations))
    elif nothing and metadata is None:
        hint = f"put programs called {', '.join(LIFECYCLE[:4])} into its hooks/"
        report(problem("SC0703", f"{directory} contains no hook", hint, *locations))
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


class _CharmFiles:
    """Collects the files of a charm and reports problems with them."""

    def __init__(self, directory: Path, bare: bool) -> None:
        self.directory, self.bare = directory, bare
        self.files: dict[str, tuple[int, Path | str]] = {}
        self.size = 0
        self.misspelt = False
        self.open_to_others: list[Problem] = []

    def walk(self, folder: Path) -> Iterator[None]:
        """Collect the content of a folder; yield after each file."""
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
                help = "a charm may contain regular files, links to them, and directories"
                report(problem("SC0703", f"{path} is not a regular file", help))
            yield

    def _nameable(self, name: str, path: Path) -> bool:
        right = name.isprintable() and len(os.fsencode(name)) <= MAX_PATH
        if not right:
            rule = f"use printable UTF-8, at most {MAX_PATH} bytes"
            report(problem("SC0703", f"{ascii(str(path))[1:-1][:200]} can't be the name of a file in a charm", rule))
        return right

    def _link(self, name: str, path: Path) -> None:
        text = os.readlink(path)
        target = os.path.realpath(path)
        root = os.path.realpath(self.directory)
        if os.path.isabs(text) or os.path.commonpath((root, target)) != root or not os.path.exists(target):
            detail = f"{path} links to {text}, which is {'outside the charm' if os.path.exists(target) else 'missing'}"
            report(
                problem(
                    "SC0703",
                    detail,
                    "link to a path inside the charm, and write it as a relative path",
                    SourceLocation(str(path), 0),
                )
            )
        else:
            self.files[name] = (LINK, text)

    def hooks(self, endpoints: Mapping[str, Any] | None) -> tuple[str, ...]:
        """Return the names of the hooks; report hooks that are not executable or misspelled.

        :param endpoints: the charm's relations, None if unknown
        """
        names = []
        for inside in sorted(self.files):
            name = inside.removeprefix("hooks/")
            if inside == name or "/" in name:
                continue
            self._misspelt(name, endpoints)
            if not is_hook(name):
                continue
            names.append(name)
            self._check_executable(inside)
        if DISPATCH in self.files:
            self._check_executable(DISPATCH)
        return tuple(names)

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
            location = SourceLocation(str(self._here(f"hooks/{name}")), 0)
            report(problem("SC0706", f"no hook is named {name}", question([meant]), location))

    def digest(self, contents: Mapping[str, str]) -> str:
        """Return the SHA-256 of names, modes, digests of contents, and targets of links.

        :param contents: file → SHA-256 of its content
        """
        whole = hashlib.sha256()
        for name, (mode, source) in sorted(self.files.items()):
            whole.update(f"{name}\0{mode:o}\0{contents.get(name, source)}\0".encode())
        return whole.hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def is_hook(name: str) -> bool:
    """Return whether statecfg runs a file with this name in `hooks/`."""
    relation, _, event = name.rpartition("-relation-")
    return name in LIFECYCLE or (event in EVENTS and bool(RELATION.match(relation)))


def _meant(name: str, endpoints: Mapping[str, Any] | None) -> str | None:
    """Return the hook whose name a file's name misspells; None if the name is correct or resembles no hook."""
    relation, _, event = name.rpartition("-relation-")
    if not PLAIN.match(name) or name in LIFECYCLE or name in ELSEWHERE:
        return None
    if is_hook(name):
        candidates = (
            () if endpoints is None or relation in endpoints or relation in IMPLICIT else (*endpoints, *IMPLICIT)
        )
        # Charms may keep hooks of relations that they no longer have, with names similar to those of others.
        near = nearest(relation, candidates, 1, 1)
        return f"{near[0]}-relation-{event}" if near else None
    hooks = [f"{endpoint}-relation-{event}" for endpoint in endpoints or () for event in EVENTS]
    if name.count("-") > 1:
        hooks += [f"{name.rsplit('-', 2)[0]}-relation-{event}" for event in EVENTS]
    near = nearest(name, [*LIFECYCLE, *hooks], 1 if len(name) < 8 else 2, 1)
    return near[0] if near else None


def _map(path: Path) -> Mapping[str, Any] | None:
    """Return the map in a YAML file of the charm; None if the file is missing, {} if it is invalid (reported)."""
    if not path.is_file():
        return None
    from statecfg.dialects import yaml_text

    document: Any = None
    with reporting():
        document = yaml_text.foreign(path)
    if isinstance(document, dict):
        return document
    if document is not None:
        report(problem("SC0703", f"{path} is {type_words(document)}", "it must be a map", SourceLocation(str(path), 1)))
    return {}


def _endpoints(metadata: Mapping[str, Any] | None, path: Path) -> dict[str, tuple[str, str]]:
    endpoints: dict[str, tuple[str, str]] = {}
    for role in ROLES:
        entries = (metadata or {}).get(role) or {}
        if not isinstance(entries, dict):
            report(problem("SC0703", f"`{role}:` is {type_words(entries)}", "it must be a map", _line(path, role)))
            continue
        for name, parts in entries.items():
            interface = parts.get("interface") if isinstance(parts, dict) else parts
            if not isinstance(name, str) or not RELATION.match(name) or not isinstance(interface, str):
                example = f"write {role}: {{db: {{interface: mysql}}}}"
                report(problem("SC0703", f"`{name}` of `{role}:` is not a relation", example, _line(path, str(name))))
            elif name in endpoints:
                detail = f"`{name}` is in `{endpoints[name][0]}:` and in `{role}:`"
                report(problem("SC0703", detail, "rename one", _line(path, name)))
            else:
                endpoints[name] = (role, interface)
    return endpoints


def _options(path: Path) -> dict[str, ServiceOption]:
    entries = (_map(path) or {}).get("options") or {}
    if not isinstance(entries, dict):
        report(problem("SC0707", f"`options:` is {type_words(entries)}", "it must be a map", _line(path, "options")))
        return {}
    return service_options.read(entries, lambda name: _line(path, name), lenient=True)


def _line(path: Path, key: str) -> SourceLocation:
    """Return the first line of a YAML file that seems to contain a key, otherwise line 1."""
    pattern = re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*:""")
    lines = path.read_text("utf-8", "replace").splitlines()
    return SourceLocation(str(path), next((number for number, line in enumerate(lines, 1) if pattern.match(line)), 1))
