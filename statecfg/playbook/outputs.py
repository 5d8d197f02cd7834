"""Connect the nodes of a definition that use values of other nodes with these nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyrsistent import PVector

from statecfg.graph import host_text_rules, on_host, schema
from statecfg.graph.layers import check
from statecfg.graph.nodes import Node
from statecfg.graph.opaque import Composed
from statecfg.graph.ordering import NodeOrder, ordered
from statecfg.graph.outputs import CODE, Output
from statecfg.graph.value import Value
from statecfg.playbook.wire_node import WireNode
from statecfg.problems import InvalidInput, Problem, problem, suggest
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.graph.wrong_values import PublicSecret, show

Taken = Mapping[str, Mapping[str, Sequence[Output]]]  # node → attribute → the values of nodes in it

_ENDS = "\n\r\\"  # what ends a line, or continues it in the next one
_GENERATE = "use the secret itself: !secret {generate: KIND, name: NAME}"


def connected(
    nodes: list[Node],
    owners: Mapping[str, list[Node]],
    layers: Sequence[Sequence[WireNode]],
    taken: Taken,
    problems: list[Problem],
) -> tuple[NodeOrder, list[list[WireNode]]]:
    """Return the order and the layers of a definition in which nodes require the nodes whose values they use.

    :param nodes: the nodes of the graph
    :param owners: identity → the nodes that have it
    :param layers: the packed nodes
    :param taken: the values that they use
    :param problems: receives the problems
    """
    names = {node.provides: node for node in nodes}
    packed = {node["provides"]: node for layer in layers for node in layer}
    reasons: dict[str, dict[str, str]] = {}
    for name, attributes in taken.items():
        for value in dict.fromkeys(value for values in attributes.values() for value in values):
            wrong = _problem(names[name], value, names)
            if wrong is not None:
                problems.append(wrong)
            else:
                reasons.setdefault(name, {}).setdefault(value.node, f"its value `{value.output}`")
        problems.extend(filter(None, (_refused(names[name], attribute) for attribute in attributes)))
    joined = [_requiring(node, reasons.get(node.provides, {})) for node in nodes]
    try:
        problems.extend(check(joined))
        order = ordered(joined, owners)
    except InvalidInput as error:
        problems.extend(error.problems)
        return NodeOrder([nodes], {}, ()), [list(layer) for layer in layers]
    for node in joined:
        required = [*node.requires, *order.automatic.get(node.provides, ())]
        if required:
            packed[node.provides]["requires"] = required
    arranged = [[packed[node.provides] for node in layer] for layer in order.layers]
    for wire in (wire for layer in arranged for wire in layer if wire["provides"] in reasons):
        _describe(wire, names[wire["provides"]], taken[wire["provides"]], packed, problems)
    automatic = {name: dict(more) for name, more in order.automatic.items()}
    for name, more in reasons.items():
        own = {source: reason for source, reason in more.items() if source not in names[name].requires}
        automatic[name] = {**own, **automatic.get(name, {})}
    return NodeOrder(order.layers, automatic, order.left_out), arranged


def _problem(node: Node, value: Output, names: Mapping[str, Node]) -> Problem | None:
    """Return what is wrong with the use of a value, None if nothing is."""
    source, what = names.get(value.node), f"{node.provides} uses the value `{value.output}` of {value.node}"
    if source is None:
        if value.node.startswith("generate:"):
            return problem(CODE, f"{what}, which the playbook does not declare", _GENERATE, *node.positions)
        help_text = suggest(value.node, [name for name in names if name != node.provides][:1000], "the nodes are")
        return problem(CODE, f"{what}, which does not exist", help_text, *node.positions)
    if source.broken:
        return None
    if value.node == node.provides:
        return problem(CODE, f"{what}: itself", "use values of other nodes", *node.positions)
    if "for_each_host" in source.options:
        help_text = "use values of nodes that the host does not repeat"
        return problem(CODE, f"{what}, which is repeated for each item on the host", help_text, *node.positions)
    node_type = REGISTRY.get(source.type)
    valid = node_type.outputs if node_type is not None else {}
    if value.output in valid:
        return None
    help_text = suggest(value.output, valid, f"{source.type} produces")
    if source.type == "generate":
        help_text = _GENERATE
    elif not valid:
        help_text = f"nodes of the type {source.type} produce no values"
    return problem(CODE, f"{what}, which does not produce it", help_text, *node.positions)


def _requiring(node: Node, sources: Mapping[str, str]) -> Node:
    new = [name for name in sources if name not in node.requires]
    return node.replace(requires=node.requires.extend(new)) if new else node


def _describe(
    wire: WireNode,
    node: Node,
    attributes: Mapping[str, Sequence[Output]],
    packed: Mapping[str, WireNode],
    problems: list[Problem],
) -> None:
    """Tell the host which references to replace, and by which values.

    :param wire: the packed node, whose sources are complete
    :param node: the node as it is declared
    :param problems: receives the problems
    """
    inserts: dict[str, list[Any]] = {}
    hides = {*wire.get("hides", ())}
    for name, values in attributes.items():
        for value in values:
            source = packed[value.node]
            if source.get("hides"):
                hides.add(name)
                help = _public(node, name)
                if help is not None:
                    detail = f"`{name}` of {node.provides} contains the value `{value.output}` of {value.node}, which "
                    detail += "uses a secret; every user of the host can read it there"
                    problems.append(problem("SC0425", detail, help, *node.positions))
            earlier = inserts.setdefault(value.reference, [value.node, value.output, ""])
            earlier[2] += "".join(one for one in _refused_ends(node, name, value) if one not in earlier[2])
            options = source.setdefault("options", {})
            options["produces"] = sorted({*options.get("produces", ()), value.output})
    wire["options"] = {**wire.get("options", {}), "inserts": inserts}
    if hides:
        wire["hides"] = sorted(hides)


class _Hidden(str):
    """Text that an attribute can only tell from a secret by its value."""

    __slots__ = ()
    is_secret = True

    def reveal(self) -> str:
        """Return the text."""
        return str(self)

    def secrets(self) -> tuple[_Hidden, ...]:
        """Return the secrets in it: itself."""
        return (self,)


def _public(node: Node, name: str) -> str | None:
    """Return where to put a secret instead if every user of the host can read an attribute, otherwise None."""
    node_type = REGISTRY.get(node.type)
    validate = node_type.methods.get("validate") if node_type is not None else None
    if validate is None:
        return None
    attrs = {key: value for key, value in node.attrs.items() if key != "type"}
    if name not in attrs:  # `to_wire` rendered it
        attrs = {key: value for key, value in attrs.items() if key not in ("source", "template", "vars")}
    try:
        validate({**attrs, name: _Hidden("x1")})
    except PublicSecret as secret:
        return secret.help
    except ValueError:
        return None
    return None


def _refused_ends(node: Node, name: str, value: Output) -> str:
    r"""Return what a value must not contain: line breaks, `\` if its end must not be one, `$` for everything but
    harmless letters, because programs run the attribute or read it as rules.

    :param name: an attribute of the packed node, which `to_wire` may have made of others
    """
    declared = (
        [name] if name in node.attrs else [key for key, item in node.attrs.items() if value in on_host.found(item)]
    )
    found = "".join(end for end in _ENDS if not all(_accepts(node, each, end) for each in declared))
    return found + ("$" if _is_code(node, name, value) else "")


def _is_code(node: Node, name: str, value: Output) -> bool:
    """Return whether programs run a value in an attribute, or read it as rules."""
    given = node.attrs.get(name)
    if isinstance(given, Composed) and str(given.pieces[0]).startswith("#!"):
        return True
    codes = host_text_rules.commands_in(name, given)
    return host_text_rules.is_code(node.type, name, node.attrs) or any(value in on_host.found(item) for item in codes)


def _accepts(node: Node, name: str, end: str) -> bool:
    """Return whether an attribute accepts a value that contains the end of a line, or continues a line."""
    validate = node_type.methods.get("validate") if (node_type := REGISTRY.get(node.type)) is not None else None
    text = "a\\" if end == "\\" else f"a{end}b"
    try:
        _checked(node, name, text)
    except ValueError:
        return False
    if validate is None:
        return True
    given = {key: item for key, item in node.attrs.items() if key != "type"}
    for known, attrs in (
        (True, {**given, name: _with_text(given[name], "ab")}),
        (False, {**given, name: _with_text(given[name], text)}),
    ):
        try:
            validate(attrs)
        except ValueError:
            return known  # it refuses every text, for another reason
    return True


def _refused(node: Node, name: str) -> Problem | None:
    """Return a problem if statecfg must know an attribute before the run, to check or to convert it."""
    try:
        if _checked(node, name, "x1"):
            return None
        why = "statecfg converts it before the run"
    except ValueError as error:
        why = f"statecfg checks it before the run: {error}"
    detail = f"`{name}` of {node.provides} contains a value that exists only on the host: {show(node.attrs[name])}"
    return problem("SC0426", detail, f"write a value that the playbook knows; {why}", *node.positions)


def _checked(node: Node, name: str, text: str) -> bool:
    """Check an attribute with a string in place of the values; return whether it stays as it is.

    :raises ValueError: if it is not valid
    """
    node_type = REGISTRY.get(node.type)
    field = schema.of(node_type).fields.get(name) if node_type is not None else None
    value = node.attrs.get(name)
    if field is None or value is None:
        return True  # `to_wire` made the attribute, such as the content of a template
    given = _with_text(value, text)
    return bool(_with_text(field.type.check(given), text) == given)


def _with_text(value: Any, text: str) -> Any:
    """Return an attribute as plain text, lists and maps, with a string in place of every value that is unknown here."""
    if isinstance(value, Composed):
        return "".join(piece if isinstance(piece, str) else text for piece in value.pieces)
    if isinstance(value, Value):
        return text
    if isinstance(value, Mapping):
        return {key: _with_text(item, text) for key, item in value.items()}
    return [_with_text(item, text) for item in value] if isinstance(value, (list, tuple, PVector)) else value
