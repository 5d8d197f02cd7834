"""The bundle: the executor and the node types as one content-addressed piece that a host keeps and starts from."""

from __future__ import annotations

import ast
import binascii
import hashlib
import json
import os
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import statecfg
from statecfg.problems import InvalidInput, problem
from statecfg.problems.positions import SourceLocation
from statecfg.remote import OLDEST
from statecfg.remote.graph.nodetype import REGISTRY

_PACKAGE = Path(__file__).parent.parent
_OURS = (_PACKAGE.resolve(), (_PACKAGE / "resources").resolve())
# Modules of the host's half that only the controller needs.
_STAYS = frozenset({"bootstrap", "memory", "values"})
# Tried in this order on a host; what is too old says so by exit status 96 and the next one is tried.
PYTHONS = ("python3", *(f"python3.{minor}" for minor in range(14, 7, -1)), "/usr/libexec/platform-python")
_LAUNCH = (
    'b=$1; shift; for p in "$@"; do command -v "$p" >/dev/null 2>&1 || continue; f="$f $p";'
    ' "$p" -I -S -X utf8 -c "$b"; r=$?; [ $r = 96 ] || exit $r; done;'
    ' echo "there is no Python 3.8 or newer on this host; looked for $*; found:${f:- none}" >&2; exit 96'
)


@dataclass(frozen=True)
class Bundle:
    """The executor as it is sent.

    :param data: module name → [is it a package, file name, source] as compressed JSON
    :param sha256: its digest, by which hosts keep it
    :param modules: node type → the module that defines it
    """

    data: bytes
    sha256: str
    modules: dict[str, str]


def build(types: Iterable[str]) -> Bundle:
    """Return the bundle with every node type written in Python, and of those written in Hy the ones named.

    The same sources give the same bytes. Raises InvalidInput where a type can't be sent.
    """
    wanted = {name: REGISTRY[name].module for name in sorted(types)}
    return _build(tuple(wanted.items()))


def modules_of(types: Iterable[str]) -> tuple[dict[str, tuple[bool, str, str]], dict[str, str]]:
    """Return what a host needs to undo nodes of types that are in no definition any more, as far as we have them.

    The first map is module name → [is it a package, file name, source], the second node type → module.
    """
    from statecfg import resources
    from statecfg.dialects.host_source import bundle_modules

    modules: dict[str, tuple[bool, str, str]] = {}
    found: dict[str, str] = {}
    for name in types:
        if name not in REGISTRY and name in resources.available():
            getattr(resources, name)
        if name in REGISTRY:
            found[name] = REGISTRY[name].module
            modules.update(bundle_modules(REGISTRY[name].module))
    return modules, found


@lru_cache(maxsize=16)
def _build(wanted: tuple[tuple[str, str], ...]) -> Bundle:
    modules: dict[str, tuple[bool, str, str]] = {"statecfg": (True, "statecfg/__init__.py", _public_names())}
    for path in sorted((_PACKAGE / "remote").rglob("*.py")):
        if path.stem not in _STAYS:
            inside = path.parent.relative_to(_PACKAGE)
            _add(modules, ".".join(("statecfg", *inside.parts)), path, f"statecfg/{inside.as_posix()}")
    modules["statecfg.resources"] = (True, "resources/__init__.py", "")
    for folder in _folders():
        for path in sorted(folder.glob("*.py")):
            if path.stem != "__init__":
                _add(modules, "statecfg.resources", path, "resources")
    for _, module in wanted:
        if module not in modules:
            from statecfg.dialects.host_source import bundle_modules

            modules.update(bundle_modules(module))
    text = json.dumps(modules, sort_keys=True, separators=(",", ":"))
    data = zlib.compress(text.encode(), 6)
    return Bundle(data, hashlib.sha256(data).hexdigest(), dict(wanted))


def _public_names() -> str:
    """Return the source of `statecfg` on hosts: of its names, those whose homes are there, imported when first used."""
    homes = sorted({**statecfg._HOMES, **statecfg._CALLED}.items())
    travel = {name: home for name, home in homes if home.startswith("statecfg.remote.")}
    kept = {name: home for name, home in travel.items() if home.rpartition(".")[2] not in _STAYS}
    return f"""from importlib import import_module
_HOMES = {kept!r}
def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError("statecfg has no %s on hosts" % name)
    return getattr(import_module(_HOMES[name]), name)
"""


def _folders() -> list[Path]:
    """Return the folders of node types: ours, then the project's."""
    from statecfg import resources

    return [Path(folder) for folder in resources.__path__]


def _add(modules: dict[str, tuple[bool, str, str]], package: str, path: Path, folder: str) -> None:
    name = package if path.stem == "__init__" else f"{package}.{path.stem}"
    text = path.read_text(encoding="utf-8")
    if not any(path.resolve().is_relative_to(place) for place in _OURS):
        _check_syntax(path, text)
    modules[name] = (path.stem == "__init__", f"{folder}/{path.name}", text)


def _check_syntax(path: Path, text: str) -> None:
    """Raise InvalidInput where a project's file does not compile for the oldest Python that hosts may have."""
    try:
        ast.parse(text, feature_version=OLDEST)
    except SyntaxError as error:
        help = "node types run on hosts: write it for Python 3.8, they may have nothing newer"
        where = SourceLocation(os.path.relpath(path), error.lineno or 1, error.offset)
        raise InvalidInput([problem("SC0516", str(error.msg), help, where)]) from None


@lru_cache(maxsize=1)
def _bootstrap() -> str:
    """Return the bootstrap in one short line: csh takes no line break in an argument."""
    packed = binascii.b2a_base64(zlib.compress((_PACKAGE / "remote" / "bootstrap.py").read_bytes(), 9), newline=False)
    return (
        "import sys;sys.version_info<(3,8) and (sys.stderr.write("
        '"%s is Python %s\\n"%(sys.executable,sys.version.split()[0])),sys.exit(96));'
        "import binascii,zlib;exec(compile(zlib.decompress(binascii.a2b_base64("
        f'"{packed.decode()}")),"statecfg-bootstrap","exec"))'
    )


def command(python: str | None = None) -> list[str]:
    """Return the argument list that starts the executor on a host, by the Python given or the first that will do."""
    pythons = (python,) if python else PYTHONS
    return ["/bin/sh", "-c", _LAUNCH, "statecfg", _bootstrap(), *pythons]
