"""The entries of `resources:` in YAML: nodes, loops, conditions and includes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from statecfg import templates
from statecfg.dialects import scalars, yaml_inventory, yaml_loops, yaml_text, yaml_tree
from statecfg.dialects import yaml_tree as tree
from statecfg.dialects.yaml_entry import Entry, Reader
from statecfg.graph import opaque, recording, schema
from statecfg.graph.declare import WRONG, declare_at
from statecfg.graph.graph import Graph, gap
from statecfg.graph.references import INCLUDE, LOOP
from statecfg.playbook import secrets
from statecfg.playbook.user_code import explained
from statecfg.problems import (
    InvalidInput,
    Problem,
    collecting,
    inputs,
    positions,
    problem,
    report,
    reporting,
    suggest_file,
)
from statecfg.problems.positions import SourceLocation
from statecfg.remote.graph.nodetype import NodeType
from statecfg.remote.graph.wrong_values import AS_STRING

SHAPE = "a list of resources"
MAX_INCLUDES = 100

Values = dict[str, Any]
Chain = tuple[tuple[str, SourceLocation], ...]
Labels = tuple[str, ...]


class Entries:
    """Reads and evaluates the entries of one playbook and of its included files. Each file is read once."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[list[Entry], Values] | None] = {}  # None: it could not be read
        self._secrets: dict[int, secrets.Secret] = {}
        self.read = Reader().read

    def included_first(self, node: tree.Node | None) -> list[Entry]:
        """Return an entry for each file in a play's own `include:`, which is a file or a list of files."""
        if node is None:
            return []
        items = node.items if isinstance(node, tree.Sequence) else [node]
        return [Entry(None, item, item.location, file=item.file) for item in items]

    def graphs(self, entries: list[Entry], scope: Values, chain: Chain, labels: Labels = ()) -> Iterator[Graph]:
        """Yield the graph of each node, and report problems.

        :param scope: the variables
        :param chain: the files that led here, each with the source location that includes it
        :param labels: the loops and included files that contain the entries
        """
        for entry in entries:
            if entry.gap is not None:
                yield entry.gap
                continue
            if entry.node_type is None and entry.inner is None:
                _know_file(entry.argument)
            within = labels if entry.loop is None else self._labelled(entry.loop, scope, labels)
            for names in self._rounds(entry, scope):
                inner = {**scope, **names} if names else scope
                wanted = names is not None and self._wanted(entry, inner)
                if wanted is None or names is None:
                    yield gap() if entry.node_type is None or "provides" in entry.attrs else gap(entry.node_type.name)
                elif wanted and entry.inner is not None:
                    yield from self.graphs(entry.inner, inner, chain, within)
                elif wanted and entry.node_type is None:
                    yield from self._included(entry, inner, chain, within)
                elif wanted and entry.node_type is not None:
                    yield self._declared(entry, entry.node_type, inner, within)

    def _value(self, node: tree.Node, scope: Values, name: str = "") -> Any:
        """Return the value of a node. Raise InvalidInput without problems if the node was already reported."""
        if node.wrong:
            raise InvalidInput([])
        if node.tag is not None:
            # Read each secret only once, so that all uses get the same object.
            if id(node) not in self._secrets:
                self._secrets[id(node)] = yaml_tree.plain(node, secrets.tagged, name)
            return self._secrets[id(node)]
        if isinstance(node, tree.Mapping):
            return {key: self._value(item, scope, key) for key, item in node.items.items()}
        if isinstance(node, tree.Sequence):
            return [self._value(item, scope, name) for item in node.items]
        assert isinstance(node, tree.Scalar)
        if not isinstance(node.value, str):
            return node.value
        return templates.evaluate(node.value, scope, node.location, node.block)

    def _try(self, node: tree.Node, scope: Values, name: str = "") -> tuple[Any, bool]:
        with reporting():
            return self._value(node, scope, name), True
        return WRONG, False

    def _declared(self, entry: Entry, node_type: NodeType[...], scope: Values, labels: Labels) -> Graph:
        argument, _ = self._try(entry.argument, scope)
        attrs = {name: _taken(name, node, self._try(node, scope, name)[0]) for name, node in entry.attrs.items()}
        count = len(schema.of(node_type).arguments)
        args: list[Any] = [argument]
        if count > 1:
            args = argument if isinstance(argument, list) else [argument]
        elif count == 0:
            args = [] if argument is None else args
        graph = gap(node_type.name)
        with collecting() as reported, reporting(), explained(f"declaring a {node_type.name}", entry.location):
            graph = declare_at(node_type, args, attrs, entry.location, entry.locations, labels)
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
        answer, right = self._expression(entry.loop.elements, scope)
        if isinstance(answer, (Mapping, list, tuple)):
            yield from yaml_loops.rounds(entry.loop, answer, scope)
        else:
            detail = f"the value of `for_each:` is {scalars.describe(answer)}"
            if right:
                help_text = "write a list (each round has `item`) or a map (`key` and `value`)"
                report(problem("SC0319", detail, help_text, entry.loop.elements.location))
            yield None

    def _labelled(self, loop: yaml_loops.Loop, scope: Values, labels: Labels) -> Labels:
        """Return the labels of the nodes of a loop. They are known even if the loop has no rounds."""
        if loop.label is None:
            return labels
        name, right = self._try(loop.label, scope)
        if right and (not isinstance(name, str) or not name or opaque.would_show_secret(name)):
            detail = f"`label:` must be a name; this is {scalars.describe(name)}"
            report(problem("SC0319", detail, "write label: NAME, without a secret", loop.label.location))
        elif right:
            recording.known_label(f"{LOOP}{name}")
            return (*labels, f"{LOOP}{name}")
        return labels

    def _expression(self, node: tree.Node, scope: Values) -> tuple[Any, bool]:
        if isinstance(node, tree.Scalar) and isinstance(node.value, str) and node.tag is None and not node.wrong:
            with reporting():
                return templates.expression(node.value, scope, node.location, node.block), True
            return WRONG, False
        return self._try(node, scope)

    # Including

    def _included(self, entry: Entry, scope: Values, chain: Chain, labels: Labels) -> Iterator[Graph]:
        name, path, steps = self._steps(entry, scope, chain)
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
        recording.known_label(f"{INCLUDE}{name}")
        yield from self.graphs(entries, inner, steps, (*labels, f"{INCLUDE}{name}"))

    def _steps(self, entry: Entry, scope: Values, chain: Chain) -> tuple[str, str, Chain]:
        """Return the name and path of the file to include, and the chain with it; "" for an invalid file."""
        name, right = self._try(entry.argument, scope)
        if not right:
            return "", "", chain
        if not isinstance(name, str) or not name:
            detail = f"`include:` must be the path of a file; this is {scalars.describe(name)}"
            report(problem("SC0310", detail, "write include: other.yml", entry.argument.location))
            return "", "", chain
        path = os.path.normpath(os.path.join(os.path.dirname(entry.file), name))
        steps = (*chain, (path, entry.location))
        if path in (file for file, _ in chain) or len(steps) > MAX_INCLUDES:
            names = [os.path.basename(file) for file, _ in steps]
            start = [file for file, _ in steps].index(path)
            locations = [location for _, location in steps[start + 1 :]]
            report(
                problem("SC0317", " → ".join(names[start:][-8:]), "remove one of these includes", *reversed(locations))
            )
            return "", "", chain
        if not os.path.isfile(path):
            help_text = suggest_file(path) or f"searched for {path}"
            report(problem("SC0301", f"there is no file {name}", help_text, entry.argument.location))
            return "", "", chain
        return name, path, steps

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


def _know_file(argument: tree.Node) -> None:
    """Record the label of an included file, which is known even if the file is not included on this host."""
    name = argument.value if isinstance(argument, tree.Scalar) and argument.tag is None else None
    if isinstance(name, str) and not templates.is_template(name):
        recording.known_label(f"{INCLUDE}{name}")


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


def author(node: tree.Node, name: str = "") -> Any:
    """Return the value of a node. Templates keep their source locations.

    :param name: the name of the variable, or the key of the node in its map
    """
    if node.wrong:
        return templates.UNREADABLE
    if node.tag is not None:
        return yaml_tree.plain(node, secrets.tagged, name)
    if isinstance(node, tree.Mapping):
        return {key: author(item, key) for key, item in node.items.items()}
    if isinstance(node, tree.Sequence):
        return [author(item, name) for item in node.items]
    assert isinstance(node, tree.Scalar)
    if isinstance(node.value, str) and templates.is_template(node.value):
        return templates.Text(node.value, node.location, node.block)
    return node.value
