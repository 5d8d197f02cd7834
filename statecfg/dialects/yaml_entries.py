"""The entries of `resources:` in YAML: nodes, loops, conditions and includes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from statecfg import templates
from statecfg.dialects import ansible_words, scalars, yaml_inventory, yaml_text, yaml_tree
from statecfg.dialects import yaml_tree as tree
from statecfg.graph import registry, schema
from statecfg.graph.declare import WRONG, declare_at
from statecfg.graph.graph import Graph, gap
from statecfg.playbook import secrets
from statecfg.playbook.user_code import explained, guarded
from statecfg.problems import (
    InvalidInput,
    Problem,
    collecting,
    inputs,
    nearest,
    positions,
    problem,
    report,
    reporting,
    suggest_file,
)
from statecfg.problems.positions import SourceLocation
from statecfg.remote.graph.nodetype import OPTIONS, NodeType
from statecfg.remote.graph.wrong_values import AS_STRING

SHAPE = "a list of resources"
CONTROL = ("when", "for_each")
INCLUDE_KEYS = ("include", "vars", *CONTROL)
MAX_INCLUDES = 100

Values = dict[str, Any]
Chain = tuple[tuple[str, SourceLocation], ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a list of resources.

    :param node_type: the node type; None for an `include:` or an unreadable entry
    :param argument: the argument of the node type, or the file to include
    :param location: the source location of the entry's first key
    :param attrs: the attributes; for an `include:`, only `vars`
    :param locations: the source locations of the attributes
    :param when: the condition
    :param loop: the value of `for_each:`
    :param file: the file that contains the entry
    :param gap: the graph that replaces an unreadable entry
    """

    node_type: NodeType[...] | None
    argument: tree.Node
    location: SourceLocation
    attrs: Mapping[str, tree.Node] = field(default_factory=dict)
    locations: Mapping[str, SourceLocation] = field(default_factory=dict)
    when: tree.Node | None = None
    loop: tree.Node | None = None
    file: str = ""
    gap: Graph | None = None


def _unreadable(node_type: str, argument: tree.Node | None) -> Entry:
    text = argument.value if isinstance(argument, tree.Scalar) and not argument.wrong else None
    certain = isinstance(text, str) and not templates.is_template(text)
    nowhere = tree.Scalar(("", 0, 0), None, None)
    return Entry(None, nowhere, nowhere.location, gap=gap(node_type, str(text) if certain else ""))


UNREADABLE = _unreadable("", None)


