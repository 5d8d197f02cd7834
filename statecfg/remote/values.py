"""The name of `statecfg.remote.graph.values` until 0.3."""

from __future__ import annotations

from statecfg.remote.former import new_name
from statecfg.remote.graph.above import above
from statecfg.remote.graph.value_rules import MAX_PATH as MAX_PATH
from statecfg.remote.graph.value_rules import SPECIAL as SPECIAL
from statecfg.remote.graph.values import *  # noqa: F403  # all of its names
from statecfg.remote.graph.wrong_values import MAX_SHOWN as MAX_SHOWN
from statecfg.remote.graph.wrong_values import Wrong as Wrong
from statecfg.remote.graph.wrong_values import show as show
from statecfg.remote.graph.wrong_values import type_words as kind_of  # noqa: F401  # users may import it

above.renamed(
    __name__,
    new_name(
        __name__,
        "Its MAX_PATH and SPECIAL are in statecfg.remote.graph.value_rules, its MAX_SHOWN, Wrong, show and kind_of "
        "(now type_words) in statecfg.remote.graph.wrong_values",
    ),
)
