"""The name of `statecfg.remote.graph.ops` until 0.3."""

from __future__ import annotations

from statecfg.remote.former import warn
from statecfg.remote.graph.ops import *  # noqa: F403  # all of its names

warn(__name__)
