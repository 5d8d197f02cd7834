"""The entries of `resources:` in YAML: nodes, loops, conditions and includes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from statecfg import problems, templates
from statecfg.dialects import ansible_words, scalars, yaml_inventory, yaml_text
from statecfg.dialects import yaml_text as tree
from statecfg.graph import registry, schema
from statecfg.graph.declare import WRONG, declare_at
from statecfg.graph.graph import Graph, gap
from statecfg.playbook import secrets
from statecfg.playbook.user_code import explained, guarded
from statecfg.problems import InvalidInput, Problem, going_on, inputs, nearest, positions, problem, report, suggest_file
from statecfg.problems.positions import SourceLocation
from statecfg.remote.graph.nodetype import NodeType

SHAPE = "a list of resources"
CONTROL = ("when", "for_each")
INCLUDE_KEYS = ("include", "vars", *CONTROL)
OPTIONS = ("requires", "restart_on", "provides", "tags", "protect")
MAX_INCLUDES = 100

Values = dict[str, Any]
Chain = tuple[tuple[str, SourceLocation], ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: a node type with its argument and attributes, or (without one) a file to include.

    One that could not be read is neither; `gap` is the graph that takes the place of its nodes.
    """

    kind: NodeType[...] | None
    argument: tree.Node
    place: SourceLocation
    attrs: Mapping[str, tree.Node] = field(default_factory=dict)
    places: Mapping[str, SourceLocation] = field(default_factory=dict)
    when: tree.Node | None = None
    each: tree.Node | None = None
    file: str = ""
    gap: Graph | None = None


def _unreadable(kind: str, argument: tree.Node | None) -> Entry:
    text = argument.value if isinstance(argument, tree.Scalar) and not argument.wrong else None
    known = isinstance(text, str) and not templates.is_template(text)
    nowhere = tree.Scalar(("", 0, 0), None, None)
    return Entry(None, nowhere, nowhere.place, gap=gap(kind, str(text) if known else ""))


UNREADABLE = _unreadable("", None)


