"""The settings that a hook reads and changes. Each node is read once; changes take effect when the hook succeeds."""

from __future__ import annotations

import json

from statecfg.remote.graph.errors import StatecfgError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

    from typing_extensions import TypedDict

    class NodeChanges(TypedDict):
        """The changes of one node of settings: new values, and names of deleted settings."""

        set: Dict[str, str]
        delete: List[str]

    class HookChanges(TypedDict):
        """All changes of a hook; `relations` has the unit's own settings, by the id of the relation."""

        relations: Dict[str, NodeChanges]
        leader: NodeChanges

    Values = Mapping[str, Any]  # the settings of one node; those of CONFIG may be other values than text
    Ask = Callable[[List[str], threading.Event], Values]
    Node = Tuple[str, ...]  # CONFIG, LEADER, or ("relation", id of the relation, name of a unit)

MOST = 2 << 20  # maximum bytes of JSON: for all changes of a hook, and for the settings of one unit in one relation
SHOWN = 100  # maximum characters of a value in the log
SECRET = ("password", "passwd", "secret", "token", "key", "credential")  # settings with such names are not logged
CONFIG, LEADER = ("config",), ("leader",)


class UnitError(StatecfgError):
    """A command of a hook failed.

    :param code: error code of the protocol
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


class UnitSettings:
    """The settings that one hook sees.

    :param ask: gets a node from the controller; raises UnitError once its event is set
    :param over: set when the hook has ended
    """

    def __init__(self, ask: Ask, over: threading.Event) -> None:
        self._ask, self._over = ask, over
        self._read: Dict[Node, Values] = {}
        self._now: Dict[Node, Values] = {}

    def get(self, *node: str) -> Values:
        """Return the settings of a node, including the changes of this hook.

        :raises UnitError: the controller refused the node or did not answer
        """
        if node not in self._read:
            self._read[node] = self._ask(list(node), self._over)
        return self._now.get(node, self._read[node])

    def change(self, node: Node, blob: str) -> None:
        """Set and delete settings of a node: all of them, or none after an error.

        :param blob: a JSON object: name → new value; a blank value deletes the setting
        :raises UnitError: the object or a value is invalid, or there are too many changes
        """
        try:
            values = json.loads(blob)
        except (ValueError, RecursionError):
            raise UnitError("UNKNOWN", "Unknown Error") from None
        if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
            raise UnitError("UNKNOWN", "Unknown Error")
        now = dict(self.get(*node))
        for key, value in values.items():
            _check(key, value)
            if not value.strip():
                now.pop(key, None)
            else:
                now[key] = value
        rest = sum(_size(self._changed(other)) for other in self._now if other != node)
        mine = {key: value for key, value in now.items() if self._read[node].get(key) != value}
        if rest + _size(mine) > MOST or _size(now) > MOST:
            raise UnitError("TooLong", f"a hook may change settings of at most {MOST} bytes in total")
        self._now[node] = now

    def _changed(self, node: Node) -> Dict[str, Optional[str]]:
        """Return the changed settings of a node; deleted settings are None."""
        before, now = self._read[node], self._now[node]
        changed: Dict[str, Optional[str]] = {key: value for key, value in now.items() if before.get(key) != value}
        changed.update((key, None) for key in before if key not in now)
        return changed

    def changes(self) -> HookChanges:
        """Return all changes in the format for the controller."""
        result: HookChanges = {"relations": {}, "leader": {"set": {}, "delete": []}}
        for node in self._now:
            changed = self._changed(node)
            if changed and node == LEADER:
                result["leader"] = _parts(changed)
            elif changed:
                result["relations"][node[1]] = _parts(changed)
        return result

    def described(self, hook: str) -> List[str]:
        """Return lines for the log about all changes. Mask values of settings with names that look like secrets."""
        texts = []
        for node in sorted(self._now):
            changed = self._changed(node)
            if changed:
                lines = [f"Flushed values for hook {hook!r} on {(node[1] if node != LEADER else 'leader')!r}"]
                for key in sorted(changed):
                    old_text, new_text = (_log_text(key, value) for value in (self._read[node].get(key), changed[key]))
                    if changed[key] is None:
                        lines.append(f"    Setting deleted: {key!r} (was {old_text})")
                    else:
                        lines.append(f"    Setting changed: {key!r}={new_text} (was {old_text})")
                texts.append("\n".join(lines))
        return texts


def _parts(changed: Mapping[str, Optional[str]]) -> NodeChanges:
    sets = {key: value for key, value in changed.items() if value is not None}
    return {"set": sets, "delete": sorted(key for key in changed if key not in sets)}


def _size(settings: Mapping[str, Any]) -> int:
    return len(json.dumps(settings, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _check(key: str, value: str) -> None:
    """Raise UnitError for characters that databases can't store."""
    if any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in key + value):
        raise UnitError("InvalidSetting", f"the setting {key!r:.80} has a character that can't be stored")


def _log_text(key: str, value: Optional[str]) -> str:
    """Return a setting's value for the log."""
    if value is None:
        return "unset"
    return "…" if any(word in key.lower() for word in SECRET) else repr(value[:SHOWN])
