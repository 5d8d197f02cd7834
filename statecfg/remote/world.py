"""The name of `statecfg.remote.machine.world` until 0.3."""

from __future__ import annotations

from statecfg.remote.former import warn
from statecfg.remote.machine.world import *  # noqa: F403  # all of its names

warn(__name__)
