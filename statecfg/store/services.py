"""Services, their units and relations in the store: all that others use of it, from one place.

What ends in `_in` works on a connection inside a transaction of the caller's; the rest makes one of its own. The
parts are `service_ends` (deploy, destroy), `unit_steps` (what is due, and what came of it), `unit_reads` (what hooks read and say)
and `service_changes` (what people change by hand).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from statecfg.store.unit_records import Changes, Declared, DeclaredRelation, Json, Step, UnitRow


def deploy_in(
    connection: Connection,
    project: str,
    playbook: str,
    declared: Sequence[Declared],
    relations: Sequence[DeclaredRelation],
    addresses: Mapping[str, Mapping[str, str]],
    prune: bool,
    now: float,
) -> None: raise NotImplementedError
def leave_in(connection: Connection, project: str, playbook: str, now: float) -> None: raise NotImplementedError
def addressed_in(connection: Connection, project: str, host: str, addresses: Mapping[str, str]) -> set[int]: raise NotImplementedError
def units_in(connection: Connection, project: str, playbook: str | None = None, host: str | None = None) -> list[UnitRow]: raise NotImplementedError
def next_in(connection: Connection, unit_id: int, run: str) -> Step | None: raise NotImplementedError
def over_in(connection: Connection, unit_id: int) -> bool: raise NotImplementedError
def commit_in(connection: Connection, step: Step, run: str, changes: Changes, now: float) -> set[int]: raise NotImplementedError
def fail_in(connection: Connection, step: Step, run: str, error: str, now: float) -> None: raise NotImplementedError
def gone_in(connection: Connection, unit_id: int, now: float) -> set[int]: raise NotImplementedError
def read_in(connection: Connection, unit_id: int, node: Sequence[str], secrets: Json | None = None) -> dict[str, Any]: raise NotImplementedError
def port_in(connection: Connection, unit_id: int, open: bool, text: str) -> None: raise NotImplementedError
def status_in(connection: Connection, unit_id: int, status: str, message: str) -> None: raise NotImplementedError
def log(store: Any, project: str, entries: Sequence[tuple[float, str, str, int, str]]) -> None: raise NotImplementedError
