"""Predict the hooks that a run would run, without storing anything."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.graph.names import Mode
from statecfg.remote.units.hooks import DISPATCH
from statecfg.store import services
from statecfg.unit_rules.workflow import UPGRADE

if TYPE_CHECKING:
    from statecfg.run.deployment import Deployment
    from statecfg.run.report_model import UnitHook
    from statecfg.store.connection import Connection
    from statecfg.store.database import Store
    from statecfg.store.units.records import DueStep


class _TakeBack(StatecfgError):
    """Rolls back a transaction."""


@dataclass(frozen=True)
class Ahead:
    """What a run would do with units.

    :param due: host → the due hooks in their order, in the format of reports
    :param names: host → its units, each with its service
    :param early: names of the units that version 0.3.0 created
    :param changes: unit → "remove" or "upgrade"
    """

    due: dict[str, list[UnitHook]]
    names: dict[str, list[tuple[str, str]]]
    early: set[str] = field(default_factory=set)
    changes: dict[str, str] = field(default_factory=dict)


def look(store: Store, deployment: Deployment, mode: str, run: str, hosts: Sequence[str]) -> Ahead:
    """Return what a run would do with units. Nothing is stored.

    The hooks are simulated: each succeeds and sets nothing. The effects of real settings cannot be known in advance.

    :param mode: "apply", "prune" or "destroy"
    :param run: the run's id
    :param hosts: the hosts of the run
    """
    ahead = Ahead({name: [] for name in hosts}, {name: [] for name in hosts})
    try:
        with store.transaction() as connection:
            enter_in(connection, deployment, mode, hosts)
            units = [unit for unit in services.units_in(connection, deployment.project) if unit.host in ahead.due]
            for unit in units:
                ahead.names[unit.host].append((unit.name, unit.service))
                ahead.early.update([unit.name] if unit.origin.early else ())
            for unit, step in _through(connection, units, run, ahead.changes):
                hook = as_report(step)
                if _is_missing(step, deployment):
                    hook["missing"] = True
                ahead.due[unit.host].append(hook)
            raise _TakeBack
    except _TakeBack:
        return ahead


def enter_in(connection: Connection, deployment: Deployment, mode: str, hosts: Sequence[str]) -> None:
    """Store what the playbook declares; for a destroy, store that its units on these hosts must be removed."""
    now = time.time()
    if deployment.as_is:
        return
    project, playbook = deployment.project, deployment.playbook
    if mode == Mode.DESTROY:
        services.leave_in(connection, project, playbook, tuple(hosts), now)
    else:
        prune = deployment.prune or mode == Mode.PRUNE
        declared, relations = deployment.services, deployment.relations
        services.deploy_in(connection, project, playbook, declared, relations, {}, prune, now)


def _through(
    connection: Connection, units: Sequence[Any], run: str, changes: dict[str, str]
) -> Iterator[tuple[Any, DueStep]]:
    """Yield the due hooks as if each succeeded, those of a unit in order. Change the store in this transaction.

    :param changes: receives what happens to units; see `Ahead`
    """
    there, moved = list(units), True
    while moved:
        moved = False
        for unit in list(there):
            step = services.next_in(connection, unit.id, run)
            if step is not None:
                services.commit_in(connection, step, run, {}, time.time())
                if step.hook == UPGRADE:
                    changes[unit.name] = "upgrade"
                yield unit, step
            elif unit.dying and services.over_in(connection, unit.id):
                services.gone_in(connection, unit.id, time.time())
                there.remove(unit)
                changes[unit.name] = "remove"
            else:
                continue
            moved = True  # a unit that had nothing to do may have new events


def _is_missing(step: DueStep, deployment: Deployment) -> bool:
    """Return whether the charm does not contain a hook. If another charm will run it, this is unknown: return False."""
    charm = deployment.charms.get(step.service)
    if step.service not in deployment.charms or step.handled.digest != (charm.digest if charm is not None else ""):
        return False
    paths = {DISPATCH, *(f"hooks/{name}" for name in step.hooks)}
    return charm is None or not paths & set(charm.files)


def as_report(step: DueStep) -> UnitHook:
    """Return a hook in the format of reports."""
    hook: UnitHook = {"unit": step.unit, "hook": step.hook}
    if step.relation is not None:
        hook["relation"], hook["remote"] = step.relation.id, step.relation.remote
    return hook
