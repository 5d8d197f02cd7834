"""Runs of behaviors, and their results."""

from __future__ import annotations

from typing import Any, Self, TypedDict

from statecfg.entities.model import POST_DELETE, PRE_DELETE, Behavior, Json, Principal
from statecfg.problems.frozen import dataclass

FAILED = "RDE_BEHAVIOR_FAILED"


class TaskError(TypedDict):
    """The error of a task."""

    majorErrorCode: int
    minorErrorCode: str
    message: str


class Update(TypedDict, total=False):
    """New values of the task that shows a running behavior: percent, two strings, and the log for administrators."""

    progress: int
    details: str
    operation: str
    log: str


@dataclass(frozen=True, slots=True)
class InvocationTasks:
    """The ids of the tasks of an invocation.

    :param own: of its task executeBehavior
    :param parent: of the task that it belongs to, "" for none
    """

    own: str
    parent: str

    @property
    def claimed(self) -> str:
        """The task that the worker leased."""
        return self.parent or self.own


@dataclass(frozen=True, slots=True)
class InvokedEntity:
    """The entity of an invocation.

    :param type: id of its type
    :param content: its current content
    """

    id: str
    name: str
    type: str
    content: Json


@dataclass(frozen=True, slots=True)
class Invocation:
    """A run of a behavior.

    :param id: equal for all attempts, so that it serves as an idempotency key
    :param behavior: the type's override if there is one, otherwise the interface's behavior
    :param hook: a hook (one of `HOOKS`), or "" if a user invoked it
    :param execution: the behavior's, including `_internal_*` and `_secure_*`
    :param arguments, metadata: given by the user; {} for hooks
    :param user: the user whose request caused it
    :param rejected: why the content is invalid by the type's schema, "" if it is valid
    """

    id: str
    tasks: InvocationTasks
    behavior: Behavior
    hook: str
    execution: Json
    entity: InvokedEntity
    arguments: Json
    metadata: Json
    user: Principal
    rejected: str = ""

    @property
    def destroys(self) -> bool:
        """Whether a playbook removes its resources: always in deletion hooks, otherwise if its properties request
        it."""
        properties = self.execution.get("execution_properties") or {}
        return self.hook in (PRE_DELETE, POST_DELETE) or properties.get("destroy") is True

    @property
    def applies(self) -> bool:
        """Whether a playbook is applied, with the content as its variables."""
        return self.execution.get("type") == "Playbook" and not self.destroys


@dataclass(frozen=True, slots=True)
class BehaviorResult:
    """The result of a behavior.

    :param ok: whether it succeeded
    :param result: any JSON value; a string is shown unchanged, any other value as JSON
    :param error: if `ok` is false
    :param public: the message for users who are not administrators, if `error` has names of hosts or addresses
    """

    ok: bool
    result: Any = None
    error: TaskError | None = None
    public: str | None = None

    @classmethod
    def failed(cls, message: str, minor_code: str = FAILED, major_code: int = 500) -> Self:
        """Return the outcome of a behavior that failed."""
        return cls(False, error={"majorErrorCode": major_code, "minorErrorCode": minor_code, "message": message})
