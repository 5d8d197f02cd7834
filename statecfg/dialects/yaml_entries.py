"""The entries of `resources:` in YAML: nodes, loops, conditions and includes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from statecfg import templates
from statecfg.dialects import scalars, yaml_loops, yaml_text, yaml_tree
from statecfg.dialects import yaml_tree as tree
from statecfg.dialects.yaml_entry import YamlEntry, YamlEntryReader, named_variables
from statecfg.graph import host_conditions, host_items, opaque, recording, schema
from statecfg.graph.declare import WRONG, declare_at
from statecfg.graph.graph import Graph, gap
from statecfg.graph.nodes import RoleUse
from statecfg.graph.references import INCLUDE, LOOP
from statecfg.playbook import role as roles
from statecfg.playbook import role_path, secrets
from statecfg.playbook.plays import HostContext, Vars, current_host, graphs_of
from statecfg.playbook.role import Given
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

if TYPE_CHECKING:
    from statecfg.dialects.role_files import Library, RoleFiles

SHAPE = "a list of resources"
MAX_INCLUDES = 100

Values = dict[str, Any]
Located = dict[str, tuple[Any, SourceLocation]]  # variables, with the source locations of their names
Chain = tuple[tuple[str, SourceLocation], ...]
Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EntryContext:
    """What surrounds entries.

    :param chain: the files that led here, each with the source location that includes it
    :param top: the variables of the play, which roles can use
    :param labels: the loops, included files and roles that contain the entries
    :param role: the innermost role; None for none
    :param scope: the innermost recorded scope of variables; None for none
    """

    chain: Chain
    top: Values
    labels: Labels = ()
    role: RoleUse | None = None
    scope: recording.Scope | None = None

    def inside(self, label: str = "", names: Mapping[str, Any] = MappingProxyType({})) -> EntryContext:
        """Return the context inside a loop or an include.

        :param label: its label
        :param names: the variables that it adds
        """
        role = self.role
        if role is not None and names:
            role = replace(role, variables={**role.variables, **names})
        return replace(self, labels=(*self.labels, label) if label else self.labels, role=role)


class Entries:
    """Reads and evaluates the entries of one playbook, of its included files and its roles. Each file is read once.

    :param root: directory of the project
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self._library: Library | None = None
        self._files: dict[str, tuple[list[YamlEntry], Located] | None] = {}  # None: it could not be read
        self._secrets: dict[int, secrets.Secret] = {}
        self.read = YamlEntryReader().read

    def included_first(self, node: tree.YamlNode | None) -> list[YamlEntry]:
        """Return an entry for each file in a play's own `include:`, which is a file or a list of files."""
        if node is None:
            return []
        items = node.items if isinstance(node, tree.Sequence) else [node]
        return [YamlEntry(None, item, item.location, file=item.file) for item in items]

    def graphs(self, entries: list[YamlEntry], scope: Values, context: EntryContext) -> Iterator[Graph]:
        """Yield the graph of each node, and report problems.

        :param scope: the variables
        """
        for entry in entries:
            if entry.gap is not None:
                yield entry.gap
                continue
            if entry.node_type is None and entry.inner is None:
                _know_file(entry.argument)
            around = context if entry.loop is None else self._labelled(entry.loop, scope, context)
            for names in self._rounds(entry, scope):
                inner = {**scope, **names} if names else scope
                within = around.inside(names=names) if names and around.role is not None else around
                wanted = names is not None and self._wanted(entry, inner)
                if wanted is None or names is None:
                    yield gap() if entry.node_type is None or "provides" in entry.attrs else gap(entry.node_type.name)
                elif wanted and entry.node_type is None:
                    block = entry.inner  # None for an include
                    with recording.deciding(self._conditions(entry, inner)):
                        found = self.graphs(block, inner, within) if block is not None else None
                        graphs = list(found or self._included(entry, inner, within))
                    yield from graphs
                elif wanted and entry.node_type is not None:
                    yield self._declared(entry, entry.node_type, host_items.scope(entry.attrs, inner), within)

    def _value(self, node: tree.YamlNode, scope: Values, name: str = "") -> Any:
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

    def _try(self, node: tree.YamlNode, scope: Values, name: str = "") -> tuple[Any, bool]:
        with reporting():
            return self._value(node, scope, name), True
        return WRONG, False

    def _declared(self, entry: YamlEntry, node_type: NodeType[...], scope: Values, context: EntryContext) -> Graph:
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
            graph = declare_at(node_type, args, attrs, entry.location, entry.locations, context.labels, context.role)
        report(*(_about_templates(item, entry) for item in reported))
        return graph

    def _wanted(self, entry: YamlEntry, scope: Values) -> bool | None:
        """Return whether the condition of an entry is true; None if it is invalid, which is reported."""
        if entry.when is None:
            return True
        answer, right = self._expression(entry.when, scope)
        if right and not isinstance(answer, bool):
            detail = f"the value of `when:` is {scalars.describe(answer)}"
            hint = "write a comparison, such as `when: port > 80` or `when: name is defined`"
            report(problem("SC0318", detail, hint, entry.when.location))
        return answer if isinstance(answer, bool) else None

    def _conditions(self, entry: YamlEntry, scope: Values) -> Iterable[Any]:
        node = entry.attrs.get("when_host")
        value, right = self._try(node, scope) if node is not None else (None, False)
        return host_conditions.of_block(value, node.location) if node is not None and right else ()

    def _rounds(self, entry: YamlEntry, scope: Values) -> Iterator[Values | None]:
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

    def _labelled(self, loop: yaml_loops.Loop, scope: Values, context: EntryContext) -> EntryContext:
        """Return the context with the label of a loop, which is known even if the loop has no rounds."""
        if loop.label is None:
            return context
        name, right = self._try(loop.label, scope)
        if right and (not isinstance(name, str) or not name or opaque.would_show_secret(name)):
            detail = f"`label:` must be a name; this is {scalars.describe(name)}"
            report(problem("SC0319", detail, "write label: NAME, without a secret", loop.label.location))
        elif right:
            recording.known_label(f"{LOOP}{name}")
            return context.inside(f"{LOOP}{name}")
        return context

    def _expression(self, node: tree.YamlNode, scope: Values) -> tuple[Any, bool]:
        if isinstance(node, tree.Scalar) and isinstance(node.value, str) and node.tag is None and not node.wrong:
            with reporting():
                return templates.expression(node.value, scope, node.location, node.block), True
            return WRONG, False
        return self._try(node, scope)

    # Including

    def _included(self, entry: YamlEntry, scope: Values, context: EntryContext) -> Iterator[Graph]:
        name, right = self._try(entry.argument, scope)
        if right and self._is_role(name, entry):
            given = self._given(entry, scope)
            yield from self.role(name, given, context) if given is not None else (gap(),)
            return
        path, steps = self._steps(name, entry, context.chain) if right else ("", context.chain)
        content = self._file(path) if path else None
        if content is None:
            yield gap()
            return
        entries, own = content
        added: Values = {}
        origins: dict[str, tuple[str, SourceLocation]] = {}
        for values, how in ((own, "its own value"), (named_variables(entry.attrs.get("vars")), "passed")):
            for key, (value, location) in values.items():
                resolved: Any = templates.UNREADABLE
                with reporting():
                    resolved = templates.resolve(value, {**scope, **added})
                added[key], origins[key] = resolved, (how, location)
        label = f"{INCLUDE}{name}"
        recording.known_label(label)
        around = recording.scope(f"include {name}", added, origins, context.scope) or context.scope
        inside = replace(context.inside(label, added), chain=steps, scope=around)
        yield from self.graphs(entries, {**scope, **added}, inside)

    def _given(self, entry: YamlEntry, scope: Values) -> Given | None:
        """Return the values that an include passes to a role; None if one is invalid, which is reported."""
        values: Values = {}
        positions: dict[str, SourceLocation] = {}
        for key, (value, location) in named_variables(entry.attrs.get("vars")).items():
            values[key], positions[key] = templates.UNREADABLE, location
            with reporting():
                values[key] = templates.resolve(value, scope)
        valid = all(value is not templates.UNREADABLE for value in values.values())
        return Given(values, entry.location, positions) if valid else None

    @staticmethod
    def _is_role(name: Any, entry: YamlEntry) -> bool:
        if not isinstance(name, str) or not role_path.is_name(name):
            return False
        return not os.path.isfile(os.path.join(os.path.dirname(entry.file), name))

    def role(self, name: str, given: Given, context: EntryContext) -> Iterator[Graph]:
        """Yield the graphs of a role, and report problems.

        :param given: the values that are passed to it
        """
        recording.known_label(f"{INCLUDE}{name}")
        if self._library is None:
            from statecfg.dialects.role_files import Library

            self._library = Library(self.root)
        files = self._library.get(name, given.position)
        uses = roles.chain(context.role)
        if files is None or files.role.directory in [use.directory for use in uses] or len(uses) > MAX_INCLUDES:
            if files is not None:
                names = [use.name for use in reversed(uses)]
                detail = " → ".join([*names, name][-8:])
                locations = (given.position, *(use.position for use in uses))
                report(problem("SC0317", detail, "remove one of these includes", *locations))
            yield gap()
            return
        with collecting() as problems:
            graphs = list(self._of_role(files, given, context))
        report(*(roles.named_in(item, name) for item in problems))
        yield from graphs

    def _of_role(self, files: RoleFiles, given: Given, context: EntryContext) -> Iterator[Graph]:
        role = files.role
        variables = files.bound(given, context.top)
        if variables is None:
            yield gap()
            return
        use = RoleUse(role.name, role.directory, variables, given.position, context.role, role.templates)
        label = f"{INCLUDE}{role.name}"
        chain = (*context.chain, (role.position.file, given.position))
        origins = {
            key: ("passed", given.location(key)) if key in given.values else ("its own value", files.positions[key])
            for key in variables
        }
        scope = recording.scope(f"role {role.name}", variables, origins, None)
        inside = EntryContext(chain, context.top, (*context.labels, label), use, scope)
        yield from self.graphs(files.entries, {**context.top, **variables}, inside)
        for function in files.functions:
            host = current_host() or _host(context.top)
            own = host.with_vars(host.vars.extended(variables))
            with recording.within(use, (*context.labels, label)):
                graphs = list(graphs_of(function(own), f"the role {role.name}", role.position))
            yield from graphs

    def _steps(self, name: Any, entry: YamlEntry, chain: Chain) -> tuple[str, Chain]:
        """Return the path of the file to include, and the chain with it; "" for an invalid file."""
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
            report(problem("SC0301", f"{name} does not exist", help_text, entry.argument.location))
            return "", chain
        return path, steps

    def _file(self, path: str) -> tuple[list[YamlEntry], Located] | None:
        if path in self._files:
            return self._files[path]
        self._files[path] = None
        inputs.note("include", path)
        root = None
        with reporting():
            root = yaml_text.read(path, SHAPE)
        if root is None:
            return None
        variables: Located = {}
        if isinstance(root, tree.Mapping):
            yaml_tree.check_keys(root, "an included file", ("vars", "resources"))
            variables = named_variables(root.items.get("vars"))
            entries = self.read(root.items.get("resources"), path)
        else:
            entries = self.read(root, path)
        self._files[path] = entries, variables
        return self._files[path]


