"""The units of a run: whether there are any, what their hosts receive, and what reports show."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.names import HostStatus, Mode
from statecfg.run.deployment import check_hosts
from statecfg.run.report_model import HostData
from statecfg.store import StoreError, opened, projects

if TYPE_CHECKING:
    import threading

    from statecfg.remote.graph.model import Blob
    from statecfg.run.deployment import Deployment
    from statecfg.run.job import Job
    from statecfg.run.options import Expected
    from statecfg.run.report_model import Unit
    from statecfg.store.database import Store
    from statecfg.units.coordinator import Coordinator
    from statecfg.units.state import Tell  # most runs have no units, and don't load their code

Json = Mapping[str, Any]


def of_run(
    store: Store, deployment: Deployment | None, mode: str, run: str, jobs: Sequence[Job], cancel: threading.Event
) -> UnitsInRun | None:
    """Return the units of a run; None if it has none.

    :raises StoreError: the store can't be used
    :raises InvalidInput: too many hosts have units
    """
    if deployment is None or mode not in Mode.ACTING:
        return None
    if not has_units(store, deployment):
        return None
    from statecfg.units.coordinator import Coordinator  # most runs have no units

    units = UnitsInRun(Coordinator(store, deployment, mode, run, addresses(jobs), cancel))
    if not _hosts_with_units(units.coordinator):
        return None
    units.coordinator.orders.mark = store.attempt(
        lambda connection: str(projects.ensure(connection, deployment.project)["mark"])
    )
    return units


def has_units(store: Store | None, deployment: Deployment) -> bool:
    """Return whether a playbook declares services, or has units of services that it no longer declares.

    :param store: None for an empty store
    """
    if deployment.services or store is None:
        return bool(deployment.services)
    with store.reading() as connection:
        return projects.has_units(connection, deployment.project, deployment.playbook)


def owner(store: Store, deployment: Deployment | None, mode: str) -> Json:
    """Return what a host needs to refuse a destroy if its units belong to another store; {} if no check is needed.

    Reason: a store without units of a playbook that declares services may be the wrong one.
    """
    if mode != Mode.DESTROY or deployment is None or not deployment.services:
        return {}
    with store.reading() as connection:
        mark = projects.mark(connection, deployment.project)
    return {"project": deployment.project, "mark": mark, "store": store.global_label}


def addresses(jobs: Sequence[Job]) -> dict[str, dict[str, str]]:
    """Return host → the addresses of its units that the inventory defines."""
    by_host = {}
    for job in jobs:
        defined = {key: job.host.vars.get(key.replace("-", "_")) for key in ("private-address", "public-address")}
        by_host[job.host.name] = {key: value for key, value in defined.items() if isinstance(value, str)}
    return by_host


@contextmanager
def looked_ahead(store: Store | None, deployment: Deployment, mode: str, jobs: Sequence[Job]) -> Iterator[Coordinator]:
    """Yield a coordinator with the prediction of what a run would do with units.

    :param store: None for an empty store
    :raises InvalidInput: too many hosts have units
    """
    import threading

    from statecfg.units.coordinator import Coordinator

    with tempfile.TemporaryDirectory(prefix="statecfg-") as directory:
        used = store if store is not None else opened(url=str(Path(directory) / "store.db"))
        try:
            coordinator = Coordinator(used, deployment, mode, "ahead", addresses(jobs), threading.Event())
            _hosts_with_units(coordinator)
            with used.reading() as connection:
                coordinator.orders.mark = projects.mark(connection, deployment.project)
            yield coordinator
        finally:
            if store is None:
                used.close()


def _hosts_with_units(coordinator: Coordinator) -> int:
    """Return the number of hosts with units, also of units whose services are no longer declared.

    :raises InvalidInput: there are too many
    """
    hosts = sum(bool(units) for units in coordinator.orders.ahead.names.values())
    check_hosts(hosts)
    return hosts


def _hint(failed: Sequence[Unit]) -> str:
    """Return a hint about failed units.

    :param failed: their reports
    """
    if all(unit.get("settled") is False for unit in failed):
        return (
            "The hooks of these units react to each change with another change. Let them set only values that differ."
        )
    log = f"statecfg service log {failed[0]['unit']}" if len(failed) == 1 else "statecfg service log"
    return f"The next apply runs the failed hooks again. `{log}` shows their output."


class UnitsInRun:
    """The units of one run, for the event bus. `problems` collects errors of the store."""

    def __init__(self, coordinator: Coordinator) -> None:
        self.coordinator = coordinator
        self.problems = coordinator.problems

    def with_units(self, job: Job, expected: Expected | None) -> Job:
        """Return a job with the order for its host's units, and the content of their charms.

        :param expected: of a saved plan; a host with other due hooks refuses the run. None: no saved plan
        """
        contents: dict[str, Blob] = {}
        units = self.coordinator.orders.of_host(job.host.name, contents)
        definition = replace(job.definition, blobs={**job.definition.blobs, **contents})
        another = expected is not None and self.due(job.host.name) != list(expected.units.get(job.host.name, ()))
        return replace(job, definition=definition, units=units, differs=("units",) if another else ())

    def due(self, host: str) -> list[Unit]:
        """Return the hooks that are due on a host, for the report of its plan."""
        return self.coordinator.orders.due(host)

    def store_declared(self) -> None:
        """Store what the playbook declares. Called before each host is changed."""
        try:
            self.coordinator.begin()
        except StoreError as wrong:
            self.problems.append(str(wrong))

    def take(self, host: str, frame: Json, tell: Tell, address: str) -> None:
        """Handle a frame of a host about its units."""
        if self.problems and frame["type"] == "units":
            tell({"type": "units-go", "stop": self.problems[0]})
        else:
            self.coordinator.take(host, frame, tell, address)

    def finished(self, host: str, report: HostData) -> None:
        """Add its units to a host's report. If a hook of a unit failed, the host has failed."""
        self.coordinator.session_ended(host)
        reported = self.coordinator.report(host)
        if not reported or report.get("declined"):
            return
        report["units"] = reported
        failed = [unit for unit in reported if unit.get("error")]
        if failed and report["status"] == HostStatus.OK:
            names = ", ".join(unit["unit"] for unit in failed)
            what = f"units failed: {names}" if len(failed) > 1 else f"the unit {names} failed"
            hint = _hint(failed)
            report["status"], report["error"] = HostStatus.FAILED, {"summary": what, "detail": "", "hint": hint}

    def close(self) -> None:
        """End the coordinator's thread."""
        self.coordinator.close()
