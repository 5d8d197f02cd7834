"""The name of `statecfg.remote.graph.nodetype` until 0.3."""

from __future__ import annotations

from statecfg.remote.former import warn
from statecfg.remote.graph.nodetype import *  # noqa: F403  # all of its names

TYPE_CHECKING = False
if TYPE_CHECKING:  # as in 0.3; otherwise, hosts would get its module
    from statecfg.remote.graph.values import NodeOptions as NodeOptions

warn(__name__)
