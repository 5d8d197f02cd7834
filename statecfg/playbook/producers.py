"""Add the nodes that produce values to a definition, and the requirements of the nodes that use the values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from statecfg.graph import generated
from statecfg.graph.declare import declare_at
from statecfg.graph.nodes import Node
from statecfg.graph.recording import recording
from statecfg.problems import Problem, problem
from statecfg.resources import generate

if TYPE_CHECKING:
    from statecfg.graph.generated import GeneratedSecret
    from statecfg.playbook.wire_node import WireNode


def first(
    layers: Sequence[Sequence[WireNode]],
    users: Mapping[str, Sequence[GeneratedSecret]],
    pack: Callable[[Node], WireNode],
    problems: list[Problem],
) -> list[list[WireNode]]:
    """Return the layers with a first layer of the nodes that generate secrets.

    :param layers: the packed nodes; those that use a generated secret then require its node
    :param users: node name → the generated secrets in it. Nodes of type `generate` are among the names
    :param pack: packs a node
    :param problems: receives the problems
    """
    packed = {node["provides"]: node for layer in layers for node in layer if node["provides"] in users}
    nodes = {name: node for name, node in packed.items() if node["type"] == "generate"}
    declared = {node["attrs"]["name"]: node for node in nodes.values() if "attrs" in node}
    secrets: dict[str, GeneratedSecret] = {}
    for secret in (secret for used in users.values() for secret in used):
        if secrets.setdefault(secret.name, secret).attrs != secret.attrs:
            _differ(problems, secret.name, secrets[secret.name], secret)
    for name, secret in secrets.items():
        with recording():
            made = declare_at(generate, [name], secret.attrs, secret.location).node
        packed_node = pack(made)
        if name not in declared:
            declared[name] = nodes[made.provides] = packed_node
        elif packed_node.get("attrs") != declared[name].get("attrs"):
            _differ(problems, name, secret)
    for name, node in declared.items():
        node["attrs"]["reference"] = generated.reference(name, node["attrs"])
        if node.get("requires"):
            detail = f"{node['provides']} requires another node, but the nodes that use its value may come first"
            problems.append(problem("SC0422", detail, "remove `requires` and `restart_on`"))
        if "when_host" in node.get("options", {}):
            detail = f"{node['provides']} has a condition, but the nodes that use its value need it on every host"
            problems.append(problem("SC0422", detail, "remove `when_host`"))
    for name, used in users.items():
        producing = [declared[secret.name]["provides"] for secret in used]
        if producing and name in packed:
            packed[name]["requires"] = list(dict.fromkeys([*packed[name].get("requires", ()), *producing]))
    rest = [[node for node in layer if node["provides"] not in nodes] for layer in layers]
    return [[nodes[name] for name in sorted(nodes)], *(layer for layer in rest if layer)]


def _differ(problems: list[Problem], name: str, *secrets: GeneratedSecret) -> None:
    detail = f"the declarations of the generated secret `{name}` differ"
    help_text = "write the same `kind`, `length` and `encoding` in all of them, or give one of them another name"
    problems.append(problem("SC0422", detail, help_text, *(secret.location for secret in secrets)))
