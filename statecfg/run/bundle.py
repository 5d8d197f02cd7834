"""The bundle: the code that statecfg sends to a host, in parts that the host keeps by their digests.

The first part contains the executor's core and the node types of the host's definition; the bootstrap fetches it.
More parts follow only if they are needed: code for facts, for what `verify` and `run-history` report, for hooks that
run on hosts, for units, for masking secrets, for reboots, for values that hosts generate, for values that nodes take
from others, for conditions of nodes, for rare attributes of commands, for symbolic modes, for excluded entries of
directories, and for services without systemd; and the node types that only the host's facts made necessary. The node
types of orphans are unknown until the host has read its ledger. If the definition does not use them, the host requests
them by name.
"""

from __future__ import annotations

import binascii
import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import statecfg
from statecfg.graph import host_conditions
from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.names import Mode
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.run.own_account import ABOVE, PLACES
from statecfg.run import host_modules
from statecfg.run.stripping_cache import cache

LEVEL = 9  # of compression: 0.1 % smaller than level 7, and takes 30 % longer. Most hosts keep the code
_BOOTSTRAP = Path(statecfg.__file__).parent / "remote" / "bootstrap.py"
# A host tries these in this order. A Python that is too old exits with status 96, and the host tries the next one.
PYTHONS = ("python3", *(f"python3.{minor}" for minor in range(14, 7, -1)), "/usr/libexec/platform-python")
_LAUNCH = (
    'b=$1; shift; for p in "$@"; do command -v "$p" >/dev/null 2>&1 || continue; f="$f $p";'
    ' "$p" -I -S -X utf8 -c "$b"; r=$?; [ $r = 96 ] || exit $r; done;'
    ' echo "no Python 3.8 or newer found on this host; searched for $*; found:${f:- none}" >&2; exit 96'
)


@dataclass(frozen=True)
class Part:
    """Modules for hosts.

    :param text: module name → [is it a package, file name] as JSON (only 0 or 1 if the file name follows from the
        name), and then the modules' sources in the same order, separated by NUL
    :param sha256: the digest of `text`, under which hosts keep it
    """

    text: bytes
    sha256: str

    @cached_property
    def data(self) -> bytes:
        """The text as it is sent, compressed. Most hosts have it already."""
        return zlib.compress(self.text, LEVEL)


@dataclass(frozen=True)
class Bundle(Part):
    """The executor's core and the node types of one definition.

    :param modules: node type → the module that defines it
    """

    modules: dict[str, str]


def build(types: Iterable[str]) -> Bundle:
    """Return the core with node types. The same sources always give the same bytes.

    :param types: names of loaded node types
    :raises InvalidInput: if a node type can't be sent
    """
    return _build(tuple((name, REGISTRY[name].module) for name in sorted(types)))


def parts(
    order: Mapping[str, Any], layers: Iterable[Iterable[Mapping[str, Any]]] = (), secrets: bool = False
) -> dict[str, Part]:
    """Return digest → part for the parts that a host needs in addition to its bundle.

    :param order: the additional data for the executor, with `hooks` and `units`
    :param layers: the nodes of the host's definition
    :param secrets: whether the definition contains secrets
    """
    generates = any(node["type"] == "generate" for layer in layers for node in layer)
    options = [node["options"] for layer in layers for node in layer if "options" in node]
    types = {node["type"] for layer in layers for node in layer}.union(*map(host_conditions.readers, options))
    types = types.intersection(REGISTRY)
    needed = {
        "hooks": order.get("hooks"),
        "units": order.get("units"),
        "decisions": any(map(host_conditions.of_options, options)),
        "items": any("for_each_host" in one for one in options),
        "generated": generates,
        "values": any("inserts" in node.get("options", ()) for layer in layers for node in layer),
        "reboot": any(node["type"] == "reboot" for layer in layers for node in layer),
        "secrets": secrets or generates,
        "commands": any(node["type"] == "command" and _is_rare(node) for layer in layers for node in layer),
        "modes": any(isinstance(node.get("attrs", {}).get("mode"), str) for layer in layers for node in layer),
        "account": order.get("prune") or any(_may_lock_out(node) for layer in layers for node in layer),
        "exclusions": any(node.get("attrs", {}).get("exclude") for layer in layers for node in layer),
        **dict.fromkeys(host_modules.parts_of_types(frozenset(REGISTRY[name].module for name in types)), True),
    }
    return {part.sha256: part for part in (_part(name) for name in needed if needed[name])}


def _may_lock_out(node: Mapping[str, Any]) -> bool:
    """Return whether a node may take away a login, because of its type (`NodeType.logins`) or its path."""
    attrs = node.get("attrs", {})
    node_type, path, mode = REGISTRY.get(node["type"]), attrs.get("path"), attrs.get("mode")
    if (node_type is not None and "logins" in node_type.methods) or (isinstance(mode, int) and mode & 0o022):
        return True
    if (node["type"] == "package" and attrs.get("absent")) or (
        node["type"] == "service" and str(attrs.get("name", "")).partition(".")[0] in ("ssh", "sshd")
    ):
        return True
    return isinstance(path, str) and (path.startswith(("/home/", "/root", *PLACES)) or path in ABOVE or "/.ssh" in path)


