"""Services, their units and relations in the store: the interface for other packages.

Functions whose names end in `_in` work on a connection inside a transaction of the caller. The others open their own.
"""

from statecfg.store.service_changes import (
    ServicesSnapshot,
    add_unit,
    forget_units,
    get_settings,
    relate,
    remove_unit,
    resolve,
    set_settings,
    show,
    show_in,
    unrelate,
)
from statecfg.store.service_ends import addressed_in, deploy_in, leave_in
from statecfg.store.units.reads import in_relations, lines, log, port_in, read_in, status_in
from statecfg.store.units.rows import unit_in, units_in
from statecfg.store.units.steps import commit_in, endless_in, fail_in, gone_in, next_in, over_in

__all__ = [
    "ServicesSnapshot",
    "add_unit",
    "addressed_in",
    "commit_in",
    "deploy_in",
    "endless_in",
    "fail_in",
    "forget_units",
    "get_settings",
    "gone_in",
    "in_relations",
    "leave_in",
    "lines",
    "log",
    "next_in",
    "over_in",
    "port_in",
    "read_in",
    "relate",
    "remove_unit",
    "resolve",
    "set_settings",
    "show",
    "show_in",
    "status_in",
    "unit_in",
    "units_in",
    "unrelate",
]
