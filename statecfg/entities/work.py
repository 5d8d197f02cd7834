"""Execute tasks of entities step by step: start a step, let a worker run it, record its outcome.

Every function runs inside the caller's transaction, so that the outcome of a step and its consequences are recorded
together.
"""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

from statecfg.entities import model, rows, schemas, selection, urn
from statecfg.entities.invocation import FAILED, BehaviorResult, Invocation, InvocationTasks, InvokedEntity
from statecfg.entities.model import (
    DELETE,
    ERROR,
    EXECUTE,
    IN_DELETION,
    POST_CREATE,
    POST_DELETE,
    POST_UPDATE,
    PRE_DELETE,
    QUEUED,
    RESOLUTION_ERROR,
    RESOLVED,
    RUNNING,
    SUCCESS,
    Behavior,
    EntityType,
    Principal,
)
from statecfg.store import records
from statecfg.store.entities import queue as entity_queue
from statecfg.store.entities import tables

if TYPE_CHECKING:
    from sqlalchemy import Row

    from statecfg.store.connection import Connection

LONGEST = 4096  # characters of a behavior's short strings
CANNOT_RESOLVE = "RDE_CANNOT_RESOLVE"
DETAILS = 64 << 10  # characters of its long strings, the newest
SINGLE = {"create": POST_CREATE, "update": POST_UPDATE, "invoke": ""}  # work with a single step, shown by its own task
# The columns of a running task without work.
_RUNNING_TASK: Mapping[str, Any] = {
    **dict.fromkeys(("parent", "details", "log", "worker"), ""),
    **dict.fromkeys(("result", "error", "ended", "work", "due", "invocation")),
    "status": RUNNING,
    "progress": 1,
    "serial": False,
}


class TaskWork(TypedDict):
    """The work of a task.

    `hooks`: whether hooks run. `behavior`, `arguments`, `metadata`: what `invoke` runs. `values`, `revision`: what
    `mark` changes besides the state, if the entity still has this revision. Once a step has begun: `hook`, `invocation`
    and `task` (the task that shows the step: this one or a subtask).
    """

    do: Literal["create", "update", "mark", "delete", "invoke"]
    hooks: NotRequired[bool]
    behavior: NotRequired[str]
    arguments: NotRequired[Mapping[str, Any]]
    metadata: NotRequired[Mapping[str, Any]]
    values: NotRequired[Mapping[str, Any]]
    revision: NotRequired[int]
    hook: NotRequired[str]
    invocation: NotRequired[str]
    task: NotRequired[str]


def add_task(
    connection: Connection, principal: Principal, entity: Row[Any], name: str, operation: str, now: float, **values: Any
) -> str:
    """Add a task about an entity (a row); return its id.

    :param values: columns that differ from those of a running task without work
    """
    row = {**_RUNNING_TASK, "id": urn.task(), "name": name, "operation": operation, "created": now, "started": now}
    row |= {"entity": entity.id, "entity_name": entity.name}
    row |= {"user": principal.name, "org": principal.org, "role": principal.role, **values}
    records.add(connection, tables.task, row)
    return str(row["id"])


def queue(
    connection: Connection,
    principal: Principal,
    entity: Row[Any],
    name: str,
    operation: str,
    work: TaskWork,
    now: float,
) -> str:
    """Add a task with work; return its id. The tasks of an entity run one at a time, except `invoke`."""
    id = urn.task()
    if work["do"] in SINGLE:
        work = {**work, "hook": SINGLE[work["do"]], "invocation": str(uuid.uuid4()), "task": id}
    return add_task(
        *(connection, principal, entity, name, operation, now),
        id=id,
        status=QUEUED,
        progress=0,
        started=None,
        due=0.0,
        work=work,
        serial=work["do"] != "invoke",
        invocation=work.get("invocation"),
    )


