"""The names until 0.3 of public modules. Node types of users import them, here and on hosts."""

from __future__ import annotations

# Each of these modules has the names that it had in 0.3.0, wherever they are now.
MOVED = {
    "memory": "machine.memory",
    "model": "graph.model",
    "nodetype": "graph.nodetype",
    "ops": "graph.ops",
    "values": "graph.values",
    "world": "machine.world",
}


def new_name(name: str, elsewhere: str = "") -> str:
    """Return the present name of a module, for `above.renamed`.

    :param name: the full name until 0.3
    :param elsewhere: sentences about those of its names that the present module lacks, without the last period
    """
    package, _, former = name.rpartition(".")
    return f"{package}.{MOVED[former]}{elsewhere and '. ' + elsewhere}"
