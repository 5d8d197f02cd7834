"""What an exec hook's output means: the event to log, the hook's new configuration, the node's new metadata."""

from __future__ import annotations

import json

from statecfg.remote.hooks.ruby_json import parse
from statecfg.remote.hooks.ruby_text import as_text, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple

INFO, WARN, ERROR = "info", "warn", "error"
WORDS = 1000  # characters of why a hook failed
REPORTED = 16 << 10  # characters of each part of an event that a report holds
SHOWN = 200  # characters of a stopped hook's output that its event shows
_EXPECTED = ("output", "error", "hook", "node")


class Judged:
    """What came of a hook's invocation.

    :param severity: "info", "warn" or "error"
    :param entry: the event as Razor's log has it: event, exit_status, msg, error, actions; what is empty is left out
    :param configuration: the hook's configuration from now on
    :param metadata: the node's metadata from now on; None where the event is about no node
    :param detail: what Razor's entry does not say, "" for nothing: the signal, or where its JSON is wrong
    :param sound: whether the hook has succeeded: by exit status and output, since words on stderr are no failure
    """

    __slots__ = ("configuration", "detail", "entry", "metadata", "severity", "sound")

    def __init__(
        self,
        severity: str,
        entry: Dict[str, Any],
        configuration: Dict[str, Any],
        metadata: Optional[Dict[str, Any]],
        detail: str = "",
        sound: bool = True,
    ) -> None:
        self.severity, self.entry, self.configuration = severity, entry, configuration
        self.metadata, self.detail, self.sound = metadata, detail, sound


class _Malformed(Exception):
    """The output has a shape that means nothing, so none of it is applied."""


def judge(
    event: str,
    schema: Dict[str, Dict[str, Any]],
    configuration: Dict[str, Any],
    metadata: Optional[Dict[str, Any]],
    exit_status: int,
    stdout: bytes,
    stderr: bytes,
    reason: str = "",
) -> Judged:
    """Return what an invocation means; nothing that is given is changed.

    :param event: what the hook was run for, such as "node-booted"
    :param schema: the hook type's keys: each with description, default, required
    :param configuration: the hook's configuration as it stands
    :param metadata: the node's metadata as it stands; None where there is no node
    :param exit_status: negative: the signal that ended it
    :param reason: why it was stopped or could not be started; nothing of its output is then applied

    Source: the Razor server's engine (its documentation leaves out stderr, unknown keys and the order). Its updates are
    applied whatever the exit status; output of a shape on which Razor itself fails is an error of the hook here.
    """
    output, errors = stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace")
    found = _Findings(ERROR if exit_status or reason else INFO)
    after = dict(configuration), None if metadata is None else dict(metadata)
    message: Any = None
    detail = "ended by signal %d" % -exit_status if exit_status < 0 and not reason else ""
    if reason:
        found.fail(reason)
        message, errors = output[:SHOWN], errors[:SHOWN]
    elif stdout:
        try:
            said = parse(stdout)
        except ValueError as problem:
            found.fail("invalid JSON returned from hook")
            message, detail = output, "; ".join(filter(None, [detail, str(problem)]))
        else:
            message = said.get("output") if isinstance(said, dict) else None
            try:
                after = _applied(said, schema, dict(after[0]), after[1], found)
            except _Malformed as problem:
                found.actions = []
                found.fail(str(problem))
    sound = found.severity != ERROR
    if errors:
        found.fail(errors)
    entry = {
        "event": event,
        "exit_status": exit_status if exit_status >= 0 else None,
        "msg": message,
        "error": found.error,
        "actions": " and ".join(found.actions),
    }
    entry = {key: value for key, value in entry.items() if value is not None and value not in ("", [], {})}
    return Judged(found.severity, entry, after[0], after[1], detail, sound)


def why(judged: Judged) -> str:
    """Return in words why a hook failed, or what it reported besides; "" for nothing. What is long is cut."""
    error = judged.entry.get("error")
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        return _cut(error["message"], WORDS)
    if error:
        where = " (%s)" % judged.detail if judged.detail else ""
        return _cut(error.strip() if isinstance(error, str) else json.dumps(error), WORDS) + where
    if judged.sound:
        return ""
    status = "it exited with status %s" % judged.entry.get("exit_status")
    return judged.detail or _cut(str(judged.entry.get("msg") or status), WORDS)


def shortened(entry: Dict[str, Any]) -> Dict[str, Any]:
    """Return an event as it crosses the wire and stands in reports: what is long is cut, as in the log it is not."""
    found: Dict[str, Any] = {}
    for key, value in entry.items():
        long = not isinstance(value, str) and len(json.dumps(value)) > REPORTED
        found[key] = _cut(json.dumps(value) if long else value, REPORTED) if long or isinstance(value, str) else value
    return found


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else "%s… (%d characters)" % (text[:most], len(text))


def not_executable(event: str, path: str, configuration: Dict[str, Any], metadata: Optional[Dict[str, Any]]) -> Judged:
    """Return what it means that a handler is there, but may not be executed: a warning, and nothing is run."""
    entry = {"msg": "file %s is not executable" % path, "event": event}
    return Judged(WARN, entry, configuration, metadata, sound=False)