def finish(connection: Connection, id: str, now: float, outcome: BehaviorResult) -> None:
    """Record that a task has ended. If the outcome has a public message, the task's log gets the original one."""
    values = {"status": SUCCESS if outcome.ok else ERROR, "ended": now, "due": None, "worker": ""}
    error = None if outcome.ok else outcome.error or failed("It failed.").error
    if error is not None and outcome.public is not None:
        task = records.find(connection, tables.task, id=id)
        texts = [task.log if task is not None else "", error["message"]]
        values["log"] = newest("\n".join(filter(None, texts)))
        error = {**error, "message": outcome.public}
    values |= {"result": outcome.result, "error": error}
    if outcome.ok:
        values["progress"] = 100
    records.change(connection, tables.task, values, id=id, ended=None)
    if id.endswith("00"):  # for one of 256 tasks
        entity_queue.forget_old(connection)


def failed(message: str, minor_code: str = FAILED) -> BehaviorResult:
    """Return the outcome of a task that could not do its work."""
    return BehaviorResult.failed(message, minor_code, 400)


def major_code(given: Any) -> int:
    """Return the majorErrorCode that a behavior gave; 500 if it is not a number."""
    return int(given) if re.fullmatch(r"[0-9]{1,9}", str(given), re.ASCII) else 500


def invoked(behavior: str, entity: Row[Any]) -> str:
    """Return the text of a task that shows an invocation."""
    return f"Invoked {behavior} {entity.name}({entity.id})"


def type_of(connection: Connection, entity: Row[Any]) -> EntityType:
    """Return the type of an entity (a row)."""
    return rows.entity_type(rows.need(connection, tables.entity_type, entity.type))


# Entities


def change(connection: Connection, entity: Row[Any], now: float, **values: Any) -> Any:
    """Change an entity (a row) and increase its revision; return the new row."""
    values |= {"revision": entity.revision + 1, "modified": now}
    records.change(connection, tables.entity, values, id=entity.id)
    return records.find(connection, tables.entity, id=entity.id)


def resolve(connection: Connection, entity: Row[Any], now: float) -> Any:
    """Validate an entity (a row) with its type's schema and record the new state; return the new row.

    This also ends the tasks createDefinedEntity that wait for it.
    """
    message = schemas.error(type_of(connection, entity).schema, entity.content, nulls=True)
    state = RESOLUTION_ERROR if message else RESOLVED
    if (entity.state, entity.message) != (state, message):
        entity = change(connection, entity, now, state=state, message=message)
    outcome = failed(message, CANNOT_RESOLVE) if message else BehaviorResult(True)
    for row in records.every(connection, tables.task, entity=entity.id, name=model.CREATE, ended=None):
        finish(connection, row.id, now, outcome)
    return entity


def remove(connection: Connection, entity: Row[Any]) -> None:
    """Remove an entity (a row) and its access controls from the store."""
    records.drop(connection, tables.grant, object=entity.id)
    records.drop(connection, tables.entity, id=entity.id)


# Steps


def advance(connection: Connection, task: Row[Any], now: float) -> Invocation | None:
    """Return the current step of a task (a row), and begin it if necessary; None if the task has ended."""
    if task.due is None:
        return None
    entity = records.find(connection, tables.entity, id=task.entity)
    if entity is None:
        # It was deleted without hooks in the meantime. A deletion has succeeded, any other task has failed.
        gone = BehaviorResult(True) if task.name == DELETE else failed("The entity was deleted.", "RDE_ENTITY_GONE")
        _end(connection, task, now, gone)
        return None
    if task.work["do"] in ("create", "update") and entity.state == IN_DELETION:
        text = "The hook was not run: the entity is marked for deletion."
        _end(connection, task, now, failed(text, "RDE_ENTITY_IN_DELETION"))
        return None
    if "hook" not in task.work:
        _begin(connection, task, entity, now)
        begun = records.find(connection, tables.task, id=task.id)
        if begun is None or begun.ended is not None:
            return None
        task = begun
    invocation = _invocation(connection, task, entity)
    if invocation is not None and invocation.applies and invocation.rejected:
        _reject(connection, task, entity, invocation, now)
        return None
    if invocation is None:
        text = "The behavior was not run: the entity's type no longer has it."
        outcome = failed(text, "RDE_INVALID_BEHAVIOR_SCOPE")
        enter_outcome(connection, task, task.work["invocation"], outcome, now)
        return None
    _runs(connection, task.id, now)
    if task.work["task"] != task.id:
        _runs(connection, task.work["task"], now)
    return invocation


