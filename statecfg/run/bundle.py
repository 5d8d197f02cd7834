"""The bundle: what is sent to a host, in parts that the host keeps by their digests.

A host gets the executor's core with the node types of its definition, in one part that the bootstrap fetches. Two more
parts follow only where they are needed: code for hooks that run on hosts, and for units. The node types of orphans are
not known before the host has read its ledger. If the definition does not use them, the host asks for them by name.
"""

from __future__ import annotations

import binascii
import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import statecfg
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.run import host_modules
from statecfg.run.stripping_cache import cache

_BOOTSTRAP = Path(statecfg.__file__).parent / "remote" / "bootstrap.py"
# Tried in this order on a host; what is too old says so by exit status 96 and the next one is tried.
PYTHONS = ("python3", *(f"python3.{minor}" for minor in range(14, 7, -1)), "/usr/libexec/platform-python")
_LAUNCH = (
    'b=$1; shift; for p in "$@"; do command -v "$p" >/dev/null 2>&1 || continue; f="$f $p";'
    ' "$p" -I -S -X utf8 -c "$b"; r=$?; [ $r = 96 ] || exit $r; done;'
    ' echo "there is no Python 3.8 or newer on this host; looked for $*; found:${f:- none}" >&2; exit 96'
)


@dataclass(frozen=True)
class Part:
    """Modules as they are sent.

    :param data: module name → [is it a package, file name, source] as compressed JSON
    :param sha256: its digest, by which hosts keep it
    """

    data: bytes
    sha256: str


@dataclass(frozen=True)
class Bundle(Part):
    """The executor's core and the node types of one definition.

    :param modules: node type → the module that defines it
    """

    modules: dict[str, str]


def build(types: Iterable[str]) -> Bundle:
    """Return the core with node types. The same sources give the same bytes.

    :param types: names of node types that are loaded
    :raises InvalidInput: if one can't be sent
    """
    return _build(tuple((name, REGISTRY[name].module) for name in sorted(types)))


def parts(order: Mapping[str, Any]) -> dict[str, Part]:
    """Return what a host needs beside its bundle, by digest.

    :param order: what the host is asked for, with its `hooks` and `units`
    """
    hooks = any(hook["where"] == "host" for hook in order.get("hooks", ()))
    wanted = [name for name, needed in (("hooks", hooks), ("units", order.get("units"))) if needed]
    return {part.sha256: part for part in map(_part, wanted)}


def digest(types: Iterable[str]) -> str:
    """Return a digest of all that a run with these node types may send: types of orphans and parts are in it, too.

    :raises InvalidInput: if a node type can't be sent
    """
    modules = {**host_modules.python_types(), **{name: REGISTRY[name].module for name in types}}
    every = [_build(tuple(sorted(modules.items()))), *map(_part, host_modules.PARTS)]
    return hashlib.sha256("".join(part.sha256 for part in every).encode()).hexdigest()


def modules_of(types: Iterable[str]) -> tuple[dict[str, host_modules.Module], dict[str, str]]:
    """Return what a host needs to undo nodes of types that its definition does not use, as far as they are known here.

    The first map is module name → [is it a package, file name, source], the second node type → module.
    """
    try:
        found = host_modules.type_modules(types)
        return host_modules.of_types(found.values()), found
    finally:
        cache().keep()


def check() -> None:
    """Check that the project's node types compile on hosts.

    :raises InvalidInput: if one does not
    """
    host_modules.check_syntax()
    cache().keep()


@lru_cache(maxsize=64)
def _build(modules: tuple[tuple[str, str], ...]) -> Bundle:
    found = {**host_modules.core(), **host_modules.of_types(module for _, module in modules)}
    cache().keep()
    return Bundle(*_packed(found), dict(modules))


@lru_cache(maxsize=len(host_modules.PARTS))
def _part(name: str) -> Part:
    found = host_modules.of_part(name)
    cache().keep()
    return Part(*_packed(found))


def _packed(modules: Mapping[str, host_modules.Module]) -> tuple[bytes, str]:
    data = zlib.compress(json.dumps(modules, sort_keys=True, separators=(",", ":")).encode(), 9)
    return data, hashlib.sha256(data).hexdigest()


@lru_cache(maxsize=1)
def _bootstrap() -> str:
    """Return the bootstrap in one short line: csh takes no line break in an argument."""
    packed = binascii.b2a_base64(zlib.compress(_BOOTSTRAP.read_bytes(), 9), newline=False)
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
