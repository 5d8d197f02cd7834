"""Include roles in plays that are written in Python or Hy."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from statecfg.graph import recording, schema
from statecfg.graph.graph import Graph, merge_graphs
from statecfg.playbook.plays import current_host
from statecfg.playbook.role import Given
from statecfg.problems import InvalidInput, positions, problem
from statecfg.remote.graph.wrong_values import show, type_words

if TYPE_CHECKING:
    from statecfg.dialects.yaml_entries import Entries

_ENTRIES: dict[str, Entries] = {}  # root of the project → what reads its roles


def forget() -> None:
    """Read roles again when a playbook includes them, because they may have changed."""
    _ENTRIES.clear()


def include(name: str, vars: Mapping[Any, Any] | None = None, /, **parameters: Any) -> Graph:
    """Return the graph of a role: `include("web", port=8080)`.

    Call it while a play is evaluated, and return the graph from the play.

    :param name: the name of the role
    :param vars: parameters as a map, as in Hy: `(include "web" {:port 8080})`
    :param parameters: parameters by keyword
    :raises InvalidInput: the role or a parameter is wrong, or no play is being evaluated
    """
    location = positions.of_frame(sys._getframe(1))
    host = current_host()
    if host is None:
        detail = f"the role {show(name)} is included while no play is evaluated"
        raise InvalidInput([problem("SC0512", detail, "call include(…) in the function of a play", location)])
    if not isinstance(name, str) or not name:
        detail = f"include takes the name of a role, got {type_words(name)}: {show(name)}"
        raise InvalidInput([problem("SC0324", detail, 'write include("web")', location)])
    given = {schema.plain(key): value for key, value in {**(vars or {}), **parameters}.items()}
    entries = import_module("statecfg.dialects.yaml_entries")
    root = import_module("statecfg.dialects.modules").current_root()
    if root not in _ENTRIES:
        _ENTRIES[root] = entries.Entries(root)
    top = {**host.in_templates, **host.vars.unrecorded}
    context = entries.EntryContext((), top, (), recording.role())
    return merge_graphs(*_ENTRIES[root].role(name, Given(given, location), context))