def complete(schema: Dict[str, Dict[str, Any]], configuration: Dict[str, Any]) -> Tuple[Dict[str, Any], List[str]]:
    """Return a configuration with the schema's defaults, and what is wrong with it.

    A default of false or null is none, since Ruby takes both for "no"; 0 and "" are applied.
    """
    wrong = [
        "configuration key '%s' is not defined for this hook type" % key for key in configuration if key not in schema
    ]
    whole = dict(configuration)
    for key, described in schema.items():
        if key in whole:
            continue
        if described.get("default") not in _NO:
            whole[key] = described["default"]
        elif described.get("required") not in _NO:
            wrong.append("configuration key '%s' is required by this hook type, but was not supplied" % key)
    return whole, wrong


class _No:
    """What Ruby takes for "no": false and null, and nothing else (0 is equal to False in Python, but no "no")."""

    def __contains__(self, value: object) -> bool:
        return value is None or value is False


_NO = _No()


class _Findings:
    """What is collected on the way through a hook's output."""

    def __init__(self, severity: str) -> None:
        self.severity = severity
        self.error: Any = None
        self.actions: List[str] = []

    def warn(self, text: str) -> None:
        """Add an error that makes the event a warning, unless it is worse already."""
        if self.severity == INFO:
            self.severity = WARN
        self._add(text)

    def fail(self, text: str) -> None:
        """Add an error that makes the event an error."""
        self.severity = ERROR
        self._add(text)

    def _add(self, text: str) -> None:
        self.error = text if self.error in _NO else "%s and %s" % (as_text(self.error), text)


def _applied(
    said: Any,
    schema: Dict[str, Dict[str, Any]],
    configuration: Dict[str, Any],
    metadata: Optional[Dict[str, Any]],
    found: _Findings,
) -> Tuple[Dict[str, Any], Optional[Dict[str, Any]]]:
    """Return configuration and metadata as the output asks. Raises _Malformed."""
    if isinstance(said, list) or (isinstance(said, int) and not isinstance(said, bool)):
        return configuration, metadata  # Razor passes over a whole number and a list, and nothing else
    said = _object(said, "hook output")
    found.error = said.get("error")
    unexpected = [key for key in said if key not in _EXPECTED]
    if unexpected:
        found.warn("unexpected key in hook's output: %s" % ", ".join(unexpected))
    if "hook" in said:
        configuration = _configured(_object(said["hook"], "hook output for hook"), schema, configuration, found)
    if "node" in said:
        metadata = _annotated(_object(said["node"], "hook output for node"), metadata, found)
    return configuration, metadata


def _object(value: Any, what: str) -> Dict[str, Any]:
    if not isinstance(value, dict):
        raise _Malformed("%s should be an object but was a %s" % (what, kind_of(value)))
    return value


def _array(value: Any, what: str) -> List[Any]:
    if not isinstance(value, list):
        raise _Malformed("%s should be an array but was a %s" % (what, kind_of(value)))
    return value


def _configured(
    said: Dict[str, Any], schema: Dict[str, Dict[str, Any]], configuration: Dict[str, Any], found: _Findings
) -> Dict[str, Any]:
    """Return the hook's configuration as the output's `hook` asks. Raises _Malformed."""
    unexpected = [key for key in said if key != "configuration"]
    if unexpected:
        found.warn("unexpected key in hook's output for hook update: %s" % ", ".join(unexpected))
    if "configuration" not in said:
        return configuration
    asked = said["configuration"]
    found.actions.append("updating hook configuration: %s" % as_text(asked))
    if not isinstance(asked, dict):
        found.warn("hook output for hook configuration should be an object but was a %s" % kind_of(asked))
        return configuration
    for operation, value in asked.items():
        if operation == "update":
            for key, new in _object(value, "hook output for hook configuration update").items():
                if key in schema:
                    configuration[key] = new
                else:
                    found.fail("hook output includes invalid configuration update for key %s" % key)
        elif operation == "remove":
            for key in _array(value, "hook output for hook configuration remove"):
                configuration.pop(as_text(key), None)
        else:
            found.fail("undefined operation on hook: %s; should be 'update' or 'remove'" % operation)
    # Razor validates a hook whenever it stores it: what has a default gets it back, what is required can't be removed.
    whole, wrong = complete(schema, configuration)
    missing = [text for text in wrong if text.endswith("but was not supplied")]
    if missing:
        raise _Malformed(", ".join(missing))
    return whole


def _annotated(said: Dict[str, Any], metadata: Optional[Dict[str, Any]], found: _Findings) -> Optional[Dict[str, Any]]:
    """Return the node's metadata as the output's `node` asks. Raises _Malformed."""
    unexpected = [key for key in said if key != "metadata"]
    if unexpected:
        found.warn("unexpected key in hook's output for node update: %s" % ", ".join(unexpected))
    if said.get("metadata") is None:  # Razor takes null for nothing asked
        return metadata
    if metadata is None:
        found.fail("hook tried to update node metadata on a hook without a node")
        return metadata
    asked = _object(said["metadata"], "hook output for node metadata")
    found.actions.append("updating node metadata: %s" % as_text(asked))
    unknown = [key for key in asked if key not in ("update", "remove", "clear")]
    if unknown:
        found.warn("unexpected node metadata operation(s) %s included" % ", ".join(unknown))
    changed = dict(metadata)
    if asked.get("update") not in _NO:
        for key, value in _object(asked["update"], "hook output for node metadata update").items():
            changed[key] = _parsed(value)
    if asked.get("remove") not in _NO:
        for key in _array(asked["remove"], "hook output for node metadata remove"):
            changed.pop(as_text(key), None)
    return {} if asked.get("clear") in (True, "true") else changed


def _parsed(value: Any) -> Any:
    """Return a text that is JSON as what it says, anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return parse(value.encode("utf-8", "surrogatepass"))
    except ValueError:
        return value
