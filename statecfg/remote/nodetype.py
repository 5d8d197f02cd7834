"""The name of `statecfg.remote.graph.nodetype` until 0.3."""

from __future__ import annotations

from statecfg.remote.former import new_name
from statecfg.remote.graph.above import above
from statecfg.remote.graph.nodetype import *  # noqa: F403  # all of its names
from statecfg.remote.graph.nodetype import FACETS as TABLES  # noqa: F401  # users may import it
from statecfg.remote.graph.nodetype import Facet as Table  # noqa: F401  # as above
from statecfg.remote.graph.nodetype import facet as table  # noqa: F401  # as above

TYPE_CHECKING = False
if TYPE_CHECKING:  # as in 0.3; otherwise, hosts would get its module
    from statecfg.remote.graph.values import NodeOptions as NodeOptions

above.renamed(__name__, new_name(__name__, "Its TABLES, Table and table are FACETS, Facet and facet"))
