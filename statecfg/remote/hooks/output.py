"""Applies what an exec hook prints: changes of its configuration and of the node's metadata.

Source: the Razor server's engine. Its documentation does not mention stderr, unknown keys and the order.
"""

from __future__ import annotations

from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.hooks.configuration import NOT_SUPPLIED, complete, no
from statecfg.remote.hooks.ruby_json import parse
from statecfg.remote.hooks.ruby_text import as_text, json_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional, Sequence

    from statecfg.remote.graph.model import JsonMap
    from statecfg.remote.hooks.configuration import Configuration, Metadata, Schema

INFO, WARN, ERROR = "info", "warn", "error"


class Malformed(StatecfgError):
    """The output has an invalid shape, so none of it is applied."""


class HookOutput:
    """The effects of a hook's output.

    :param severity: INFO or ERROR, by the exit status
    :param configuration: the hook's configuration before the call
    :param metadata: the node's metadata before the call; None if the event has no node
    """

    __slots__ = ("actions", "configuration", "error", "metadata", "schema", "severity")

    def __init__(
        self, severity: str, schema: Schema, configuration: Configuration, metadata: Optional[Metadata]
    ) -> None:
        self.severity, self.schema = severity, schema
        self.configuration, self.metadata = dict(configuration), None if metadata is None else dict(metadata)
        self.error: Any = None
        self.actions: List[str] = []

    def warn(self, text: str) -> None:
        """Add an error that makes the event a warning, unless it is an error already."""
        if self.severity == INFO:
            self.severity = WARN
        self._add(text)

    def fail(self, text: str) -> None:
        """Add an error that makes the event an error."""
        self.severity = ERROR
        self._add(text)

    def _add(self, text: str) -> None:
        self.error = text if no(self.error) else f"{as_text(self.error)} and {text}"

    def apply(self, printed: Any) -> None:
        """Apply the parsed output, or none of it if its shape is invalid."""
        before = self.configuration, self.metadata
        try:
            self._apply(printed)
        except Malformed as problem:
            self.configuration, self.metadata = before
            self.actions = []
            self.fail(str(problem))

    def _apply(self, printed: Any) -> None:
        if isinstance(printed, list) or (isinstance(printed, int) and not isinstance(printed, bool)):
            return  # Razor ignores only an integer and a list
        printed = _object(printed, "hook output")
        self.error = printed.get("error")
        self._expect(printed, ("output", "error", "hook", "node"), "hook's output")
        if "hook" in printed:
            self._configure(_object(printed["hook"], "hook output for hook"))
        if "node" in printed:
            self._annotate(_object(printed["node"], "hook output for node"))

    def _expect(self, printed: JsonMap, keys: Sequence[str], where: str) -> None:
        unexpected = [key for key in printed if key not in keys]
        if unexpected:
            self.warn(f"unexpected key in {where}: {', '.join(unexpected)}")

    def _configure(self, printed: JsonMap) -> None:
        """Change the hook's configuration as requested by `hook` of the output.

        :raises Malformed: the request has an invalid shape, or removes a required key
        """
        self._expect(printed, ("configuration",), "hook's output for hook update")
        if "configuration" not in printed:
            return
        request = printed["configuration"]
        self.actions.append(f"updating hook configuration: {as_text(request)}")
        if not isinstance(request, dict):
            self.warn(f"hook output for hook configuration should be an object but was a {json_type(request)}")
            return
        configuration = dict(self.configuration)
        for operation, value in request.items():
            if operation == "update":
                for key, new_value in _object(value, "hook output for hook configuration update").items():
                    if key in self.schema:
                        configuration[key] = new_value
                    else:
                        self.fail(f"hook output includes invalid configuration update for key {key}")
            elif operation == "remove":
                for key in _array(value, "hook output for hook configuration remove"):
                    configuration.pop(as_text(key), None)
            else:
                self.fail(f"undefined operation on hook: {operation}; should be 'update' or 'remove'")
        # Razor validates a hook whenever it stores it: defaults come back, and required keys can't be removed.
        completed, wrong = complete(self.schema, configuration)
        self.configuration = dict(completed)
        missing = [text for text in wrong if text.endswith(NOT_SUPPLIED)]
        if missing:
            raise Malformed(", ".join(missing))

    def _annotate(self, printed: JsonMap) -> None:
        """Change the node's metadata as requested by `node` of the output.

        :raises Malformed: the request has an invalid shape
        """
        self._expect(printed, ("metadata",), "hook's output for node update")
        if printed.get("metadata") is None:  # Razor reads null as no request
            return
        if self.metadata is None:
            self.fail("hook tried to update node metadata on a hook without a node")
            return
        request = _object(printed["metadata"], "hook output for node metadata")
        self.actions.append(f"updating node metadata: {as_text(request)}")
        unknown = [key for key in request if key not in ("update", "remove", "clear")]
        if unknown:
            self.warn(f"unexpected node metadata operation(s) {', '.join(unknown)} included")
        changed = dict(self.metadata)
        if not no(request.get("update")):
            for key, value in _object(request["update"], "hook output for node metadata update").items():
                changed[key] = _parsed(value)
        if not no(request.get("remove")):
            for key in _array(request["remove"], "hook output for node metadata remove"):
                changed.pop(as_text(key), None)
        self.metadata = {} if request.get("clear") in (True, "true") else changed


def _object(value: Any, what: str) -> JsonMap:
    if not isinstance(value, dict):
        raise Malformed(f"{what} should be an object but was a {json_type(value)}")
    return value


def _array(value: Any, what: str) -> List[Any]:
    if not isinstance(value, list):
        raise Malformed(f"{what} should be an array but was a {json_type(value)}")
    return value


def _parsed(value: Any) -> Any:
    """Return the value of a string that contains JSON, anything else unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return parse(value.encode("utf-8", "surrogatepass"))
    except ValueError:
        return value
