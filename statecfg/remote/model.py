"""The name of `statecfg.remote.graph.model` until 0.3."""

from __future__ import annotations

from typing import Any as Json  # noqa: F401  # users may import it

from statecfg.remote.former import new_name
from statecfg.remote.graph.above import above
from statecfg.remote.graph.model import *  # noqa: F403  # all of its names
from statecfg.remote.graph.model import HostNode as Node  # noqa: F401  # users may import it
from statecfg.remote.graph.results import OK as OK
from statecfg.remote.graph.results import Result as Result
from statecfg.remote.graph.results import error as error
from statecfg.remote.graph.results import ok as ok

above.renamed(
    __name__,
    new_name(
        __name__,
        "Its Json is typing.Any. Its Node is HostNode. Its OK, Result, error and ok are in "
        "statecfg.remote.graph.results",
    ),
)
