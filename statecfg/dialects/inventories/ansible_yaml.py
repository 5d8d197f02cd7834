"""Read Ansible's inventories in YAML: groups with `hosts`, `children` and `vars`."""

from __future__ import annotations

from statecfg.dialects import yaml_tree
from statecfg.dialects.inventories import foreign_yaml
from statecfg.dialects.inventories.ansible import AnsibleGroup, AnsibleHost, AnsibleInventory
from statecfg.dialects.inventories.ranges import WrongRange, expand
from statecfg.dialects.yaml_tree import Mapping, Scalar, YamlNode
from statecfg.problems import problem, report

KEYS = ("hosts", "children", "vars")


def read(inventory: AnsibleInventory, root: YamlNode) -> None:
    """Add the hosts, groups and variables of a tree. Report its problems."""
    top = yaml_tree.mapping(root, "an inventory", "all: {hosts: {web1: }}")
    for name, node in top.items.items() if top is not None else ():
        assert top is not None
        _group(inventory, name, top.keys[name], node)


def _group(inventory: AnsibleInventory, name: str, key: Scalar, node: YamlNode) -> AnsibleGroup:
    group = inventory.group(name, key.location)
    content = _entries(node, f"group `{name}`", f"{name}: {{hosts: {{web1: }}}}", single=False)
    if content is None:
        return group
    yaml_tree.check_keys(content, f"group `{name}`", KEYS)
    parts = {part: _entries(content.items.get(part), f"`{part}:`", f"{part}: {{NAME: }}") for part in KEYS}
    variables, children, hosts = parts["vars"], parts["children"], parts["hosts"]
    _set(inventory, group, variables)
    for child, inner in children.items.items() if children is not None else ():
        assert children is not None
        _group(inventory, child, children.keys[child], inner)
        inventory.child(group, child, children.keys[child].location)
    for pattern, inner in hosts.items.items() if hosts is not None else ():
        assert hosts is not None
        _hosts(inventory, group, pattern, hosts.keys[pattern], inner)
    return group


def _hosts(inventory: AnsibleInventory, group: AnsibleGroup, pattern: str, key: Scalar, node: YamlNode) -> None:
    try:
        names, port = expand(pattern)
    except WrongRange as error:
        report(problem("SC0414", f"`{pattern}`: {error}", "write a host, or a range: web[01:10]", key.location))
        return
    variables = _entries(node, f"host `{pattern}`", f"{pattern}: {{ansible_host: 192.0.2.7}}", single=False)
    for name in names:
        _set(inventory, inventory.host(name, key.location, group, port), variables)


def _set(inventory: AnsibleInventory, owner: AnsibleGroup | AnsibleHost, variables: Mapping | None) -> None:
    for name, node in variables.items.items() if variables is not None else ():
        inventory.assign(owner, name, foreign_yaml.value(node, name), node.location)


def _entries(node: YamlNode | None, what: str, example: str, single: bool = True) -> Mapping | None:
    """Return a node as a map; None if it is empty or was reported.

    :param single: whether a string means a map with one key, as Ansible allows for hosts and children
    """
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return None
    if single and isinstance(node, Scalar) and isinstance(node.value, str):
        location = node.file, node.line, node.column
        one = Mapping(location, None)
        one.items[node.value] = Scalar(location, None, None)
        one.keys[node.value] = node
        return one
    return yaml_tree.mapping(node, what, example)