def _host(top: Values) -> HostContext:
    """Return the host of a play's variables, for a play that is evaluated without a run."""
    variables = {name: value for name, value in top.items() if name not in ("host", "hosts", "groups", "output")}
    host = top["host"]
    return HostContext(host["name"], Vars(variables), tuple(host["groups"]), facts=host["facts"])


def _know_file(argument: tree.YamlNode) -> None:
    """Record the label of an included file, which is known even if the file is not included on this host."""
    name = argument.value if isinstance(argument, tree.Scalar) and argument.tag is None else None
    if isinstance(name, str) and not templates.is_template(name):
        recording.known_label(f"{INCLUDE}{name}")


def _taken(name: str, node: tree.YamlNode, value: Any) -> Any:
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


def _placed(node: tree.YamlNode, value: Any) -> Any:
    return positions.Written(value, node.location) if type(value) is str else value


def _about_templates(reported: Problem, entry: YamlEntry) -> Problem:
    """Return a problem with another help if a template returned a value for a string, which is already in quotes."""
    nodes = (entry.argument, *entry.attrs.values())
    written = [node for node in nodes if isinstance(node, tree.Scalar) and isinstance(node.value, str)]
    locations = {entry.locations.get(name, node.location) for name, node in entry.attrs.items() if node in written}
    is_templated = any(templates.is_template(node.value) for node in written)
    concerned = is_templated and reported.locations[0] in (entry.location, *locations)
    if concerned and reported.help.startswith("put it in quotes"):
        return replace(reported, help="convert it to a string: `{{ … | string }}`")
    if concerned and reported.help == AS_STRING:  # a list or a map
        return replace(reported, help="convert it to a string: `{{ … | join(',') }}` or `{{ … | tojson }}`")
    return reported
