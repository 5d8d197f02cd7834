"""Read the entries of `resources:` in YAML: what they declare, repeat and include."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any

from statecfg import templates
from statecfg.dialects import ansible_words, yaml_inventory, yaml_loops
from statecfg.dialects import yaml_tree as tree
from statecfg.graph import registry, schema
from statecfg.graph.graph import Graph, gap
from statecfg.playbook import role_path, secrets
from statecfg.playbook.user_code import guarded
from statecfg.problems import nearest, problem, report, reporting
from statecfg.problems.frozen import dataclass
from statecfg.problems.positions import SourceLocation
from statecfg.remote.graph.nodetype import OPTIONS, NodeType

CONTROL = ("when", *yaml_loops.KEYS)
BLOCK_CONTROL = ("when_host", *CONTROL)
INCLUDE_KEYS = ("include", "vars", *BLOCK_CONTROL)
BLOCK_KEYS = ("resources", *BLOCK_CONTROL)


@dataclass(frozen=True, slots=True)
class YamlEntry:
    """One entry of a list of resources.

    :param node_type: the node type; None for an `include:`, a block or an unreadable entry
    :param argument: the argument of the node type, or the file to include
    :param location: the source location of the entry's first key
    :param attrs: the attributes; for an `include:`, `vars` and `when_host`; for a block, `when_host`
    :param locations: the source locations of the attributes
    :param when: the condition
    :param loop: its `for_each:`
    :param file: the file that contains the entry
    :param inner: the entries of a block, which is an entry with `resources:`
    :param gap: the graph that replaces an unreadable entry
    """

    node_type: NodeType[...] | None
    argument: tree.YamlNode
    location: SourceLocation
    attrs: Mapping[str, tree.YamlNode] = field(default_factory=dict)
    locations: Mapping[str, SourceLocation] = field(default_factory=dict)
    when: tree.YamlNode | None = None
    loop: yaml_loops.Loop | None = None
    file: str = ""
    inner: list[YamlEntry] | None = None
    gap: Graph | None = None


def _unreadable(node_type: str, argument: tree.YamlNode | None) -> YamlEntry:
    text = argument.value if isinstance(argument, tree.Scalar) and not argument.wrong else None
    certain = isinstance(text, str) and not templates.is_template(text)
    nowhere = tree.Scalar(("", 0, 0), None, None)
    return YamlEntry(None, nowhere, nowhere.location, gap=gap(node_type, str(text) if certain else ""))


UNREADABLE = _unreadable("", None)


class YamlEntryReader:
    """Reads entries and reports invalid ones."""

    def __init__(self) -> None:
        self._node_types = frozenset(registry.names())

    def read(self, node: tree.YamlNode | None, file: str) -> list[YamlEntry]:
        """Return the entries of a list, and report invalid ones.

        :param node: the list; None for none
        :param file: the file that contains it
        """
        if node is None or (isinstance(node, tree.Scalar) and node.value is None):
            return []
        listed = tree.sequence(node, "`resources:`", "- file: /etc/motd")
        return [self._entry(item, file) for item in listed.items] if listed else [UNREADABLE]

    def _entry(self, node: tree.YamlNode, file: str) -> YamlEntry:
        if not isinstance(node, tree.Mapping) or node.tag is not None:
            detail = f"an entry must be a map that starts with a node type; this is {tree.describe(node)}"
            text = node.value if isinstance(node, tree.Scalar) and isinstance(node.value, str) else "NAME"
            example = "file" if text.startswith("/") else "package"
            report(problem("SC0316", detail, f"write - TYPE: NAME, such as - {example}: {text}", node.location))
            return _unreadable("", node)
        when = node.items.get("when")
        if "include" in node.items:
            tree.check_keys(node, "an include", INCLUDE_KEYS)
            rest: dict[str, tree.YamlNode] = {
                key: node.items[key] for key in ("vars", "when_host") if key in node.items
            }
            location = node.keys["include"].location
            return YamlEntry(None, node.items["include"], location, rest, {}, when, yaml_loops.read(node), file)
        if "resources" in node.items and not self._node_types.intersection(node.items):
            tree.check_keys(node, "a block of entries", BLOCK_KEYS)
            inner = self.read(node.items["resources"], file)
            location = node.keys["resources"].location
            rest = {"when_host": node.items["when_host"]} if "when_host" in node.items else {}
            return YamlEntry(
                None, node.items["resources"], location, rest, {}, when, yaml_loops.read(node), file, inner
            )
        name, node_type = self._name_and_type(node)
        if node_type is None:
            return _unreadable("", node.items.get(name)) if "provides" not in node.items else UNREADABLE
        taken = schema.of(node_type).names
        foreign = _ansible(node, (name, *CONTROL, *OPTIONS, *taken))
        left_out = (name, "when", "for_each", *(key for key in yaml_loops.KEYS if key not in taken), *foreign)
        attrs = {key: value for key, value in node.items.items() if key not in left_out}
        locations = {key: node.keys[key].location for key in attrs}
        loop = yaml_loops.read(node, taken)
        return YamlEntry(node_type, node.items[name], node.keys[name].location, attrs, locations, when, loop, file)

    @staticmethod
    def _node_type(name: str, location: SourceLocation) -> NodeType[...] | None:
        with reporting(), guarded(f"loading the node type {name}"):
            node_type = registry.find(name, location)
            if node_type is not None:
                schema.of(node_type)  # raises InvalidInput if the node type's definition is wrong
            return node_type
        return None

    def _named(self, node: tree.Mapping) -> list[str]:
        """Return the keys of an entry that name node types. Installed packages are searched only if necessary."""
        named = [key for key in node.items if key in self._node_types]
        if not named and role_path.add_installed_node_types():
            self._node_types = frozenset(registry.names())
            named = [key for key in node.items if key in self._node_types]
        return named

    def _name_and_type(self, node: tree.Mapping) -> tuple[str, NodeType[...] | None]:
        """Return the key that names the node type of an entry, and the node type; None if there is none.

        A missing or ambiguous node type is reported. Attributes can have names of node types, such as `user`.
        """
        named = self._named(node)
        for name in named:
            node_type = self._node_type(name, node.keys[name].location)
            if node_type is None:
                return name, None
            taken = schema.of(node_type).names
            if all(key == name or key in taken for key in named):
                return name, node_type
        if named:
            detail = f"{' and '.join(f'`{name}`' for name in named)} both name a node type"
            locations = [node.keys[name].location for name in named]
            report(problem("SC0316", detail, "write two entries, each starting with `-`", *locations))
            return "", None
        unknown = next((key for key in node.items if key not in (*CONTROL, *OPTIONS)), None)
        if unknown is None:
            help_text = "start it with a node type, such as - package: nginx"
            report(problem("SC0316", "the entry has no node type", help_text, node.location))
            return "", None
        # A word of Ansible may resemble a node type by accident: `name` and `pam`.
        misspelled = (key for key in node.items if not ansible_words.equivalent(key) and nearest(key, self._node_types))
        near = next(misspelled, "")
        if not near and _ansible(node, (*CONTROL, *OPTIONS)):
            return unknown, None
        near = near or unknown
        return near, self._node_type(near, node.keys[near].location)


def _ansible(node: tree.Mapping, valid: tuple[str, ...]) -> list[str]:
    """Report keys of an entry that are words of Ansible, and return them.

    :param valid: keys that are valid in statecfg
    """
    words = [key for key in node.items if key not in valid and ansible_words.equivalent(key)]
    for key in words:
        detail = f"an entry has no key `{key}`"
        report(problem("SC0316", detail, ansible_words.equivalent(key), node.keys[key].location))
    return words


def play_variables(node: tree.YamlNode | None) -> Mapping[str, Any]:
    """Return the variables of a `vars:` map. Texts keep their source locations, because they may be templates."""
    written = yaml_inventory.variables(node, "play", author)
    return MappingProxyType({name: value for name, (value, _) in written.items()})


def named_variables(node: tree.YamlNode | None) -> dict[str, tuple[Any, SourceLocation]]:
    """Return the same, each with the source location of its name."""
    keys = node.keys if isinstance(node, tree.Mapping) else {}
    return {name: (value, keys[name].location) for name, value in play_variables(node).items()}


def author(node: tree.YamlNode, name: str = "") -> Any:
    """Return the value of a node. Templates keep their source locations.

    :param name: the name of the variable, or the key of the node in its map
    """
    if node.wrong:
        return templates.UNREADABLE
    if node.tag is not None:
        return tree.plain(node, secrets.tagged, name)
    if isinstance(node, tree.Mapping):
        return {key: author(item, key) for key, item in node.items.items()}
    if isinstance(node, tree.Sequence):
        return [author(item, name) for item in node.items]
    assert isinstance(node, tree.Scalar)
    if isinstance(node.value, str) and templates.is_template(node.value):
        return templates.Text(node.value, node.location, node.block)
    return node.value
