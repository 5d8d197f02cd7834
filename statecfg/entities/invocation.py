"""Runs of behaviors, and their results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from statecfg.entities.model import POST_DELETE, PRE_DELETE, Behavior, Json, Principal


@dataclass(frozen=True, slots=True)
class Invocation:
    """A run of a behavior.

    :param id: equal for all attempts, so that it serves as an idempotency key
    :param task_id: id of its task executeBehavior
    :param parent_task_id: id of the task that it belongs to, "" for none
    :param claimed: id of the task that the worker leased: `parent_task_id` if there is one, otherwise `task_id`
    :param behavior: the type's override if there is one, otherwise the interface's behavior
    :param kind: a hook (one of `HOOKS`), or "" if a user invoked it
    :param execution: the behavior's, including `_internal_*` and `_secure_*`
    :param entity: the current content of the entity
    :param arguments, metadata: given by the user; {} for hooks
    :param user: the user whose request caused it
    :param rejected: why the content is invalid by the type's schema, "" if it is valid
    """

    id: str
    task_id: str
    parent_task_id: str
    claimed: str
    behavior: Behavior
    kind: str
    execution: Json
    entity_id: str
    entity_name: str
    type_id: str
    entity: Json
    arguments: Json
    metadata: Json
    user: Principal
    rejected: str = ""

    @property
    def destroys(self) -> bool:
        """Whether a playbook removes its resources: always in deletion hooks, otherwise if its properties say so."""
        properties = self.execution.get("execution_properties") or {}
        return self.kind in (PRE_DELETE, POST_DELETE) or properties.get("destroy") is True

    @property
    def applies(self) -> bool:
        """Whether a playbook is applied, with the content as its variables."""
        return self.execution.get("type") == "Playbook" and not self.destroys


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a behavior.

    :param ok: whether it succeeded
    :param result: any JSON value; a string is shown unchanged, any other value as JSON
    :param error: majorErrorCode (int), minorErrorCode, message; if `ok` is false
    :param public: the message for users who are not administrators, if `error` has names of hosts or addresses
    """

    ok: bool
    result: Any = None
    error: Json | None = None
    public: str | None = None
