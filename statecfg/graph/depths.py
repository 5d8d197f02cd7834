"""Layers of names, in linear time."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from toposort import CircularDependencyError, toposort

# toposort visits all waiting nodes once per layer. Twenty layers of equal size take 10.5 visits per node.
VISITS = 12  # per node; what then waits is in so many layers that counting requirements is faster
PACE = 4  # layers after which `layers` estimates how many follow

Requirements = dict[str, set[str]]


def layers(required: Requirements) -> Iterator[Collection[str]]:
    """Yield the layers of names, each name in the earliest layer that its requirements allow.

    :param required: name → the names that it requires, without itself. Names that are only required are in the first
        layer
    :raises CircularDependencyError: after the other names, if names require each other in a cycle. Its `data` maps
        the names in and after cycles to the names that they require
    """
    done: set[str] = set()
    visits = 0
    for depth, layer in enumerate(toposort(required), 1):
        yield layer
        done |= layer
        waiting = max(len(required) - len(done), 0)
        visits += waiting
        is_deep = depth >= PACE and waiting * depth > 2 * VISITS * len(done)
        if is_deep or visits > VISITS * len(required):
            yield from _counted(required, done)
            return


def _counted(required: Requirements, done: set[str]) -> Iterator[list[str]]:
    """Yield the other layers. The last requirement of a name that gets its layer determines the layer of the name."""
    waiting = {name: names - done for name, names in required.items() if name not in done}
    dependents: dict[str, list[str]] = {}
    for name, names in waiting.items():
        for other in names:
            dependents.setdefault(other, []).append(name)
    missing = {name: len(names) for name, names in waiting.items()}
    layer = [name for name, count in missing.items() if not count]
    while layer:
        yield layer
        following = []
        for name in layer:
            for other in dependents.get(name, ()):
                missing[other] -= 1
                if not missing[other]:
                    following.append(other)
        layer = following
    stuck = {name: {other for other in waiting[name] if missing[other]} for name, count in missing.items() if count}
    if stuck:
        raise CircularDependencyError(stuck)
