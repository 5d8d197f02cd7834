"""Behaviors by type: validate their definitions and run them.

Types: `noop`, `WebHook` (statecfg.entities.webhook), `Function` (statecfg.entities.functions) and `Playbook`
(statecfg.entities.playbooks). Other types can be defined, as clients of the original do, but not invoked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from statecfg.entities import disclosure, functions, playbooks, processes, selection, webhook
from statecfg.entities.invocation import FAILED, BehaviorResult, Invocation, Update
from statecfg.entities.work import major_code, storable
from statecfg.playbook.project import Project
from statecfg.problems import suggest
from statecfg.remote.machine.redact import Redactor

TIMEOUT = 600.0  # default time limit of an invocation in seconds
LONGEST = 7 * 86_400.0
SUFFIXES = (".yml", ".yaml", ".py", ".hy")
UNSUPPORTED = "RDE_BEHAVIOR_EXECUTION_UNSUPPORTED"
_OF_PLAYBOOK = ("inventory", "hosts", "limit", "destroy", "invocation_timeout")
Report = Callable[[Update], None]  # receives progress of the task


def check(execution: Mapping[str, Any], project: Project | None = None) -> list[str]:
    """Return the problems of a behavior's execution; [] if it is valid.

    :param project: project that must contain the function or playbook; None: don't check that
    """
    behavior_type = execution.get("type")
    if not isinstance(execution.get(selection.SELECTABLE, False), bool):
        return [f"{selection.SELECTABLE} is {execution[selection.SELECTABLE]!r}: it must be true or false"]
    if behavior_type not in ("noop", "WebHook", "Function", "Playbook"):
        return []
    properties = execution.get("execution_properties")
    if properties is not None and not isinstance(properties, Mapping):
        return ["execution_properties is not an object"]
    problems = list(_wrong_timeout(properties or {}))
    root = project.root if project is not None else None
    if behavior_type == "WebHook":
        problems += webhook.problems(execution)
    elif behavior_type == "Function":
        problems += filter(None, [functions.problem(execution.get("id"), root)])
    elif behavior_type == "Playbook":
        problems += _wrong_playbook(execution.get("id"), properties or {}, root)
    return problems


def _wrong_timeout(properties: Mapping[str, Any]) -> Iterator[str]:
    timeout = properties.get("invocation_timeout", TIMEOUT)
    if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not 1 <= timeout <= LONGEST:
        yield f"invocation_timeout is {timeout!r}: it must be a number of seconds from 1 to {LONGEST:.0f}"


def _wrong_playbook(id: Any, properties: Mapping[str, Any], root: Path | None) -> Iterator[str]:
    for key, value in properties.items():
        value_type: type = bool if key == "destroy" else str
        if key not in _OF_PLAYBOOK:
            yield f"a Playbook has no property {key!r}; {suggest(key, _OF_PLAYBOOK, 'it has')}"
        elif key != "invocation_timeout" and not isinstance(value, value_type):
            yield f"{key} is {value!r}: it must be {'true or false' if value_type is bool else 'a string'}"
    if not isinstance(id, str) or not id.endswith(SUFFIXES) or "\0" in id:
        yield f"the id of a Playbook is the path of one in the project, such as playbooks/site.yml, not {id!r}"
        return
    for name in (id, properties.get("inventory")):
        if isinstance(name, str):
            yield from _wrong_path(name, root)
    if isinstance(properties.get("hosts"), str):
        yield from playbooks.wrong_hosts(properties["hosts"])


def undeclared(execution: Mapping[str, Any]) -> list[str]:
    """Return what a new behavior must declare in addition to the rules of `check`.

    Behaviors of earlier versions lack it and still run; they reach the hosts that their playbook names.
    """
    properties = execution.get("execution_properties") or {}
    if execution.get("type") != "Playbook" or "{{" not in str(properties.get("limit", "")) or "hosts" in properties:
        return []
    return ["limit is a template of the entity; declare in `hosts` which hosts the playbook may reach"]


def _wrong_path(name: str, root: Path | None) -> Iterator[str]:
    path = Path(name)
    if path.is_absolute() or ".." in path.parts:
        yield f"{name!r} is outside the project"
    elif root is not None and not functions.is_there(root / path):
        files = sorted(str(file.relative_to(root)) for file in (root / path).parent.glob("*") if file.is_file())
        yield f"{name} does not exist in the project; {suggest(name, files, 'available') or 'write one'}"
    elif root is not None and not (root / path).resolve().is_relative_to(root.resolve()):
        yield f"{name!r} is outside the project"


def run(
    invocation: Invocation,
    project: Project,
    store: str,
    stop: threading.Event,
    update: Report,
    token: Callable[[], str],
) -> BehaviorResult | None:
    """Run a behavior and return its outcome; None if it was stopped and must run again.

    :param store: URL of the store, for runs of playbooks; "" for the project's
    :param stop: set to stop it early
    :param update: receives `progress`, `details` and `operation` of the task during the run
    :param token: makes the token of `actAsToken`
    """
    execution = invocation.execution
    # A missing playbook must not prevent the deletion of an entity.
    problems = check(execution, None if invocation.destroys else project)
    mask = Redactor(dict(secrets(execution))).value
    if problems:
        public = f"The behavior's definition is no longer valid. {disclosure.ASK}"
        return replace(BehaviorResult.failed("; ".join(problems), "RDE_INVALID_BEHAVIOR_EXECUTION"), public=public)
    properties: Mapping[str, Any] = execution.get("execution_properties") or {}
    seconds = float(properties.get("invocation_timeout", TIMEOUT))
    act_as = token() if properties.get("actAsToken") is True else None
    if act_as is not None:
        mask = Redactor({**dict(secrets(execution)), "actAsToken": act_as}).value

    def tell(news: Update) -> None:
        update(mask(news))

    behavior_type = execution.get("type")
    if behavior_type == "noop":
        outcome: BehaviorResult | None = _noop(invocation, properties)
    elif behavior_type == "WebHook":
        outcome = webhook.run(invocation, seconds, tell, act_as)
    elif behavior_type == "Function":
        outcome = _function(invocation, project, seconds, stop, tell, act_as)
    elif behavior_type == "Playbook":
        outcome = _playbook(invocation, project, store, seconds, stop, tell)
    else:
        message = f"behaviors of the type {behavior_type!r} can't be run here: noop, WebHook, Function and Playbook can"
        outcome = BehaviorResult.failed(message, UNSUPPORTED, 501)
    try:
        if outcome is not None:
            outcome = replace(outcome, result=storable(mask(outcome.result)), error=storable(mask(outcome.error)))
        return outcome
    except RecursionError:
        return BehaviorResult.failed("the result is nested too deeply")


def secrets(value: Any, name: str = "secret") -> Iterator[tuple[str, str]]:
    """Yield name and value of each string below a key that starts with _secure_ or _internal_."""
    for key, item in value.items() if isinstance(value, Mapping) else ():
        if key.startswith(("_secure_", "_internal_")):
            yield from _texts(item, key)
        else:
            yield from secrets(item, key)
    for item in value if isinstance(value, list) else ():
        yield from secrets(item, name)


def _texts(value: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, f"{name}.{key}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts(item, f"{name}.{number}")
    elif isinstance(value, str):
        yield name, value


def _noop(invocation: Invocation, properties: Mapping[str, Any]) -> BehaviorResult:
    """Return the outcome that the behavior declares; by default, its input."""
    error = properties.get("returnError")
    if isinstance(error, Mapping):
        return BehaviorResult.failed(
            str(error.get("message") or "the behavior reported a failure"),
            str(error.get("minorErrorCode") or FAILED),
            major_code(error.get("majorErrorCode")),
        )
    if "returnValue" in properties:
        return BehaviorResult(True, properties["returnValue"])
    result = {
        "arguments": dict(invocation.arguments),
        "entityId": invocation.entity.id,
        "typeId": invocation.entity.type,
        "entity": dict(invocation.entity.content),
    }
    return BehaviorResult(True, result)


def _function(
    invocation: Invocation, project: Project, seconds: float, stop: threading.Event, update: Report, token: str | None
) -> BehaviorResult | None:
    context: dict[str, Any] = {
        "entity_id": invocation.entity.id,
        "entity_name": invocation.entity.name,
        "type_id": invocation.entity.type,
        "hook": invocation.hook,
        "user": invocation.user.name,
        "task_id": invocation.tasks.own,
        "invocation_id": invocation.id,
        "metadata": dict(invocation.metadata),
        "properties": dict(invocation.execution.get("execution_properties") or {}),
        "token": token,
    }
    request: functions.FunctionRequest = {
        "do": "function",
        "root": str(project.root),
        "id": invocation.execution["id"],
        "entity": dict(invocation.entity.content),
        "arguments": dict(invocation.arguments),
        "context": context,
    }
    reported = ""  # the newest details that the function reported

    def tell(news: Update) -> None:
        nonlocal reported
        reported = news.get("details", reported)
        update(news)

    ended = processes.run(request, project.root, seconds, stop, tell)
    if ended.stopped:
        return None
    answer: functions.FunctionResult = {"ok": False, "error": f"{request['id']}: {ended.reason}"}
    if ended.answer is not None:
        answer = ended.answer
    texts = [reported, ended.output.rstrip("\n"), answer.get("where", "")]
    details = "\n".join(filter(None, texts))
    update({"details": disclosure.without_path(details, project.root), "log": details})
    if answer["ok"]:
        return BehaviorResult(True, answer["result"])
    public = disclosure.without_path(answer["error"], project.root)
    return replace(BehaviorResult.failed(answer["error"]), public=None if public == answer["error"] else public)


def _playbook(
    invocation: Invocation, project: Project, store: str, seconds: float, stop: threading.Event, update: Report
) -> BehaviorResult | None:
    execution = invocation.execution
    properties = dict(execution.get("execution_properties") or {})
    request: playbooks.PlaybookRequest = {
        "do": "playbook",
        "root": str(project.root),
        "id": execution["id"],
        "destroy": invocation.destroys,
        "rejected": bool(invocation.rejected),
        "entity": dict(invocation.entity.content),
        "entity_id": invocation.entity.id,
        "entity_name": invocation.entity.name,
        "arguments": dict(invocation.arguments),
        "properties": properties,
        "user": invocation.user.name,
        "store": store,
        "seconds": seconds,
    }
    ended = processes.run(request, project.root, seconds, stop, update, closed=False)
    if ended.stopped:
        return None
    output = ended.output.rstrip("\n")
    if ended.answer is None:
        update({"log": output})
        public = f"The playbook did not finish: {ended.reason}. {disclosure.ASK}"
        return replace(BehaviorResult.failed(f"{execution['id']}: {ended.reason}"), public=public)
    answer: playbooks.PlaybookResult = ended.answer
    update({"details": answer["details"], "log": "\n".join(filter(None, (answer["log"], output)))})
    if answer["ok"]:
        return BehaviorResult(True, answer["result"])
    return replace(BehaviorResult.failed(answer["error"]), result=answer["result"], public=answer["public"])
