"""The names until 0.3 of public modules. Node types of users import them, here and on hosts."""

from __future__ import annotations

from statecfg.remote.graph.above import above

# Each of these modules has the names that it had in 0.3.0, wherever they are now.
MOVED = {
    "memory": "machine.memory",
    "model": "graph.model",
    "nodetype": "graph.nodetype",
    "ops": "graph.ops",
    "values": "graph.values",
    "world": "machine.world",
}


def warn(name: str, elsewhere: str = "") -> None:
    """Tell the user that a module has a new name, where it is imported.

    :param name: the full name until 0.3
    :param elsewhere: a sentence about those of its names that the new module lacks
    """
    if not hasattr(above, "declare"):
        return  # on a host, where no user would see it
    import warnings

    package, _, former = name.rpartition(".")
    text = "%s is now %s.%s. %sThe former name will be removed in 1.0."
    warnings.warn(text % (name, package, MOVED[former], elsewhere and elsewhere + " "), FutureWarning, stacklevel=3)
