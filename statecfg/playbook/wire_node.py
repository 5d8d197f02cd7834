"""The form in which a node is sent to a host."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class WireNode(TypedDict):
    """A node as it is sent to hosts. `hides` names the attributes that contain secrets.

    `also` has the source locations of declarations that were merged with the one at `position`. Hosts ignore it.
    """

    provides: str
    type: str
    requires: NotRequired[list[str]]
    triggers: NotRequired[list[str]]
    produces_ops: NotRequired[list[str]]
    attrs: NotRequired[dict[str, Any]]
    options: NotRequired[dict[str, Any]]
    hides: NotRequired[list[str]]
    position: NotRequired[str]
    also: NotRequired[list[str]]
