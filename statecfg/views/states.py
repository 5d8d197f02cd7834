"""States of resources, entities and units, in words. Reports, `--json` and the API use the names of the states."""

from __future__ import annotations

from collections.abc import Mapping

from statecfg.remote.graph.names import State
from statecfg.views.lines import Style

RESOURCE: Mapping[str, str] = {
    State.PRE_CREATED: "not completely applied yet",
    State.RESOLUTION_ERROR: "the last apply did not complete it",
    State.IN_DELETION: "its removal is not complete",
}
ENTITY: Mapping[str, tuple[str, Style]] = {
    State.PRE_CREATED: ("not resolved yet", ""),
    State.RESOLVED: ("resolved", "add"),
    State.RESOLUTION_ERROR: ("could not be resolved", "remove"),
    State.IN_DELETION: ("being deleted", "change"),
}


def of_resource(state: str) -> str:
    """Return the meaning of a resource's state; "" if the resource is resolved."""
    return "" if state in ("", State.RESOLVED) else RESOURCE.get(state, state)


def of_entity(state: str) -> str:
    """Return the meaning of an entity's state."""
    return ENTITY.get(state, (state, ""))[0]


def style(state: str) -> Style:
    """Return the style for an entity's state."""
    return ENTITY.get(state, (state, ""))[1]


def of_unit(state: str) -> str:
    """Return the meaning of a unit's state, such as "start failed"."""
    from statecfg.unit_rules.workflow import ERRORS  # only for units, which most runs don't have

    return next((f"{hook} failed" for hook, error in ERRORS.items() if error == state), state)
