"""The name of `statecfg.hooks.http.calls` until 0.3. Tests of users may import it."""

from __future__ import annotations

from statecfg.hooks.http.calls import *  # noqa: F403  # all of its names
from statecfg.hooks.http.calls import call as call
from statecfg.problems.former_names import warn_of_former

warn_of_former("statecfg.hooks.http_hooks", "statecfg.hooks.http.calls")
