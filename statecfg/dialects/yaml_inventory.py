"""Read statecfg's inventories in YAML: `hosts:`, `groups:` and `sources:`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any

from statecfg.dialects import yaml_tree
from statecfg.dialects.yaml_tree import Mapping, Scalar, Sequence, YamlNode, describe
from statecfg.playbook import secrets
from statecfg.playbook.inventory import (
    ALL,
    LOCAL,
    RESERVED,
    RESERVED_DETAIL,
    TRANSPORTS,
    Group,
    Host,
    Inventory,
    Login,
    Vars,
    wrong_name,
)
from statecfg.problems import InvalidInput, collecting, problem, report
from statecfg.problems.frozen import dataclass
from statecfg.problems.positions import SourceLocation

SHAPE = "`hosts:` with a name for each machine"
KEYS = ("hosts", "groups", "sources")
HOST_KEYS = (
    "address",
    "port",
    "user",
    "key",
    "jump",
    "become",
    "become_user",
    "python",
    "transport",
    "vars",
    "vars_files",
)
GROUP_KEYS = ("hosts", "groups", "vars", "vars_files")
BECOME = ("sudo", "doas", "su")
TIMEOUT = 60.0  # seconds that a program of `sources:` may take
LONGEST = 3600  # the maximum of `timeout:`

# These values are passed to ssh and written to known_hosts, so they must not contain shell syntax or look like options.
ADDRESS = re.compile(r"[A-Za-z0-9_\[:][A-Za-z0-9_.:%\[\]-]*\Z")
USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@\\-]*\$?\Z")
JUMP = re.compile(r"[A-Za-z0-9_\[][A-Za-z0-9_.:@%\[\],-]*\Z")


@dataclass(frozen=True)
class InventorySource:
    """Another source that an inventory names under `sources:`.

    :param path: a file or directory; "" for a program
    :param command: a program that prints Ansible's JSON, and its arguments
    :param timeout: for programs, in seconds
    """

    location: SourceLocation
    path: str = ""
    command: tuple[str, ...] = ()
    timeout: float = TIMEOUT


@dataclass(frozen=True)
class FileLists:
    """The files that the `vars_files:` of a host or group names, each with its source location."""

    hosts: dict[str, list[tuple[str, SourceLocation]]] = field(default_factory=dict)
    groups: dict[str, list[tuple[str, SourceLocation]]] = field(default_factory=dict)


@dataclass(frozen=True)
class WrittenInventory:
    """What one inventory file contains.

    :param own: host → its variables
    :param files: the files with more variables
    :param sources: the other sources that it names
    """

    hosts: list[Host] = field(default_factory=list)
    own: dict[str, Vars] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    files: FileLists = field(default_factory=FileLists)
    sources: list[InventorySource] = field(default_factory=list)


def parse(root: YamlNode, file: str) -> Inventory:
    """Create an inventory from a YAML tree, without the files and sources that it names.

    :param file: the name of the file
    :raises InvalidInput: with all problems in the tree
    """
    with collecting() as problems:
        written = read(root)
    problems.sort(key=lambda item: item.locations[:1])
    try:
        inventory = Inventory(written.hosts, written.own, written.groups, file)
    except InvalidInput as error:
        raise InvalidInput([*problems, *error.problems]) from None
    if problems:
        raise InvalidInput(problems)
    return inventory


def read(root: YamlNode) -> WrittenInventory:
    """Return what a YAML tree contains. Report its problems."""
    written = WrittenInventory()
    top = yaml_tree.mapping(root, "an inventory", SHAPE)
    if top is None:
        return written
    yaml_tree.check_keys(top, "an inventory", KEYS)
    for name, location, value in _entries(top.items.get("hosts"), "hosts"):
        if _named(name, "host", location):
            host, written.own[name] = _host(name, location, value)
            written.hosts.append(host)
            written.files.hosts[name] = _files(value)
    for name, location, value in _entries(top.items.get("groups"), "groups"):
        if _named(name, "group", location):
            written.groups.append(_group(name, location, value))
            written.files.groups[name] = _files(value)
    written.sources.extend(_sources(top.items.get("sources")))
    return written


def _files(node: YamlNode | None) -> list[tuple[str, SourceLocation]]:
    listed = node.items.get("vars_files") if isinstance(node, Mapping) else None
    if listed is None:
        return []
    items = listed.items if isinstance(listed, Sequence) else [listed]
    expected = re.compile(r"[^\0]+\Z")
    texts = [(_text(item, "vars_files", expected, "the path of a file, or a list"), item.location) for item in items]
    return [(text, location) for text, location in texts if text is not None]


def _sources(node: YamlNode | None) -> Iterator[InventorySource]:
    listed = yaml_tree.sequence(node, "`sources:`", "sources: [hosts.ini]") if node is not None else None
    for item in listed.items if listed is not None else ():
        if isinstance(item, Scalar):
            path = _text(item, "sources", re.compile(r"[^\0]+\Z"), "a path, or {command: [PROGRAM, ARGUMENT]}")
            if path is not None:
                yield InventorySource(item.location, path)
            continue
        entry = yaml_tree.mapping(item, "a source", "a path, or {command: [PROGRAM, ARGUMENT]}")
        if entry is None:
            continue
        yaml_tree.check_keys(entry, "a source", ("command", "timeout"))
        command, timeout = _command(entry), _timeout(entry.items.get("timeout"))
        if command and timeout is not None:
            yield InventorySource(entry.location, command=command, timeout=timeout)


def _command(entry: Mapping) -> tuple[str, ...]:
    node = entry.items.get("command")
    if node is None:
        report(problem("SC0417", "a source needs `command:`", "write command: [PROGRAM, ARGUMENT]", entry.location))
        return ()
    listed = yaml_tree.sequence(node, "`command:`", "it as a list: command: [PROGRAM, ARGUMENT]")
    words = [_text(item, "command", re.compile(r"[^\0]*\Z"), "a string") for item in listed.items] if listed else []
    if listed is not None and not listed.items:
        report(problem("SC0417", "`command:` is empty", "write command: [PROGRAM, ARGUMENT]", node.location))
    return tuple(word for word in words if word is not None) if None not in words else ()


def _timeout(node: YamlNode | None) -> float | None:
    """Return a number of seconds; None if it is invalid, which was reported."""
    value = _value(node)
    if node is None or value is None:
        return TIMEOUT
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= LONGEST:
        _refuse(node, "timeout", f"a number of seconds, at most {LONGEST:,}")
        return None
    return float(value)


def _entries(node: YamlNode | None, what: str) -> list[tuple[str, SourceLocation, YamlNode | None]]:
    """Return name, source location and value of each entry of a map, or of a list of names."""
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return []
    if isinstance(node, Sequence):
        return [(name, location, None) for name, location in _names(node, what).items()]
    entries = yaml_tree.mapping(node, f"`{what}:`", f"{what}: {{NAME: {{}}}}")
    if entries is None:
        return []
    return [(name, entries.keys[name].location, value) for name, value in entries.items.items()]


def _named(name: str, category: str, location: SourceLocation) -> bool:
    if (category == "host" and name == LOCAL) or (category == "group" and name == ALL):
        return True
    reserved = f"`{name}` already means all hosts" if name == ALL else None
    problem_text = reserved or wrong_name(name)
    if problem_text is not None:
        address = "; write the address to connect to as address:" if category == "host" else ""
        help_text = f"choose another name for the {category}{address}"
        report(problem("SC0401", f"{category} `{name}`: {problem_text}", help_text, location))
    return problem_text is None


def _host(name: str, location: SourceLocation, node: YamlNode | None) -> tuple[Host, Vars]:
    local = name == LOCAL
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return Host(name, transport="local" if local else "ssh", position=location), {}
    settings = yaml_tree.mapping(node, f"host `{name}`", f"{name}: {{address: 192.0.2.7}}")
    if settings is None:
        return Host(name, position=location), {}
    yaml_tree.check_keys(settings, "a host", HOST_KEYS)
    values = {key: settings.items.get(key) for key in HOST_KEYS}
    host = Host(
        name,
        address=_address(values["address"]),
        port=_port(values["port"]),
        login=Login(
            user=_text(values["user"], "user", USER),
            identity_files=_keys(values["key"]),
            become=_become(values["become"]),
            become_user=_text(values["become_user"], "become_user", USER) or "root",
        ),
        proxy_jump=_text(values["jump"], "jump", JUMP),
        python=_text(values["python"], "python", re.compile(r"/[^\s\0]*\Z"), "the absolute path of a Python"),
        transport=_choice(values["transport"], "transport", tuple(TRANSPORTS)) or ("local" if local else "ssh"),
        position=location,
    )
    return host, variables(values["vars"], "host")


def _address(node: YamlNode | None) -> str:
    """Return the address of a host. Refuse one that contains a port; an IPv6 address has more than one colon."""
    address = _text(node, "address", ADDRESS) or ""
    host, colon, port = address.rpartition(":")
    if node is not None and colon and (":" not in host or host.endswith("]")) and port.isdigit():
        detail = f"`address` is `{address}`, which contains a port"
        report(problem("SC0405", detail, f"write address: {host.strip('[]')} and port: {port}", node.location))
    return address


def _group(name: str, location: SourceLocation, node: YamlNode | None) -> Group:
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return Group(name, position=location)
    settings = yaml_tree.mapping(node, f"group `{name}`", f"{name}: {{hosts: [HOST]}}")
    if settings is None:
        return Group(name, position=location)
    yaml_tree.check_keys(settings, f"group `{name}`", ("vars", "vars_files") if name == ALL else GROUP_KEYS)
    return Group(
        name,
        hosts=_names(settings.items.get("hosts"), "hosts"),
        groups=_names(settings.items.get("groups"), "groups"),
        vars=variables(settings.items.get("vars"), "group"),
        position=location,
    )


def variables(node: YamlNode | None, what: str, convert: Callable[[YamlNode, str], Any] | None = None) -> Vars:
    """Return the variables of a `vars:` map with their source locations.

    :param what: what the variables belong to, for messages
    :param convert: returns the value of a node with a name; default: the plain value
    """
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return {}
    written = yaml_tree.mapping(node, f"`vars:` of a {what}", "vars: {port: 8080}")
    if written is None:
        return {}
    result = {}
    for name, value in written.items.items():
        location = written.keys[name].location
        if not name.isidentifier():
            detail = f"`{name}` is not a valid name of a variable"
            report(problem("SC0308", detail, "use letters, digits and _, and don't start with a digit", location))
            continue
        if name == RESERVED:
            report(problem("SC0308", RESERVED_DETAIL, "choose another name", location))
            continue
        converted = convert(value, name) if convert is not None else yaml_tree.plain(value, secrets.tagged, name)
        result[name] = (converted, SourceLocation(value.file, value.line, value.column))
    return result


def _names(node: YamlNode | None, what: str) -> dict[str, SourceLocation]:
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return {}
    listed = yaml_tree.sequence(node, f"`{what}:`", f"{what}: [NAME, NAME]")
    names: dict[str, SourceLocation] = {}
    for item in listed.items if listed else []:
        if not isinstance(item, Scalar) or not isinstance(item.value, str):
            report(problem("SC0310", f"a name must be a string; this is {describe(item)}", "quote it", item.location))
        elif item.value in names:
            detail = f"`{what}:` contains `{item.value}` twice"
            report(problem("SC0306", detail, "keep one of them", item.location, names[item.value]))
        else:
            names[item.value] = item.location
    return names


def _value(node: YamlNode | None) -> Any:
    return node.value if isinstance(node, Scalar) and node.tag is None else node


def _refuse(node: YamlNode, key: str, expected: str) -> None:
    report(problem("SC0405", f"`{key}` is {describe(node)}", f"it must be {expected}", node.location))


def _text(node: YamlNode | None, key: str, pattern: re.Pattern[str], expected: str = "") -> str | None:
    value = _value(node)
    if node is None or value is None:
        return None
    if not isinstance(value, str) or not pattern.match(value):
        _refuse(
            node, key, expected or "a string without white space and shell characters, and without `-` at its start"
        )
        return None
    return value


def _port(node: YamlNode | None) -> int | None:
    value = _value(node)
    if node is None or value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 65535:
        _refuse(node, "port", "a number from 1 to 65535")
        return None
    return value


def _choice(node: YamlNode | None, key: str, valid: tuple[str, ...]) -> str | None:
    value = _value(node)
    if node is None or value is None:
        return None
    if value not in valid:
        _refuse(node, key, "one of: " + ", ".join(valid))
        return None
    return str(value)


def _become(node: YamlNode | None) -> str | None:
    value = _value(node)
    if isinstance(value, bool):
        return BECOME[0] if value else None
    return _choice(node, "become", BECOME)


def _keys(node: YamlNode | None) -> tuple[str, ...]:
    if node is None:
        return ()
    items = node.items if isinstance(node, Sequence) else [node]
    texts = (_text(item, "key", re.compile(r"[^-\0][^\0]*\Z"), "the path of a private key") for item in items)
    return tuple(text for text in texts if text is not None)