class Entries:
    """Reads and evaluates the entries of one playbook and of the files that it includes, each read once."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[list[Entry], Values] | None] = {}  # None: it could not be read
        self._secrets: dict[int, secrets.Secret] = {}
        self._known = frozenset(registry.known())

    def read(self, node: tree.Node | None, file: str) -> list[Entry]:
        """Return the entries of a list; report what is wrong with them."""
        if node is None or (isinstance(node, tree.Scalar) and node.value is None):
            return []
        found = yaml_text.sequence(node, "`resources:`", "- file: /etc/motd")
        return [self._entry(item, file) for item in found.items] if found else [UNREADABLE]

    def included_first(self, node: tree.Node | None) -> list[Entry]:
        """Return the entries of a play's own `include:`, a file or a list of files."""
        if node is None:
            return []
        items = node.items if isinstance(node, tree.Sequence) else [node]
        return [Entry(None, item, item.place, file=item.file) for item in items]

    def graphs(self, entries: list[Entry], scope: Values, chain: Chain) -> Iterator[Graph]:
        """Yield the graph of each node, as the variables in `scope` have it; report what is wrong."""
        for entry in entries:
            if entry.gap is not None:
                yield entry.gap
                continue
            for names in self._rounds(entry, scope):
                inner = {**scope, **names} if names else scope
                wanted = names is not None and self._wanted(entry, inner)
                if wanted is None or names is None:
                    yield gap() if entry.kind is None or "provides" in entry.attrs else gap(entry.kind.name)
                elif wanted and entry.kind is None:
                    yield from self._included(entry, inner, chain)
                elif wanted and entry.kind is not None:
                    yield self._declared(entry, entry.kind, inner)

    # Reading

    def _entry(self, node: tree.Node, file: str) -> Entry:
        if not isinstance(node, tree.Mapping) or node.tag is not None:
            detail = f"an entry is a map that begins with a node type; this is {yaml_text.describe(node)}"
            text = node.value if isinstance(node, tree.Scalar) and isinstance(node.value, str) else "NAME"
            report(problem("SC0316", detail, f"such as: - package: {text}", node.place))
            return _unreadable("", node)
        when, each = node.items.get("when"), node.items.get("for_each")
        if "include" in node.items:
            yaml_text.known_keys(node, "an include", INCLUDE_KEYS)
            rest = {"vars": node.items["vars"]} if "vars" in node.items else {}
            place = node.keys["include"].place
            return Entry(None, node.items["include"], place, rest, {}, when, each, file)
        name, kind = self._type_of(node)
        if kind is None:
            return _unreadable("", node.items.get(name)) if "provides" not in node.items else UNREADABLE
        foreign = _ansible(node, (name, *CONTROL, *OPTIONS, *schema.of(kind).names))
        left_out = (name, *CONTROL, *foreign)
        attrs = {key: value for key, value in node.items.items() if key not in left_out}
        places = {key: node.keys[key].place for key in attrs}
        return Entry(kind, node.items[name], node.keys[name].place, attrs, places, when, each, file)

    @staticmethod
    def _kind(name: str, place: SourceLocation) -> NodeType[...] | None:
        with going_on(), guarded(f"loading the node type {name}"):
            kind = registry.named(name, place)
            if kind is not None:
                schema.of(kind)  # may be wrong itself
            return kind
        return None

    def _type_of(self, node: tree.Mapping) -> tuple[str, NodeType[...] | None]:
        """Return the key that names the entry's type, and the type; None where there is none, which is reported.

        Attributes may have the names of types (`user`, `group`).
        """
        named = [key for key in node.items if key in self._known]
        for name in named:
            kind = self._kind(name, node.keys[name].place)
            if kind is None:
                return name, None
            taken = schema.of(kind).names
            if all(key == name or key in taken for key in named):
                return name, kind
        if named:
            detail = f"{' and '.join(f'`{name}`' for name in named)} both name a node type"
            places = [node.keys[name].place for name in named]
            report(problem("SC0316", detail, "make two entries of it, each beginning with `-`", *places))
            return "", None
        unknown = next((key for key in node.items if key not in (*CONTROL, *OPTIONS)), None)
        if unknown is None:
            report(problem("SC0316", "the entry names no node type", "such as: - package: nginx", node.place))
            return "", None
        near = next((key for key in node.items if nearest(key, self._known)), unknown)
        if not nearest(near, self._known) and _ansible(node, (*CONTROL, *OPTIONS)):
            return near, None
        return near, self._kind(near, node.keys[near].place)

    # Evaluating

    def _value(self, node: tree.Node, scope: Values) -> Any:
        """Return what a node stands for; raise InvalidInput, with no problem in it for what was reported before."""
        if node.wrong:
            raise InvalidInput([])
        if node.tag is not None:
            # Once: all that use it get the same secret, and the environment is asked once.
            if id(node) not in self._secrets:
                self._secrets[id(node)] = yaml_text.plain(node, secrets.tagged)
            return self._secrets[id(node)]
        if isinstance(node, tree.Mapping):
            return {key: self._value(item, scope) for key, item in node.items.items()}
        if isinstance(node, tree.Sequence):
            return [self._value(item, scope) for item in node.items]
        assert isinstance(node, tree.Scalar)
        if not isinstance(node.value, str):
            return node.value
        return templates.evaluate(node.value, scope, node.place, node.block)

    def _try(self, node: tree.Node, scope: Values) -> tuple[Any, bool]:
        with going_on():
            return self._value(node, scope), True
        return WRONG, False

    def _declared(self, entry: Entry, kind: NodeType[...], scope: Values) -> Graph:
        argument, _ = self._try(entry.argument, scope)
        attrs = {name: _taken(name, node, self._try(node, scope)[0]) for name, node in entry.attrs.items()}
        count = len(schema.of(kind).arguments)
        args: list[Any] = [argument]
        if count > 1:
            args = argument if isinstance(argument, list) else [argument]
        elif count == 0:
            args = [] if argument is None else args
        graph = gap(kind.name)
        with problems.collecting() as found, going_on(), explained(f"declaring a {kind.name}", entry.place):
            graph = declare_at(kind, args, attrs, entry.place, entry.places)
        report(*(_about_templates(item, entry) for item in found))
        return graph

    def _wanted(self, entry: Entry, scope: Values) -> bool | None:
        """Return whether the entry's condition holds; None where that can't be told, which is reported."""
        if entry.when is None:
            return True
        answer, right = self._expression(entry.when, scope)
        if right and not isinstance(answer, bool):
            detail = f"`when:` gives {scalars.describe(answer)}"
            hint = "write a comparison, such as: when: port > 80, or: when: name is defined"
            report(problem("SC0318", detail, hint, entry.when.place))
        return answer if isinstance(answer, bool) else None

    def _rounds(self, entry: Entry, scope: Values) -> Iterator[Values | None]:
        """Yield the names that each round of the entry's loop adds; one round without names where it has none.

        Where the rounds can't be told, which is reported, yield None.
        """
        if entry.each is None:
            yield {}
            return
        answer, right = self._expression(entry.each, scope)
        if isinstance(answer, Mapping):
            yield from ({"key": key, "value": value} for key, value in answer.items())
        elif isinstance(answer, (list, tuple)):
            yield from ({"item": item} for item in answer)
        else:
            detail = f"`for_each:` gives {scalars.describe(answer)}"
            if right:
                report(problem("SC0319", detail, "give it a list (`item`) or a map (`key`, `value`)", entry.each.place))
            yield None

    def _expression(self, node: tree.Node, scope: Values) -> tuple[Any, bool]:
        if isinstance(node, tree.Scalar) and isinstance(node.value, str) and node.tag is None and not node.wrong:
            with going_on():
                return templates.expression(node.value, scope, node.place, node.block), True
            return WRONG, False
        return self._try(node, scope)

    # Including

    def _included(self, entry: Entry, scope: Values, chain: Chain) -> Iterator[Graph]:
        path, steps = self._steps(entry, scope, chain)
        found = self._file(path) if path else None
        if found is None:
            yield gap()
            return
        entries, own = found
        inner = {**scope}
        for values in (own, play_variables(entry.attrs.get("vars"))):
            for key, value in values.items():
                made: Any = templates.UNREADABLE
                with going_on():
                    made = templates.resolve(value, inner)
                inner[key] = made
        yield from self.graphs(entries, inner, steps)

    def _steps(self, entry: Entry, scope: Values, chain: Chain) -> tuple[str, Chain]:
        """Return the path of the file to include, "" where it can't be, which is reported; and the way there."""
        name, right = self._try(entry.argument, scope)
        if not right:
            return "", chain
        if not isinstance(name, str) or not name:
            detail = f"`include:` must be the path of a file; this is {scalars.describe(name)}"
            report(problem("SC0310", detail, "write include: other.yml", entry.argument.place))
            return "", chain
        path = os.path.normpath(os.path.join(os.path.dirname(entry.file), name))
        steps = (*chain, (path, entry.place))
        if path in (file for file, _ in chain) or len(steps) > MAX_INCLUDES:
            shown = [os.path.basename(file) for file, _ in steps]
            start = [file for file, _ in steps].index(path)
            places = [place for _, place in steps[start + 1 :]]
            report(
                problem("SC0317", " → ".join(shown[start:][-8:]), "take one of these includes out", *reversed(places))
            )
            return "", chain
        if not os.path.isfile(path):
            help_text = suggest_file(path) or f"looked for {path}"
            report(problem("SC0301", f"there is no file {name}", help_text, entry.argument.place))
            return "", chain
        return path, steps

    def _file(self, path: str) -> tuple[list[Entry], Values] | None:
        if path in self._files:
            return self._files[path]
        self._files[path] = None
        inputs.note("include", path)
        root = None
        with going_on():
            root = yaml_text.read(path, SHAPE)
        if root is None:
            return None
        own: Values = {}
        if isinstance(root, tree.Mapping):
            yaml_text.known_keys(root, "an included file", ("vars", "resources"))
            own = dict(play_variables(root.items.get("vars")))
            entries = self.read(root.items.get("resources"), path)
        else:
            entries = self.read(root, path)
        self._files[path] = entries, own
        return self._files[path]