class Entries:
    """Reads and evaluates the entries of one playbook and of its included files. Each file is read once."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[list[Entry], Values] | None] = {}  # None: it could not be read
        self._secrets: dict[int, secrets.Secret] = {}
        self._node_types = frozenset(registry.names())

    def read(self, node: tree.Node | None, file: str) -> list[Entry]:
        """Return the entries of a list, and report invalid ones.

        :param node: the list; None for none
        :param file: the file that contains it
        """
        if node is None or (isinstance(node, tree.Scalar) and node.value is None):
            return []
        listed = yaml_tree.sequence(node, "`resources:`", "- file: /etc/motd")
        return [self._entry(item, file) for item in listed.items] if listed else [UNREADABLE]

    def included_first(self, node: tree.Node | None) -> list[Entry]:
        """Return an entry for each file in a play's own `include:`, which is a file or a list of files."""
        if node is None:
            return []
        items = node.items if isinstance(node, tree.Sequence) else [node]
        return [Entry(None, item, item.location, file=item.file) for item in items]

    def graphs(self, entries: list[Entry], scope: Values, chain: Chain) -> Iterator[Graph]:
        """Yield the graph of each node, and report problems.

        :param scope: the variables
        :param chain: the files that led here, each with the source location that includes it
        """
        for entry in entries:
            if entry.gap is not None:
                yield entry.gap
                continue
            for names in self._rounds(entry, scope):
                inner = {**scope, **names} if names else scope
                wanted = names is not None and self._wanted(entry, inner)
                if wanted is None or names is None:
                    yield gap() if entry.node_type is None or "provides" in entry.attrs else gap(entry.node_type.name)
                elif wanted and entry.node_type is None:
                    yield from self._included(entry, inner, chain)
                elif wanted and entry.node_type is not None:
                    yield self._declared(entry, entry.node_type, inner)

    # Reading

    def _entry(self, node: tree.Node, file: str) -> Entry:
        if not isinstance(node, tree.Mapping) or node.tag is not None:
            detail = f"an entry must be a map that starts with a node type; this is {yaml_tree.describe(node)}"
            text = node.value if isinstance(node, tree.Scalar) and isinstance(node.value, str) else "NAME"
            example = "file" if text.startswith("/") else "package"
            report(problem("SC0316", detail, f"write - TYPE: NAME, such as - {example}: {text}", node.location))
            return _unreadable("", node)
        when, loop = node.items.get("when"), node.items.get("for_each")
        if "include" in node.items:
            yaml_tree.check_keys(node, "an include", INCLUDE_KEYS)
            rest = {"vars": node.items["vars"]} if "vars" in node.items else {}
            location = node.keys["include"].location
            return Entry(None, node.items["include"], location, rest, {}, when, loop, file)
        name, node_type = self._name_and_type(node)
        if node_type is None:
            return _unreadable("", node.items.get(name)) if "provides" not in node.items else UNREADABLE
        foreign = _ansible(node, (name, *CONTROL, *OPTIONS, *schema.of(node_type).names))
        left_out = (name, *CONTROL, *foreign)
        attrs = {key: value for key, value in node.items.items() if key not in left_out}
        locations = {key: node.keys[key].location for key in attrs}
        return Entry(node_type, node.items[name], node.keys[name].location, attrs, locations, when, loop, file)

    @staticmethod
    def _node_type(name: str, location: SourceLocation) -> NodeType[...] | None:
        with reporting(), guarded(f"loading the node type {name}"):
            node_type = registry.find(name, location)
            if node_type is not None:
                schema.of(node_type)  # raises InvalidInput if the node type's definition is wrong
            return node_type
        return None

    def _name_and_type(self, node: tree.Mapping) -> tuple[str, NodeType[...] | None]:
        """Return the key that names the node type of an entry, and the node type; None if there is none.

        A missing or ambiguous node type is reported. Attributes can have names of node types, such as `user`.
        """
        named = [key for key in node.items if key in self._node_types]
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
        near = next((key for key in node.items if nearest(key, self._node_types)), unknown)
        if not nearest(near, self._node_types) and _ansible(node, (*CONTROL, *OPTIONS)):
            return near, None
        return near, self._node_type(near, node.keys[near].location)

    # Evaluating

    def _value(self, node: tree.Node, scope: Values) -> Any:
        """Return the value of a node. Raise InvalidInput without problems if the node was already reported."""
        if node.wrong:
            raise InvalidInput([])
        if node.tag is not None:
            # Read each secret only once, so that all uses get the same object.
            if id(node) not in self._secrets:
                self._secrets[id(node)] = yaml_tree.plain(node, secrets.tagged)
            return self._secrets[id(node)]
        if isinstance(node, tree.Mapping):
            return {key: self._value(item, scope) for key, item in node.items.items()}
        if isinstance(node, tree.Sequence):
            return [self._value(item, scope) for item in node.items]
        assert isinstance(node, tree.Scalar)
        if not isinstance(node.value, str):
            return node.value
        return templates.evaluate(node.value, scope, node.location, node.block)

    def _try(self, node: tree.Node, scope: Values) -> tuple[Any, bool]:
        with reporting():
            return self._value(node, scope), True
        return WRONG, False

    def _declared(self, entry: Entry, node_type: NodeType[...], scope: Values) -> Graph:
        argument, _ = self._try(entry.argument, scope)
        attrs = {name: _taken(name, node, self._try(node, scope)[0]) for name, node in entry.attrs.items()}
        count = len(schema.of(node_type).arguments)
        args: list[Any] = [argument]
        if count > 1:
            args = argument if isinstance(argument, list) else [argument]
        elif count == 0:
            args = [] if argument is None else args
        graph = gap(node_type.name)
        with collecting() as reported, reporting(), explained(f"declaring a {node_type.name}", entry.location):
            graph = declare_at(node_type, args, attrs, entry.location, entry.locations)
        report(*(_about_templates(item, entry) for item in reported))
        return graph

    def _wanted(self, entry: Entry, scope: Values) -> bool | None:
        """Return whether the condition of an entry is true; None if it is invalid, which is reported."""
        if entry.when is None:
            return True
        answer, right = self._expression(entry.when, scope)
        if right and not isinstance(answer, bool):
            detail = f"the value of `when:` is {scalars.describe(answer)}"
            hint = "write a comparison, such as `when: port > 80` or `when: name is defined`"
            report(problem("SC0318", detail, hint, entry.when.location))
        return answer if isinstance(answer, bool) else None

    def _rounds(self, entry: Entry, scope: Values) -> Iterator[Values | None]:
        """Yield the variables that each round of an entry's loop adds; one empty map if there is no loop.

        Yield None if the loop is invalid, which is reported.
        """
        if entry.loop is None:
            yield {}
            return
        answer, right = self._expression(entry.loop, scope)
        if isinstance(answer, Mapping):
            yield from ({"key": key, "value": value} for key, value in answer.items())
        elif isinstance(answer, (list, tuple)):
            yield from ({"item": item} for item in answer)
        else:
            detail = f"the value of `for_each:` is {scalars.describe(answer)}"
            if right:
                help_text = "write a list (each round has `item`) or a map (`key` and `value`)"
                report(problem("SC0319", detail, help_text, entry.loop.location))
            yield None

    def _expression(self, node: tree.Node, scope: Values) -> tuple[Any, bool]:
        if isinstance(node, tree.Scalar) and isinstance(node.value, str) and node.tag is None and not node.wrong:
            with reporting():
                return templates.expression(node.value, scope, node.location, node.block), True
            return WRONG, False
        return self._try(node, scope)

    # Including

    def _included(self, entry: Entry, scope: Values, chain: Chain) -> Iterator[Graph]:
        path, steps = self._steps(entry, scope, chain)
        content = self._file(path) if path else None
        if content is None:
            yield gap()
            return
        entries, own = content
        inner = {**scope}
        for values in (own, play_variables(entry.attrs.get("vars"))):
            for key, value in values.items():
                resolved: Any = templates.UNREADABLE
                with reporting():
                    resolved = templates.resolve(value, inner)
                inner[key] = resolved
        yield from self.graphs(entries, inner, steps)

    def _steps(self, entry: Entry, scope: Values, chain: Chain) -> tuple[str, Chain]:
        """Return the path of the file to include, and the chain of includes with it; "" for an invalid file."""
        name, right = self._try(entry.argument, scope)
        if not right:
            return "", chain
        if not isinstance(name, str) or not name:
            detail = f"`include:` must be the path of a file; this is {scalars.describe(name)}"
            report(problem("SC0310", detail, "write include: other.yml", entry.argument.location))
            return "", chain
        path = os.path.normpath(os.path.join(os.path.dirname(entry.file), name))
        steps = (*chain, (path, entry.location))
        if path in (file for file, _ in chain) or len(steps) > MAX_INCLUDES:
            names = [os.path.basename(file) for file, _ in steps]
            start = [file for file, _ in steps].index(path)
            locations = [location for _, location in steps[start + 1 :]]
            report(
                problem("SC0317", " → ".join(names[start:][-8:]), "remove one of these includes", *reversed(locations))
            )
            return "", chain
        if not os.path.isfile(path):
            help_text = suggest_file(path) or f"searched for {path}"
            report(problem("SC0301", f"there is no file {name}", help_text, entry.argument.location))
            return "", chain
        return path, steps

    def _file(self, path: str) -> tuple[list[Entry], Values] | None:
        if path in self._files:
            return self._files[path]
        self._files[path] = None
        inputs.note("include", path)
        root = None
        with reporting():
            root = yaml_text.read(path, SHAPE)
        if root is None:
            return None
        variables: Values = {}
        if isinstance(root, tree.Mapping):
            yaml_tree.check_keys(root, "an included file", ("vars", "resources"))
            variables = dict(play_variables(root.items.get("vars")))
            entries = self.read(root.items.get("resources"), path)
        else:
            entries = self.read(root, path)
        self._files[path] = entries, variables
        return self._files[path]


