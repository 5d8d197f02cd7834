"""Chains of a graph. toposort visits all waiting nodes once per layer, so statecfg gives it each chain as one node.

In a chain, each node except the first requires only the previous one, and nothing else requires the previous one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Requirements = Mapping[str, set[str]]


def contracted(required: Requirements) -> tuple[dict[str, set[str]], dict[str, list[str]]]:
    """Return the requirements between chains, and the nodes of each chain. The first node of a chain is its name.

    :param required: node → the nodes that it requires, without itself
    """
    dependents: dict[str, int] = {}
    for names in required.values():
        for name in names:
            dependents[name] = dependents.get(name, 0) + 1
    next_of: dict[str, str] = {}
    for name, names in required.items():
        if len(names) == 1:
            (previous,) = names
            if previous in required and dependents[previous] == 1:
                next_of[previous] = name
    inner = set(next_of.values())
    chains: dict[str, list[str]] = {}
    for first in required.keys() - inner:
        chain = [first]
        while chain[-1] in next_of:
            chain.append(next_of[chain[-1]])
        if required[first].isdisjoint(chain):
            chains[first] = chain
    chain_of = {name: first for first, chain in chains.items() for name in chain}
    for name in required.keys() - chain_of.keys():  # nodes of cycles stay as they are, so that toposort finds them
        chains[name], chain_of[name] = [name], name
    between = {first: {chain_of.get(name, name) for name in required[first]} for first in chains}
    return between, chains


def expanded(between: Requirements, chains: Mapping[str, Iterable[str]], required: Requirements) -> Requirements:
    """Return the requirements of the nodes of some chains, restricted to these nodes."""
    names = {name for first in between for name in chains[first]}
    return {name: required[name] & names for name in names}