def _is_rare(command: Mapping[str, Any]) -> bool:
    """Return whether a command needs the code for rare attributes, or to keep what the program prints."""
    from statecfg.resources.programs.commands import RARE  # most definitions have no commands

    attrs = command.get("attrs", {})
    return "produces" in command.get("options", ()) or any(attrs.get(name) is not None for name in RARE)


def first_parts(mode: str, facts: bool) -> list[Part]:
    """Return the parts that a host needs before it gets the nodes.

    :param facts: whether the host has to collect facts
    """
    needed = {"facts": facts, "history": mode == Mode.HISTORY, "drift": mode == Mode.VERIFY}
    return [_part(name) for name in needed if needed[name]]


def more_types(types: Iterable[str], sent: Bundle) -> dict[str, Part]:
    """Return digest → part with the node types that an earlier bundle lacks; empty if it lacks none.

    :raises InvalidInput: if a node type can't be sent
    """
    missing = [build(types).modules[name] for name in sorted({*types} - {*sent.modules})]
    if not missing:
        return {}
    part = Part(*_joined(host_modules.of_types(missing)))
    cache().keep()
    return {part.sha256: part}


def digest(types: Iterable[str]) -> str:
    """Return a digest of all code that a run with these node types may send, also for orphans, hooks and units.

    :raises InvalidInput: if a node type can't be sent
    """
    modules = {**host_modules.python_types(), **{name: REGISTRY[name].module for name in types}}
    code = {**host_modules.core(), **host_modules.of_types(modules.values())}
    for part in host_modules.PARTS:
        code.update(host_modules.of_part(part))
    cache().keep()
    return hashlib.sha256(json.dumps(code, sort_keys=True).encode()).hexdigest()


def modules_of(types: Iterable[str]) -> tuple[dict[str, host_modules.Module], dict[str, str]]:
    """Return the modules that a host needs to undo nodes of types that its definition does not use.

    :param types: names of node types; unknown ones are ignored
    :returns: module name → (is it a package, file name, source), and node type → module
    """
    try:
        by_type = host_modules.type_modules(types)
        return host_modules.of_types(by_type.values(), with_parts=True), by_type
    finally:
        cache().keep()


def check() -> None:
    """Check that the project's node types compile on hosts.

    :raises InvalidInput: if a node type does not compile
    """
    host_modules.check_syntax()
    cache().keep()


@lru_cache(maxsize=64)
def _build(modules: tuple[tuple[str, str], ...]) -> Bundle:
    contents = {**host_modules.core(), **host_modules.of_types(module for _, module in modules)}
    cache().keep()
    return Bundle(*_joined(contents), dict(modules))


@lru_cache(maxsize=len(host_modules.PARTS))
def _part(name: str) -> Part:
    modules = host_modules.of_part(name)
    cache().keep()
    return Part(*_joined(modules))


def _about(name: str, package: bool, file: str) -> int | tuple[bool, str]:
    """Return a part's entry for a module: 0 or 1 if the bootstrap can derive the file name."""
    path = name.replace(".", "/").replace("statecfg/resources", "resources")
    default = f"{path}/__init__.py" if package else f"{path}.py"
    return int(package) if file == default else (package, file)


def _joined(modules: Mapping[str, host_modules.Module]) -> tuple[bytes, str]:
    head = {name: _about(name, *modules[name][:2]) for name in sorted(modules)}
    sources = (modules[name][2] for name in head)
    text = "\0".join([json.dumps(head, separators=(",", ":")), *sources]).encode()
    return text, hashlib.sha256(text).hexdigest()


@lru_cache(maxsize=1)
def _bootstrap() -> str:
    """Return the bootstrap as one short line, because csh does not allow line breaks in an argument."""
    packed = binascii.b2a_base64(zlib.compress(_BOOTSTRAP.read_bytes(), 9), newline=False)
    return (
        "import sys;sys.version_info<(3,8) and (sys.stderr.write("
        '"%s is Python %s\\n"%(sys.executable,sys.version.split()[0])),sys.exit(96));'
        "import binascii,zlib;exec(compile(zlib.decompress(binascii.a2b_base64("
        f'"{packed.decode()}")),"statecfg-bootstrap","exec"))'
    )


def command(python: str | None = None) -> list[str]:
    """Return the argument list that starts the executor on a host.

    :param python: the Python to use, None for the first usable one of `PYTHONS`
    """
    pythons = (python,) if python else PYTHONS
    return ["/bin/sh", "-c", _LAUNCH, "statecfg", _bootstrap(), *pythons]
