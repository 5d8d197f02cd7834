"""Find node types by name, on the controller."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib import import_module
from types import FrameType

from statecfg.problems import InvalidInput, Problem, positions, problem, report, suggest
from statecfg.problems.positions import SourceLocation
from statecfg.remote.graph.nodetype import REGISTRY, NodeType


def find(name: str, location: SourceLocation) -> NodeType[...] | None:
    """Return the node type with a name. It is loaded from resources/ if necessary.

    :param location: where an unknown name is reported
    :returns: the node type; None if there is none and problems are being collected
    :raises InvalidInput: there is none and nothing collects problems
    """
    if name in REGISTRY:
        return REGISTRY[name]
    if name in names():
        node_type: NodeType[...] = getattr(import_module("statecfg.resources"), name)
        return node_type
    report(_unknown(name, location))
    return None


def names() -> list[str]:
    """Return the names of all node types, loaded or not, sorted."""
    return sorted({*REGISTRY, *import_module("statecfg.resources").available()})


def unknown_node_type(name: str, frame: FrameType | None) -> InvalidInput:
    """Return the error for a name that no node type has.

    :param frame: the frame that used the name; its innermost user code is the source location
    """
    return InvalidInput([_unknown(name, positions.of_frame(frame))])


def _unknown(name: str, location: SourceLocation) -> Problem:
    hint = suggest(name, names(), "available")
    hint += f"; to define it, create resources/{name}.py or .hy in the project" if name.isidentifier() else ""
    return problem("SC0106", f"`{name}` is not a node type", hint, location)


def no_node_type_in(name: str, path: str) -> InvalidInput:
    """Return the error for a file in resources/ that does not define the node type that it is named after."""
    help = f"name the file after its node type; if other files import it, begin its name with `_`: _{name}"
    return InvalidInput([problem("SC0119", f"{path} defines no node type `{name}`", help, SourceLocation(path, 1))])


def report_twice(names: Iterable[str], directory: str) -> None:
    """Report that a project's resources/ contains node types whose names are already taken.

    :param names: the names that are taken
    :param directory: the project's resources/
    """
    help = "give it another name: two node types can't have the same name"
    report(
        *(
            problem("SC0120", f"the node type `{name}` already exists", help, SourceLocation(_file(directory, name), 1))
            for name in names
        )
    )


def _file(directory: str, name: str) -> str:
    python = os.path.join(directory, name + ".py")
    return python if os.path.exists(python) else os.path.join(directory, name + ".hy")
