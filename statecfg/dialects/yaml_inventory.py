"""Read inventories in YAML: `hosts:` and `groups:`."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from statecfg.dialects import yaml_text, yaml_tree
from statecfg.dialects.yaml_tree import Node, Scalar, Sequence, describe
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
from statecfg.problems.positions import SourceLocation

SHAPE = "`hosts:` with a name for each machine"
KEYS = ("hosts", "groups")
HOST_KEYS = ("address", "port", "user", "key", "jump", "become", "become_user", "python", "transport", "vars")
GROUP_KEYS = ("hosts", "groups", "vars")
BECOME = ("sudo", "doas", "su")

# These values are passed to ssh and written to known_hosts, so they must not contain shell syntax or look like options.
_ADDRESS = re.compile(r"[A-Za-z0-9_\[:][A-Za-z0-9_.:%\[\]-]*\Z")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@\\-]*\$?\Z")
_JUMP = re.compile(r"[A-Za-z0-9_\[][A-Za-z0-9_.:@%\[\],-]*\Z")


def load(path: str | Path | None, display_name: str | None = None) -> Inventory:
    """Read an inventory.

    :param path: the file; None for an inventory that contains only `@local`
    :param display_name: the name of the file in messages; default: `path`
    :raises InvalidInput: with all problems in the file
    """
    if path is None:
        return Inventory()
    return parse(yaml_text.load(path, SHAPE, display_name), display_name or str(path))


def parse(root: Node, file: str) -> Inventory:
    """Create an inventory from a YAML tree.

    :param file: the name of the file
    :raises InvalidInput: with all problems in the tree
    """
    with collecting() as problems:
        hosts, own, groups = _read(root)
    problems.sort(key=lambda item: item.places[:1])
    try:
        inventory = Inventory(hosts, own, groups, file)
    except InvalidInput as error:
        raise InvalidInput([*problems, *error.problems]) from None
    if problems:
        raise InvalidInput(problems)
    return inventory


def _read(root: Node) -> tuple[list[Host], dict[str, Vars], list[Group]]:
    hosts: list[Host] = []
    own: dict[str, Vars] = {}
    groups: list[Group] = []
    top = yaml_tree.mapping(root, "an inventory", SHAPE)
    if top is None:
        return hosts, own, groups
    yaml_tree.check_keys(top, "an inventory", KEYS)
    for name, location, value in _entries(top.items.get("hosts"), "hosts"):
        if _named(name, "host", location):
            host, variables = _host(name, location, value)
            hosts.append(host)
            own[name] = variables
    for name, location, value in _entries(top.items.get("groups"), "groups"):
        if _named(name, "group", location):
            groups.append(_group(name, location, value))
    return hosts, own, groups


def _entries(node: Node | None, what: str) -> list[tuple[str, SourceLocation, Node | None]]:
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


def _host(name: str, location: SourceLocation, node: Node | None) -> tuple[Host, Vars]:
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
            user=_text(values["user"], "user", _USER),
            identity_files=_keys(values["key"]),
            become=_become(values["become"]),
            become_user=_text(values["become_user"], "become_user", _USER) or "root",
        ),
        proxy_jump=_text(values["jump"], "jump", _JUMP),
        python=_text(values["python"], "python", re.compile(r"/[^\s\0]*\Z"), "the absolute path of a Python"),
        transport=_choice(values["transport"], "transport", tuple(TRANSPORTS)) or ("local" if local else "ssh"),
        position=location,
    )
    return host, variables(values["vars"], "host")


def _address(node: Node | None) -> str:
    """Return the address of a host. Refuse one that contains a port; an IPv6 address has more than one colon."""
    address = _text(node, "address", _ADDRESS) or ""
    host, colon, port = address.rpartition(":")
    if node is not None and colon and (":" not in host or host.endswith("]")) and port.isdigit():
        detail = f"`address` is `{address}`, which contains a port"
        report(problem("SC0405", detail, f"write address: {host.strip('[]')} and port: {port}", node.location))
    return address


def _group(name: str, location: SourceLocation, node: Node | None) -> Group:
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return Group(name, position=location)
    settings = yaml_tree.mapping(node, f"group `{name}`", f"{name}: {{hosts: [HOST]}}")
    if settings is None:
        return Group(name, position=location)
    yaml_tree.check_keys(settings, f"group `{name}`", ("vars",) if name == ALL else GROUP_KEYS)
    return Group(
        name,
        hosts=_names(settings.items.get("hosts"), "hosts"),
        groups=_names(settings.items.get("groups"), "groups"),
        vars=variables(settings.items.get("vars"), "group"),
        position=location,
    )


def variables(node: Node | None, what: str, convert: Callable[[Node], Any] | None = None) -> Vars:
    """Return the variables of a `vars:` map with their source locations.

    :param what: what the variables belong to, for messages
    :param convert: returns the value of a node; default: the plain value
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
        converted = convert(value) if convert is not None else yaml_tree.plain(value, secrets.tagged)
        result[name] = (converted, SourceLocation(value.file, value.line, value.column))
    return result


def _names(node: Node | None, what: str) -> dict[str, SourceLocation]:
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


def _value(node: Node | None) -> Any:
    return node.value if isinstance(node, Scalar) and node.tag is None else node


def _refuse(node: Node, key: str, expected: str) -> None:
    report(problem("SC0405", f"`{key}` is {describe(node)}", f"it must be {expected}", node.location))


def _text(node: Node | None, key: str, pattern: re.Pattern[str], expected: str = "") -> str | None:
    value = _value(node)
    if node is None or value is None:
        return None
    if not isinstance(value, str) or not pattern.match(value):
        _refuse(
            node, key, expected or "a string without white space and shell characters, and without `-` at its start"
        )
        return None
    return value


def _port(node: Node | None) -> int | None:
    value = _value(node)
    if node is None or value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 65535:
        _refuse(node, "port", "a number from 1 to 65535")
        return None
    return value


def _choice(node: Node | None, key: str, valid: tuple[str, ...]) -> str | None:
    value = _value(node)
    if node is None or value is None:
        return None
    if value not in valid:
        _refuse(node, key, "one of: " + ", ".join(valid))
        return None
    return str(value)


def _become(node: Node | None) -> str | None:
    value = _value(node)
    if isinstance(value, bool):
        return BECOME[0] if value else None
    return _choice(node, "become", BECOME)


def _keys(node: Node | None) -> tuple[str, ...]:
    if node is None:
        return ()
    items = node.items if isinstance(node, Sequence) else [node]
    texts = (_text(item, "key", re.compile(r"[^-\0][^\0]*\Z"), "the path of a private key") for item in items)
    return tuple(text for text in texts if text is not None)
