"""The result of an exec hook's call: the event to log, the hook's new configuration, the node's new metadata."""

from __future__ import annotations

import json

from statecfg.remote.hooks.output import ERROR, INFO, WARN, HookOutput
from statecfg.remote.hooks.ruby_json import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional

    from statecfg.remote.hooks.configuration import Configuration, Entry, Metadata, Schema
    from statecfg.remote.hooks.run import Ended

WORDS = 1000  # maximum number of characters of a hook's error
REPORTED = 16 << 10  # maximum number of characters of each value of an event in a report
SHOWN = 200  # characters of a stopped hook's output in its event


class Judged:
    """The result of a hook's call.

    :param severity: "info", "warn" or "error"
    :param entry: the event as in Razor's log: event, exit_status, msg, error, actions; empty values are left out
    :param configuration: the hook's new configuration
    :param metadata: the node's new metadata; None if the event has no node
    :param detail: what the entry does not contain: the signal, or where the JSON is wrong; "" for nothing
    :param sound: whether the hook succeeded, by its exit status and output; stderr does not count
    """

    __slots__ = ("configuration", "detail", "entry", "metadata", "severity", "sound")

    def __init__(
        self,
        severity: str,
        entry: Dict[str, Any],
        configuration: Configuration,
        metadata: Optional[Metadata],
        detail: str = "",
        sound: bool = True,
    ) -> None:
        self.severity, self.entry, self.configuration = severity, entry, configuration
        self.metadata, self.detail, self.sound = metadata, detail, sound


def judge(
    event: str, schema: Schema, configuration: Configuration, metadata: Optional[Metadata], ended: Ended
) -> Judged:
    """Return the result of a call. The arguments are not changed.

    :param event: the event of the call, such as "node-booted"
    :param schema: of the hook's type
    :param configuration: the hook's configuration before the call
    :param metadata: the node's metadata before the call; None if there is no node
    :param ended: how the program ended; if it was stopped or not started, its output is not applied

    Source: the Razor server's engine. Changes are applied regardless of the exit status. Output of a shape on which
    Razor itself fails is an error of the hook here.
    """
    stdout, errors = ended.stdout.decode("utf-8", "replace"), ended.stderr.decode("utf-8", "replace")
    status = ended.exit_status
    message: Any = None
    output = HookOutput(ERROR if status or ended.reason else INFO, schema, configuration, metadata)
    detail = "ended by signal %d" % -status if status < 0 and not ended.reason else ""
    if ended.reason:
        output.fail(ended.reason)
        message, errors = stdout[:SHOWN], errors[:SHOWN]
    elif ended.stdout:
        try:
            printed = parse(ended.stdout)
        except ValueError as problem:
            output.fail("invalid JSON returned from hook")
            message, detail = stdout, "; ".join(filter(None, [detail, str(problem)]))
        else:
            message = printed.get("output") if isinstance(printed, dict) else None
            output.apply(printed)
    sound = output.severity != ERROR
    if errors:
        output.fail(errors)
    entry = {
        "event": event,
        "exit_status": status if status >= 0 else None,
        "msg": message,
        "error": output.error,
        "actions": " and ".join(output.actions),
    }
    entry = {key: value for key, value in entry.items() if value is not None and value not in ("", [], {})}
    return Judged(output.severity, entry, output.configuration, output.metadata, detail, sound)


def why(judged: Judged) -> str:
    """Return why a hook failed, or the error that it reported nevertheless; "" for none. Long texts are cut."""
    error = judged.entry.get("error")
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        return _cut(error["message"], WORDS)
    if error:
        where = f" ({judged.detail})" if judged.detail else ""
        return _cut(error.strip() if isinstance(error, str) else json.dumps(error), WORDS) + where
    if judged.sound:
        return ""
    status = f"it exited with status {judged.entry.get('exit_status')}"
    return judged.detail or _cut(str(judged.entry.get("msg") or status), WORDS)


def shortened(entry: Entry) -> Entry:
    """Return an event for the wire and for reports: long values are cut. The log has them in full."""
    short: Dict[str, Any] = {}
    for key, value in entry.items():
        long = not isinstance(value, str) and len(json.dumps(value)) > REPORTED
        short[key] = _cut(json.dumps(value) if long else value, REPORTED) if long or isinstance(value, str) else value
    return short


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"


def not_executable(event: str, path: str) -> Judged:
    """Return the result if the program of an event is not executable: a warning."""
    return Judged(WARN, {"msg": f"file {path} is not executable", "event": event}, {}, None, sound=False)
