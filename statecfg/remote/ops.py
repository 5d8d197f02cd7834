"""The name of `statecfg.remote.graph.ops` until 0.3."""

from __future__ import annotations

from statecfg.remote.former import new_name
from statecfg.remote.graph.above import above
from statecfg.remote.graph.ops import *  # noqa: F403  # all of its names

above.renamed(__name__, new_name(__name__))
