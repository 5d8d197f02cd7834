"""What one run of a hook sees: settings read at first touch, its own changes on top, given out at its end."""

from __future__ import annotations

import json
import threading

from statecfg.remote.graph.errors import StatecfgError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

    Ask = Callable[[List[str], threading.Event], Dict[str, Any]]

MOST = 2 << 20  # bytes of JSON: of what a hook changes in all, and of the settings of one unit in one relation
SHOWN = 100  # characters of a value in the log
SECRET = ("password", "passwd", "secret", "token", "key", "credential")  # in a setting's name: its value is not logged
STATUSES = ("maintenance", "blocked", "waiting", "active")
CONFIG, LEADER = ("config",), ("leader",)
DEBUG, INFO, ERROR = 10, 20, 40  # levels of the log


class UnitError(StatecfgError):
    """What a command of a hook is answered where it can't be done: a code of the protocol, and a text."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


class Context:
    """One run of a hook, from its start to its end. Any thread may call.

    A node of settings is read once, when it is touched first, and stays as it was read; sets are seen by later gets.
    Source of the rules: the document of the unit agent's hooks.

    :param step: what is run, as the controller sent it
    :param ask: gets a node of settings from the controller; gives up, with UnitError, once its event is set
    :param tell: sends a frame to the controller at once
    """

    def __init__(self, step: Mapping[str, Any], ask: Ask, tell: Callable[[Dict[str, Any]], None]) -> None:
        self.unit: str = step["unit"]
        self.hook: str = step["hook"]
        self.relation: Optional[Mapping[str, Any]] = step.get("relation")
        self.relations: Mapping[str, List[str]] = step.get("relations") or {}
        self.services: Mapping[str, str] = step.get("services") or {}
        self.leader = bool(step.get("leader"))
        self.addresses: Mapping[str, str] = step.get("addresses") or {}
        self.goal: Mapping[str, Any] = step.get("goal") or {"units": {}, "relations": {}}
        self.status: Mapping[str, str] = step.get("status") or {"status": "", "message": ""}
        self.ports: List[str] = list(step.get("ports") or ())
        self.session = 0  # the number of its processes' session
        self._ask, self._tell = ask, tell
        self._read: Dict[Tuple[str, ...], Dict[str, Any]] = {}
        self._now: Dict[Tuple[str, ...], Dict[str, Any]] = {}
        self._lock = threading.Lock()
        self._over = threading.Event()

    def call(self, command: str, arguments: Mapping[str, str]) -> Dict[str, str]:
        """Do a command of COMMANDS; return its answer. Raises UnitError."""
        with self._lock:
            if self._over.is_set():
                raise UnitError("NoSuchClient", "unknown client id")
            answer: Dict[str, str] = getattr(self, "_" + COMMANDS[command][0])(arguments)
            return answer

    def finish(self) -> Dict[str, Any]:
        """End it: nothing is taken from now on. Return what it changed, as the controller takes it."""
        self._over.set()
        with self._lock:
            found: Dict[str, Any] = {"relations": {}, "leader": {"set": {}, "delete": []}}
            for node in self._now:
                changed = self._changed(node)
                if changed and node == LEADER:
                    found["leader"] = _parts(changed)
                elif changed:
                    found["relations"][node[1]] = _parts(changed)
            return found

    def flushed(self) -> List[str]:
        """Return the lines for the log that tell what it changed; what looks like a secret is not in them."""
        found = []
        for node in sorted(self._now):
            changed = self._changed(node)
            if changed:
                lines = ["Flushed values for hook %r on %r" % (self.hook, node[1] if node != LEADER else "leader")]
                for key in sorted(changed):
                    old, new = (_shown(key, value) for value in (self._read[node].get(key), changed[key]))
                    if changed[key] is None:
                        lines.append("    Setting deleted: %r (was %s)" % (key, old))
                    else:
                        lines.append("    Setting changed: %r=%s (was %s)" % (key, new, old))
                found.append("\n".join(lines))
        return found

    # Nodes of settings

    def _node(self, *node: str) -> Dict[str, Any]:
        if node not in self._read:
            self._read[node] = self._ask(list(node), self._over)
        return self._now.get(node, self._read[node])

    def _change(self, node: Tuple[str, ...], blob: str) -> Dict[str, str]:
        """Set and delete settings of a node, all that are given or none."""
        try:
            given = json.loads(blob)
        except (ValueError, RecursionError):
            raise UnitError("UNKNOWN", "Unknown Error") from None
        if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
            raise UnitError("UNKNOWN", "Unknown Error")
        now = dict(self._node(*node))
        for key, value in given.items():
            _check(key, value)
            if not value.strip():
                now.pop(key, None)
            else:
                now[key] = value
        rest = sum(_size(self._changed(each)) for each in self._now if each != node)
        mine = {key: value for key, value in now.items() if self._read[node].get(key) != value}
        if rest + _size(mine) > MOST or _size(now) > MOST:
            raise UnitError("TooLong", "a hook may change settings of %d bytes in all, and these are more" % MOST)
        self._now[node] = now
        return {}

    def _changed(self, node: Tuple[str, ...]) -> Dict[str, Optional[str]]:
        """Return the settings of a node that are not as they were read; None for what is gone."""
        before, now = self._read[node], self._now[node]
        found: Dict[str, Optional[str]] = {key: value for key, value in now.items() if before.get(key) != value}
        found.update((key, None) for key in before if key not in now)
        return found

    def _relation(self, arguments: Mapping[str, str]) -> str:
        """Return the id of the relation that a command is about: the one it names, or else the hook's own."""
        found = arguments.get("relation_id") or (self.relation or {}).get("id", "")
        if not found:
            raise UnitError("NotRelationContext", "Calling relation related method without relation context")
        if found.isdigit():  # as charms of today call it: no two relations have the same number
            ids = [*self.relations, (self.relation or {}).get("id", "")]
            found = next((each for each in ids if each.rpartition(":")[2] == found), found)
        if found not in self.relations and not self._own(found):
            raise UnitError("NoSuchRelation", "this unit has no relation %r" % found)
        return str(found)

    def _own(self, relation: str) -> bool:
        return self.relation is not None and relation == self.relation["id"]

    def _broken(self, relation: str) -> bool:
        return self._own(relation) and bool((self.relation or {}).get("broken"))

    # Commands

    def _relation_get(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        # Charms that read the lines of relation-list hand on the line's end, which the original overlooks.
        relation, unit = self._relation(arguments), arguments["unit_name"].strip()
        if self._broken(relation) and unit != self.unit:
            raise UnitError("BrokenRelation", "Cannot access other units in broken relation")
        if not unit and self._own(relation):
            unit = (self.relation or {}).get("remote") or ""
        if not unit:
            raise UnitError("NoSuchUnit", "the relation %r has no unit without a name" % relation)
        settings, name = self._node("relation", relation, unit), arguments["setting_name"]
        return _data(settings.get(name, "") if name else settings)

    def _relation_set(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        relation = self._relation(arguments)
        if self._broken(relation):
            raise UnitError("BrokenRelation", "Cannot change settings in broken relation")
        return self._change(("relation", relation, self.unit), arguments["json_blob"])

    def _members(self, relation: str) -> List[str]:
        if self._broken(relation):
            return []
        own = (self.relation or {}).get("members") if self._own(relation) else None
        return list(self.relations.get(relation, ()) if own is None else own)

    def _relation_list(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        return {"members": " ".join(self._members(self._relation(arguments)))}

    def _relation_ids(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        name = arguments["relation_name"]
        if not name:
            raise UnitError("MustSpecifyRelationName", "Relation name must be specified")
        found = [each for each in self.relations if each.rpartition(":")[0] == name]
        return {"ids": " ".join(sorted(found, key=lambda each: int(each.rpartition(":")[2])))}

    def _relation_service(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        relation = self._relation(arguments)
        return _data(self.services.get(relation))

    def _config_get(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        settings, name = self._node(*CONFIG), arguments["option_name"]
        return _data(settings.get(name) if name else settings)

    def _get_unit_info(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        name = arguments["setting_name"]
        if name not in ("private-address", "public-address"):
            raise UnitError("NoSuchKey", "Unit has no setting: %r" % name)
        return {"data": self.addresses.get(name) or ""}

    def _open_port(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        return self._port(arguments, True)

    def _close_port(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        return self._port(arguments, False)

    def _port(self, arguments: Mapping[str, str], open: bool) -> Dict[str, str]:
        port = _port(arguments["port"], arguments["proto"].lower())
        if open and port not in self.ports:
            self.ports.append(port)
        elif not open and port in self.ports:
            self.ports.remove(port)
        self._tell({"type": "unit-port", "open": open, "port": port})
        self.log(DEBUG, "%s %s" % ("opened" if open else "closed", port))
        return {}

    def _opened_ports(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        return _data(self.ports)

    def _is_leader(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        return dict(_data(self.leader), leader=str(int(self.leader)))

    def _leader_get(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        settings, name = self._node(*LEADER), arguments["setting_name"]
        return _data(settings.get(name) if name else settings)

    def _leader_set(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        if not self.leader:
            raise UnitError("NotLeader", "%s is not the leader of its service" % self.unit)
        return self._change(LEADER, arguments["json_blob"])

    def _status_set(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        status = {key: arguments[key].replace("\0", "\ufffd") for key in ("status", "message")}
        if status["status"] not in STATUSES:
            text = "a status is one of %s, not %r" % (", ".join(STATUSES), status["status"])
            raise UnitError("InvalidStatus", text)
        self.status = status
        self._tell(dict(status, type="unit-status"))
        return {}

    def _status_get(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        found = dict(self.status)
        if not found["status"]:  # it never said: charms of today give back what they get here, and "" is no status
            found["status"] = "maintenance" if self.relation is None else "unknown"
        return _data({"status-data": {}, **found})

    def _goal_state(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        return _data(self.goal)

    def _network_get(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        address = self.addresses.get("private-address") or ""
        each = {"hostname": "", "address": address, "value": address, "cidr": ""}
        bound = [{"mac-address": "", "interface-name": "", "addresses": [each]}] if address else []
        subnet = "%s/%d" % (address, 128 if ":" in address else 32)
        listed = [[found] if address else [] for found in (subnet, address)]
        return _data({"bind-addresses": bound, "egress-subnets": listed[0], "ingress-addresses": listed[1]})

    def _version_set(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        self.log(INFO, "application version: %s" % arguments["version"])
        return {}

    def _resource_get(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        raise UnitError("NoSuchResource", "the charm has no resource %r" % arguments["name"])

    def _storage_list(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        return _data([])

    def _storage_get(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        raise UnitError("NoSuchStorage", "the unit has no storage %r" % arguments["storage_id"])

    def log(self, level: int, text: str) -> None:
        """Send a line, or what a program says, to the log at once; what no database takes is replaced in it."""
        text = text.replace("\0", "\ufffd")
        self._tell({"type": "unit-log", "unit": self.unit, "hook": self.hook, "level": level, "text": text})


# Command → the method that does it, and the arguments that it can't do without.
COMMANDS: Dict[str, Tuple[str, Tuple[str, ...]]] = {
    "relation_get": ("relation_get", ("unit_name", "setting_name")),
    "relation_set": ("relation_set", ("json_blob",)),
    "ListRelationsCommand": ("relation_list", ()),
    "relation_ids": ("relation_ids", ("relation_name",)),
    "relation_service": ("relation_service", ()),
    "config_get": ("config_get", ("option_name",)),
    "get_unit_info": ("get_unit_info", ("setting_name",)),
    "open_port": ("open_port", ("port", "proto")),
    "close_port": ("close_port", ("port", "proto")),
    "opened_ports": ("opened_ports", ()),
    "is_leader": ("is_leader", ()),
    "leader_get": ("leader_get", ("setting_name",)),
    "leader_set": ("leader_set", ("json_blob",)),
    "status_set": ("status_set", ("status", "message")),
    "status_get": ("status_get", ()),
    "goal_state": ("goal_state", ()),
    "network_get": ("network_get", ("binding",)),
    "application_version_set": ("version_set", ("version",)),
    "resource_get": ("resource_get", ("name",)),
    "storage_list": ("storage_list", ()),
    "storage_get": ("storage_get", ("storage_id", "attribute")),
}


def _data(value: Any) -> Dict[str, str]:
    return {"data": json.dumps(value, sort_keys=True)}


def _parts(changed: Mapping[str, Optional[str]]) -> Dict[str, Any]:
    sets = {key: value for key, value in changed.items() if value is not None}
    return {"set": sets, "delete": sorted(key for key in changed if key not in sets)}


def _size(settings: Mapping[str, Any]) -> int:
    return len(json.dumps(settings, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _check(key: str, value: str) -> None:
    """Refuse a setting with characters that no database takes. Raises UnitError."""
    if any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in key + value):
        raise UnitError("InvalidSetting", "the setting %.80r has a character that can't be kept in a text" % key)


def _port(port: str, protocol: str) -> str:
    """Return a port as it is written everywhere: "80/tcp", "1000-2000/udp", "icmp". Raises UnitError."""
    if protocol == "icmp" and not port:
        return protocol
    if protocol not in ("tcp", "udp"):
        raise UnitError("InvalidPort", "Invalid protocol, must be 'tcp' or 'udp', got %.80r" % protocol)
    found = [integer(each) for each in port.split("-")]
    numbers = [number for number in found if number is not None]
    if len(found) > 2 or len(numbers) < len(found):
        raise UnitError("UNKNOWN", "Unknown Error")
    for number in numbers:
        if not 1 <= number <= 65535:
            raise UnitError("InvalidPort", "Invalid port, must be from 1 to 65535, got %d" % number)
    if numbers[0] > numbers[-1]:
        raise UnitError("InvalidPort", "Invalid port range, it begins after its end, got %s" % port)
    return "%s/%s" % ("-".join(map(str, numbers)), protocol)


def integer(text: str) -> Optional[int]:
    """Return a number as the original reads it, with a sign or spaces around it; None where it is none."""
    bare = text.strip()
    digits = bare[1:] if bare[:1] in ("+", "-") else bare
    return int(bare) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None


def _shown(key: str, value: Optional[str]) -> str:
    """Return a setting's value for the log."""
    if value is None:
        return "unset"
    return "…" if any(word in key.lower() for word in SECRET) else repr(value[:SHOWN])
