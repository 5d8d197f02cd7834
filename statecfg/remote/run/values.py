"""Values that nodes produce: put them in place of their references in the attributes of other nodes.

This happens at a node's turn, before its check. So a plan sees the values as they will be, or knows after which node
they will be known. Only hosts whose definitions use such values get this module.
"""

from __future__ import annotations

import re
from typing import Any, Callable, Mapping, Optional

from statecfg.remote.graph.model import LEARNED, Blob, CheckError, HostNode, Unknown
from statecfg.remote.graph.nodetype import NodeType
from statecfg.remote.ledger.records import SAID
from statecfg.remote.machine.world import World
from statecfg.remote.run.plan import Plan

LARGEST = 65536  # characters of a value
HARMLESS = r"(?:[A-Za-z0-9_./:@+,=][A-Za-z0-9_./:@+,=~-]*)?\Z"
SHORTEST = 4  # characters of a secret value; shorter ones can't be masked


def fill(
    node: HostNode, nodes: Mapping[str, HostNode], types: Mapping[str, NodeType[...]], plan: Plan, world: World
) -> None:
    """Replace the references in a node's attributes.

    :param nodes: the nodes of the definition by name
    :param types: node types by name
    :param plan: the plan so far
    :param world: the host as the node sees it
    :raises Unknown: if a value will be known later
    :raises CheckError: if a value can't be known or can't be used
    """
    options = node.options
    written = options.setdefault("written", dict(node.attrs))
    values = {}
    for reference, (source, output, refused) in options["inserts"].items():
        what = f"the value {output} of {source}"
        function = types[nodes[source].type].outputs[output]
        value = values[reference] = value_of(nodes[source], function, plan, world, what)
        if len(value) > LARGEST or "\0" in value:
            raise CheckError(f"{what} can't be used: it has more than {LARGEST} characters or contains a NUL")
        if "$" in refused and not re.match(HARMLESS, value):
            raise CheckError(f"{what} can't be used in a unit or a rule: only letters, digits and _./:@+,=~- can")
        if any(end in value for end in refused if end in "\n\r"):
            raise CheckError(f"{what} can't be used here: it has several lines")
        if "\\" in refused and value.endswith("\\"):
            raise CheckError(f"{what} can't be used here: it ends with a backslash")
        if nodes[source].hides:
            conceal(value, f"{output} of {source}")
    for name, attr in written.items():
        node.attrs[name] = filled(attr, values, name in node.hides)


def conceal(value: str, what: str) -> None:
    """Mask a secret value in everything that is sent and stored from now on.

    :param what: the value, for messages and its mask
    :raises CheckError: if it is too short for that
    """
    if len(value) < SHORTEST:
        raise CheckError(f"the {what} is a secret with fewer than {SHORTEST} characters, which can't be masked")
    LEARNED[value] = re.sub("[^A-Za-z0-9_.-]+", "-", what)
    data = value.encode("utf-8", "surrogateescape")
    if data not in Blob.secrets:
        Blob.secrets = (*Blob.secrets, data)


def value_of(source: HostNode, function: Callable[..., Any], plan: Plan, world: World, what: str) -> str:
    """Return a value as the node whose turn it is sees it.

    :param source: the node that produces it
    :param function: returns it, see `NodeType.produces`
    :param what: the value, for messages
    :raises Unknown: if it will be known after the node has acted
    :raises CheckError: if it can't be known
    """
    name = source.provides
    said: Optional[Mapping[str, str]] = None
    if function.__code__.co_argcount > 2:
        said = plan.said.get(name)
        step = plan.steps.get(name)
        if said is None and step is not None and step.acts:
            raise Unknown(name, what)
        if said is None:
            resource = plan.recorded.get(name)
            said = (resource.memory or {}).get(SAID) if resource is not None else None
    try:
        value: Optional[str] = function(*(source, world, said or {})[: function.__code__.co_argcount])
    except OSError as problem:
        raise CheckError(f"{what} is not known: {problem.strerror or problem}") from None
    if value is None:
        why = f"{what} is not known: the node has nothing to do, and this host has no record of the value"
        if source.hides:
            why += ", because the node uses a secret"
        raise CheckError(why + "; let the node act once more, or in every run")
    return value


def filled(value: Any, values: Mapping[str, str], secret: bool = True) -> Any:
    """Return an attribute with values in place of references.

    :param values: reference → value
    :param secret: whether the result is a secret
    """
    if isinstance(value, str):
        for reference in values:
            value = value.replace(reference, values[reference])
    elif isinstance(value, Blob) and (value.data is not None or value.path is not None):
        data = text = value.read()
        for reference in values:
            text = text.replace(reference.encode(), values[reference].encode("utf-8", "surrogateescape"))
        if text != data:
            value = Blob.of(text)
            value.secret = secret or None
    elif isinstance(value, dict):
        return {key: filled(item, values, secret) for key, item in value.items()}
    elif isinstance(value, list):
        return [filled(item, values, secret) for item in value]
    return value