def _ansible(node: tree.Mapping, valid: tuple[str, ...]) -> list[str]:
    """Report keys of an entry that are words of Ansible, and return them.

    :param valid: keys that are valid in statecfg
    """
    words = [key for key in node.items if key not in valid and ansible_words.equivalent(key)]
    for key in words:
        detail = f"an entry has no key `{key}`"
        report(problem("SC0316", detail, ansible_words.equivalent(key), node.keys[key].location))
    return words


def _taken(name: str, node: tree.Node, value: Any) -> Any:
    """Return the value of an attribute for the declaration.

    Names in `requires` and `restart_on` keep their source locations. A number that a template returns for `content`
    becomes text.
    """
    if name in ("requires", "restart_on"):
        if isinstance(node, tree.Sequence) and isinstance(value, list):
            return [_placed(item, loop) for item, loop in zip(node.items, value, strict=True)]
        return _placed(node, value)
    if name == "content" and isinstance(node, tree.Scalar) and isinstance(node.value, str):
        return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    return value


def _placed(node: tree.Node, value: Any) -> Any:
    return positions.Written(value, node.location) if type(value) is str else value


def _about_templates(reported: Problem, entry: Entry) -> Problem:
    """Return a problem with another help if a template returned a value for a string, which is already in quotes."""
    nodes = (entry.argument, *entry.attrs.values())
    written = [node for node in nodes if isinstance(node, tree.Scalar) and isinstance(node.value, str)]
    locations = {entry.locations.get(name, node.location) for name, node in entry.attrs.items() if node in written}
    is_templated = any(templates.is_template(node.value) for node in written)
    concerned = is_templated and reported.places[0] in (entry.location, *locations)
    if concerned and reported.help.startswith("put it in quotes"):
        return replace(reported, help="convert it to a string: `{{ … | string }}`")
    if concerned and reported.help == AS_STRING:  # a list or a map
        return replace(reported, help="convert it to a string: `{{ … | join(',') }}` or `{{ … | tojson }}`")
    return reported


def play_variables(node: tree.Node | None) -> Mapping[str, Any]:
    """Return the variables of a `vars:` map. Texts keep their source locations, because they may be templates."""
    written = yaml_inventory.variables(node, "play", author)
    return MappingProxyType({name: value for name, (value, _) in written.items()})


def author(node: tree.Node) -> Any:
    """Return the value of a node. Templates keep their source locations."""
    if node.wrong:
        return templates.UNREADABLE
    if node.tag is not None:
        return yaml_tree.plain(node, secrets.tagged)
    if isinstance(node, tree.Mapping):
        return {key: author(item) for key, item in node.items.items()}
    if isinstance(node, tree.Sequence):
        return [author(item) for item in node.items]
    assert isinstance(node, tree.Scalar)
    if isinstance(node.value, str) and templates.is_template(node.value):
        return templates.Text(node.value, node.location, node.block)
    return node.value