def _ansible(node: tree.Mapping, valid: tuple[str, ...]) -> list[str]:
    """Report the words of Ansible among the keys of an entry; return them.

    :param valid: keys that mean something here, whatever they mean in Ansible
    """
    found = [key for key in node.items if key not in valid and ansible_words.equivalent(key)]
    for key in found:
        detail = f"an entry has no key `{key}`"
        report(problem("SC0316", detail, ansible_words.equivalent(key), node.keys[key].place))
    return found


def _taken(name: str, node: tree.Node, value: Any) -> Any:
    """Return the value of an attribute as the declaration takes it.

    Names in `requires` and `restart_on` remember where they are written. A number that a template gives as `content`
    is its text.
    """
    if name in ("requires", "restart_on"):
        if isinstance(node, tree.Sequence) and isinstance(value, list):
            return [_placed(item, each) for item, each in zip(node.items, value, strict=True)]
        return _placed(node, value)
    if name == "content" and isinstance(node, tree.Scalar) and isinstance(node.value, str):
        return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    return value


def _placed(node: tree.Node, value: Any) -> Any:
    return positions.Written(value, node.place) if type(value) is str else value


def _about_templates(found: Problem, entry: Entry) -> Problem:
    """Return the problem with another help where a template gave a number for a text: it is in quotes already."""
    nodes = (entry.argument, *entry.attrs.values())
    written = [node for node in nodes if isinstance(node, tree.Scalar) and isinstance(node.value, str)]
    places = {entry.places.get(name, node.place) for name, node in entry.attrs.items() if node in written}
    templated = any(templates.is_template(node.value) for node in written) and found.places[0] in (entry.place, *places)
    if templated and found.help.startswith("put it in quotes"):
        return replace(found, help="make a text of it: `{{ … | string }}`")
    return found


def play_variables(node: tree.Node | None) -> Mapping[str, Any]:
    """Return the variables of a `vars:` map; texts remember their places, since they may be templates."""
    found = yaml_inventory.variables(node, "play", author)
    return MappingProxyType({name: value for name, (value, _) in found.items()})


def author(node: tree.Node) -> Any:
    """Return the value of a node; texts that may be templates remember their places."""
    if node.wrong:
        return templates.UNREADABLE
    if node.tag is not None:
        return yaml_text.plain(node, secrets.tagged)
    if isinstance(node, tree.Mapping):
        return {key: author(item) for key, item in node.items.items()}
    if isinstance(node, tree.Sequence):
        return [author(item) for item in node.items]
    assert isinstance(node, tree.Scalar)
    if isinstance(node.value, str) and templates.is_template(node.value):
        return templates.Text(node.value, node.place, node.block)
    return node.value
