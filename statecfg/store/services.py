"""Services, their units and relations in the store: the interface for other packages.

Functions whose names end in `_in` work on a connection inside a transaction of the caller. The others open their own.
"""

from statecfg.store.service_changes import (
    Snapshot,
    add_unit,
    forget_units,
    get_settings,
    projects,
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
from statecfg.store.units.records import (
    Change,
    Changes,
    Declared,
    DeclaredRelation,
    LogLine,
    RelationRow,
    ServiceRow,
    StepRelation,
    UnitError,
    UnitRelation,
    UnitRow,
    UnitStep,
)
from statecfg.store.units.rows import unit_in, units_in
from statecfg.store.units.steps import again_in, commit_in, endless_in, fail_in, gone_in, next_in, over_in, resolved_in

__all__ = [
    "Change",
    "Changes",
    "Declared",
    "DeclaredRelation",
    "LogLine",
    "RelationRow",
    "ServiceRow",
    "Snapshot",
    "StepRelation",
    "UnitError",
    "UnitRelation",
    "UnitRow",
    "UnitStep",
    "add_unit",
    "addressed_in",
    "again_in",
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
    "projects",
    "read_in",
    "relate",
    "remove_unit",
    "resolve",
    "resolved_in",
    "set_settings",
    "show",
    "show_in",
    "status_in",
    "unit_in",
    "units_in",
    "unrelate",
]