def _reject(connection: Connection, task: Row[Any], entity: Row[Any], invocation: Invocation, now: float) -> None:
    """End a task whose playbook would be applied with content that the type's schema rejects. No host is contacted."""
    if task.work["do"] == "create":
        resolve(connection, entity, now)
    outcome = failed(invocation.rejected, CANNOT_RESOLVE)
    finish(connection, invocation.tasks.own, now, outcome)
    finish(connection, task.id, now, outcome)


def enter_outcome(connection: Connection, task: Row[Any], invocation: str, outcome: BehaviorResult, now: float) -> bool:
    """Record the outcome of the current step of a task (a row); return False if this is not its current step."""
    if task.ended is not None or not task.work or task.work.get("invocation") != invocation:
        return False
    work: TaskWork = task.work
    finish(connection, work["task"], now, outcome)
    records.drop(connection, tables.token, invocation=invocation)
    entity = records.find(connection, tables.entity, id=task.entity)
    if work["do"] == "create" and entity is not None and entity.state != IN_DELETION:
        if outcome.ok:
            resolve(connection, entity, now)
        else:
            change(connection, entity, now, state=RESOLUTION_ERROR, message=_hook_failed(POST_CREATE, outcome))
    elif work["do"] in ("mark", "delete"):
        if not outcome.ok:
            code = outcome.error["minorErrorCode"] if outcome.error else FAILED
            finish(connection, task.id, now, failed(_hook_failed(work["hook"], outcome), code))
        elif work["hook"] == PRE_DELETE and entity is not None:
            _allowed(connection, task, entity, now)
        else:
            if entity is not None:
                remove(connection, entity)
            finish(connection, task.id, now, BehaviorResult(True))
    return True


def _begin(connection: Connection, task: Row[Any], entity: Row[Any], now: float) -> None:
    """Begin a deletion, or a move to IN_DELETION. Without a hook, also complete it."""
    hook = type_of(connection, entity).hooks.get(PRE_DELETE)
    if task.work["hooks"] and hook is not None and entity.state != IN_DELETION:
        _step(connection, task, entity, PRE_DELETE, hook, now)
    else:
        _allowed(connection, task, entity, now)


def _allowed(connection: Connection, task: Row[Any], entity: Row[Any], now: float) -> None:
    """Continue a deletion, or a move to IN_DELETION, after the PreDelete hook allowed it or if there is none."""
    work: TaskWork = task.work
    if work["do"] == "mark":
        # If the entity has changed since the request, maybe by the hook itself, keep that change.
        values = work["values"] if entity.revision == work["revision"] else {}
        change(connection, entity, now, **{**values, "state": IN_DELETION, "message": ""})
        finish(connection, task.id, now, BehaviorResult(True))
        return
    hook = type_of(connection, entity).hooks.get(POST_DELETE) if work["hooks"] else None
    if hook is None:
        remove(connection, entity)
        finish(connection, task.id, now, BehaviorResult(True))
        return
    if entity.state != IN_DELETION:
        entity = change(connection, entity, now, state=IN_DELETION, message="")
    _step(connection, task, entity, POST_DELETE, hook, now)


