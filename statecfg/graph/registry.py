"""Finding node types by name, on the controller."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib import import_module
from types import FrameType

from statecfg.problems import InvalidInput, positions, problem, report, suggest
from statecfg.problems.positions import SourceLocation
from statecfg.remote.graph.nodetype import REGISTRY, NodeType


def named(name: str, place: SourceLocation) -> NodeType[...] | None:
    """Return the node type of a name, loading it from resources/; report at `place` and return None for no such."""
    if name in REGISTRY:
        return REGISTRY[name]
    if name in known():
        kind: NodeType[...] = getattr(import_module("statecfg.resources"), name)
        return kind
    report(_problem(name, place).problems[0])
    return None


def known() -> list[str]:
    """Return the names of all node types that there are, loaded or not, sorted."""
    return sorted({*REGISTRY, *import_module("statecfg.resources").available()})


def unknown_node_type(name: str, frame: FrameType | None) -> InvalidInput:
    """Return the error of a name that no node type has, at the place of the frame that wanted it."""
    return _problem(name, positions.of_frame(frame))


def _problem(name: str, place: SourceLocation) -> InvalidInput:
    hint = suggest(name, known(), "there are")
    hint += f"; a new one is a file resources/{name}.py or .hy in the project" if name.isidentifier() else ""
    return InvalidInput([problem("SC0106", f"there is no node type `{name}`", hint, place)])


def no_node_type_in(name: str, path: str) -> InvalidInput:
    """Return the error of a file in resources/ that does not define the node type it is named after."""
    help = f"a file in resources/ is named after its node type; one that only helps others begins with `_`: _{name}"
    return InvalidInput([problem("SC0119", f"{path} defines no node type `{name}`", help, SourceLocation(path, 1))])


def report_twice(names: Iterable[str], directory: str) -> None:
    """Report that a project's resources/ holds node types whose names are taken."""
    help = "give it another name: two types of one name could not be told apart"
    report(
        *(
            problem("SC0120", f"there is a node type `{name}` already", help, SourceLocation(_file(directory, name), 1))
            for name in names
        )
    )


def _file(directory: str, name: str) -> str:
    python = os.path.join(directory, name + ".py")
    return python if os.path.exists(python) else os.path.join(directory, name + ".hy")