def _step(connection: Connection, task: Row[Any], entity: Row[Any], hook: str, ref: str, now: float) -> None:
    """Begin a step of a task: add a subtask that shows the behavior, and name it in the task's text."""
    behavior = rows.effective(connection, type_of(connection, entity), ref)
    assert behavior is not None
    invocation = str(uuid.uuid4())
    user = Principal(task.user, task.org, task.role)
    part = {"parent": task.id, "status": QUEUED, "progress": 0, "started": None, "invocation": invocation}
    id = add_task(connection, user, entity, EXECUTE, invoked(behavior.name, entity), now, **part)
    named = f"{hook} hook: {id}."
    before = f"{task.operation} " if task.operation.startswith(f"{PRE_DELETE} hook: ") else ""
    step = {"hook": hook, "invocation": invocation, "task": id}
    values = {"operation": before + named, "work": {**task.work, **step}}
    records.change(connection, tables.task, values, id=task.id)


def _invocation(connection: Connection, task: Row[Any], entity: Row[Any]) -> Invocation | None:
    """Return the invocation of a step; None if the behavior was removed, or the entity's new type version lacks it."""
    work: TaskWork = task.work
    entity_type = type_of(connection, entity)
    ref = work["behavior"] if work["do"] == "invoke" else entity_type.hooks.get(work["hook"])
    behavior = None if ref is None else rows.effective(connection, entity_type, ref)
    execution = None if behavior is None else _execution(connection, behavior)
    if behavior is None or execution is None:
        return None
    plays = execution.get("type") == "Playbook"
    return Invocation(
        id=work["invocation"],
        tasks=InvocationTasks(work["task"], parent="" if work["task"] == task.id else task.id),
        behavior=behavior,
        hook=work["hook"],
        execution=execution,
        entity=InvokedEntity(entity.id, entity.name, entity.type, entity.content),
        arguments=work.get("arguments") or {},
        metadata=work.get("metadata") or {},
        user=Principal(task.user, task.org, task.role),
        rejected=schemas.error(entity_type.schema, entity.content, nulls=True) if plays else "",
    )


def _execution(connection: Connection, behavior: Behavior) -> Mapping[str, Any] | None:
    """Return the execution of a behavior, or of the behavior that it selects; None if that no longer exists."""
    if behavior.execution.get("type") != selection.REFERENCE:
        return behavior.execution
    target = selection.target(connection, behavior.execution)
    return None if target is None else dict(target.execution)


def _runs(connection: Connection, id: str, now: float) -> None:
    values = {"status": RUNNING, "progress": 1, "started": now}
    records.change(connection, tables.task, values, id=id, status=QUEUED)


def _end(connection: Connection, task: Row[Any], now: float, outcome: BehaviorResult) -> None:
    """End a task and its current step, which will not run."""
    if task.work.get("task", task.id) != task.id:
        finish(connection, task.work["task"], now, failed("The entity was deleted.", "RDE_ENTITY_GONE"))
    finish(connection, task.id, now, outcome)


def _hook_failed(hook: str, outcome: BehaviorResult) -> str:
    message = outcome.public or (outcome.error["message"] if outcome.error else "")
    return f"{hook} hook failed: {plain(message or 'no reason was given')}"


def plain(text: Any) -> str:
    """Return a behavior's short text as the store can hold it: truncated, and without U+0000 and lone surrogates."""
    short = storable(str(text))
    return short if len(short) <= LONGEST else f"{short[:LONGEST]}…"


def newest(text: Any) -> str:
    """Return the end of a behavior's long text, as the store can hold it."""
    long = storable(str(text))
    return long if len(long) <= DETAILS else f"…{long[-DETAILS:]}"


def storable(value: Any) -> Any:
    """Return JSON without values that the store or answers can't hold: U+0000, lone surrogates, NaN and infinities."""
    if isinstance(value, str):
        return value.replace("\0", "").encode(errors="replace").decode()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {storable(key): storable(item) for key, item in value.items()}
    return [storable(item) for item in value] if isinstance(value, list) else value
