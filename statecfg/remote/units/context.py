"""The commands of the agent's socket: what a running hook can read and change."""

from __future__ import annotations

import json
import threading

from statecfg.remote.units.settings import CONFIG, LEADER, UnitError, UnitSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

    from statecfg.remote.graph.model import JsonMap
    from statecfg.remote.units.settings import Ask, HookChanges
    from statecfg.remote.units.step import StepRelation, UnitStep

STATUSES = ("maintenance", "blocked", "waiting", "active")
DEBUG, INFO, ERROR = 10, 20, 40  # levels of the log


class Context:
    """One run of a hook, from its start to its end. Thread-safe.

    Source of the rules: the document of the unit agent's hooks.

    :param step: the hook
    :param ask: gets a node of settings from the controller; raises UnitError once its event is set
    :param tell: sends a frame to the controller immediately
    """

    def __init__(self, step: UnitStep, ask: Ask, tell: Callable[[JsonMap], None]) -> None:
        self.step = step
        self.status, self.ports = step.state.status, list(step.state.ports)
        self.session = 0  # session id of the hook's processes
        self._tell = tell
        self._lock = threading.Lock()
        self._over = threading.Event()
        self.settings = UnitSettings(ask, self._over)

    def call(self, command: str, arguments: Mapping[str, str]) -> Dict[str, str]:
        """Run a command of COMMANDS; return its answer.

        :raises UnitError: the command failed, or the hook has ended
        """
        with self._lock:
            if self._over.is_set():
                raise UnitError("NoSuchClient", "unknown client id")
            answer: Dict[str, str] = getattr(self, "_" + COMMANDS[command][0])(arguments)
            return answer

    def finish(self) -> HookChanges:
        """End the hook; return its changes in the format for the controller. Further commands fail."""
        self._over.set()
        with self._lock:
            return self.settings.changes()

    def _relation(self, arguments: Mapping[str, str]) -> str:
        """Return the id of the relation of a command: the one that it names, or else the hook's own."""
        own = self.step.relation.id if self.step.relation is not None else ""
        chosen = arguments.get("relation_id") or own
        if not chosen:
            raise UnitError("NotRelationContext", "Calling relation related method without relation context")
        if chosen.isdigit():  # newer charms pass only the number of a relation, which is unique
            ids = [*self.step.relations, own]
            chosen = next((candidate for candidate in ids if candidate.rpartition(":")[2] == chosen), chosen)
        if chosen not in self.step.relations and self._own(chosen) is None:
            raise UnitError("NoSuchRelation", f"this unit has no relation {chosen!r}")
        return str(chosen)

    def _own(self, relation: str) -> Optional[StepRelation]:
        """Return the relation of the hook if it has this id."""
        own = self.step.relation
        return own if own is not None and own.id == relation else None

    def _broken(self, relation: str) -> bool:
        own = self._own(relation)
        return own is not None and own.broken

    # Commands

    def _relation_get(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        # Charms that read relation-list line by line also pass the line feed. The original ignores it.
        relation, unit = self._relation(arguments), arguments["unit_name"].strip()
        if self._broken(relation) and unit != self.step.unit:
            raise UnitError("BrokenRelation", "Cannot access other units in broken relation")
        own = self._own(relation)
        if not unit and own is not None:
            unit = own.remote
        if not unit:
            raise UnitError("NoSuchUnit", f"the relation {relation!r} has no unit without a name")
        settings, name = self.settings.get("relation", relation, unit), arguments["setting_name"]
        return _data(settings.get(name, "") if name else settings)

    def _relation_set(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        relation = self._relation(arguments)
        if self._broken(relation):
            raise UnitError("BrokenRelation", "Cannot change settings in broken relation")
        self.settings.change(("relation", relation, self.step.unit), arguments["json_blob"])
        return {}

    def _members(self, relation: str) -> List[str]:
        if self._broken(relation):
            return []
        own = self._own(relation)
        return list(self.step.relations.get(relation, ()) if own is None else own.members)

    def _relation_list(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        return {"members": " ".join(self._members(self._relation(arguments)))}

    def _relation_ids(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        name = arguments["relation_name"]
        if not name:
            raise UnitError("MustSpecifyRelationName", "Relation name must be specified")
        ids = [relation_id for relation_id in self.step.relations if relation_id.rpartition(":")[0] == name]
        return {"ids": " ".join(sorted(ids, key=lambda relation_id: int(relation_id.rpartition(":")[2])))}

    def _relation_service(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        relation = self._relation(arguments)
        return _data(self.step.services.get(relation))

    def _config_get(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        settings, name = self.settings.get(*CONFIG), arguments["option_name"]
        return _data(settings.get(name) if name else settings)

    def _get_unit_info(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        name = arguments["setting_name"]
        if name not in ("private-address", "public-address"):
            raise UnitError("NoSuchKey", f"Unit has no setting: {name!r}")
        return {"data": self.step.state.addresses.get(name) or ""}

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
        self.log(DEBUG, f"{'opened' if open else 'closed'} {port}")
        return {}

    def _opened_ports(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        return _data(self.ports)

    def _is_leader(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        return dict(_data(self.step.state.leader), leader=str(int(self.step.state.leader)))

    def _leader_get(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        settings, name = self.settings.get(*LEADER), arguments["setting_name"]
        return _data(settings.get(name) if name else settings)

    def _leader_set(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        if not self.step.state.leader:
            raise UnitError("NotLeader", f"{self.step.unit} is not the leader of its service")
        self.settings.change(LEADER, arguments["json_blob"])
        return {}

    def _status_set(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        status = {key: arguments[key].replace("\0", "\ufffd") for key in ("status", "message")}
        if status["status"] not in STATUSES:
            text = f"a status is one of {', '.join(STATUSES)}, not {status['status']!r}"
            raise UnitError("InvalidStatus", text)
        self.status = status
        self._tell(dict(status, type="unit-status"))
        return {}

    def _status_get(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        status = dict(self.status)
        if not status["status"]:  # never set: newer charms set the status that they get here, and "" is invalid
            status["status"] = "maintenance" if self.step.relation is None else "unknown"
        return _data({"status-data": {}, **status})

    def _goal_state(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        return _data(self.step.goal)

    def _network_get(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        address = self.step.state.addresses.get("private-address") or ""
        interface = {"hostname": "", "address": address, "value": address, "cidr": ""}
        bound = [{"mac-address": "", "interface-name": "", "addresses": [interface]}] if address else []
        subnet = f"{address}/{128 if ':' in address else 32}"
        listed = [[entry] if address else [] for entry in (subnet, address)]
        return _data({"bind-addresses": bound, "egress-subnets": listed[0], "ingress-addresses": listed[1]})

    def _version_set(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        self.log(INFO, f"application version: {arguments['version']}")
        return {}

    def _resource_get(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        raise UnitError("NoSuchResource", f"the charm has no resource {arguments['name']!r}")

    def _storage_list(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        return _data([])

    def _storage_get(self, arguments: Mapping[str, str]) -> Dict[str, str]:
        raise UnitError("NoSuchStorage", f"the unit has no storage {arguments['storage_id']!r}")

    def log(self, level: int, text: str) -> None:
        """Send a line to the log immediately. Replace NUL, because databases cannot store it."""
        text = text.replace("\0", "\ufffd")
        self._tell({"type": "unit-log", "unit": self.step.unit, "hook": self.step.hook, "level": level, "text": text})


# Command → its method and its required arguments.
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


def _port(port: str, protocol: str) -> str:
    """Return a port in its usual form: "80/tcp", "1000-2000/udp" or "icmp".

    :raises UnitError: the port or the protocol is invalid
    """
    if protocol == "icmp" and not port:
        return protocol
    if protocol not in ("tcp", "udp"):
        raise UnitError("InvalidPort", f"Invalid protocol, must be 'tcp' or 'udp', got {protocol!r:.80}")
    bounds = [integer(part) for part in port.split("-")]
    numbers = [number for number in bounds if number is not None]
    if len(bounds) > 2 or len(numbers) < len(bounds):
        raise UnitError("UNKNOWN", "Unknown Error")
    for number in numbers:
        if not 1 <= number <= 65535:
            raise UnitError("InvalidPort", f"Invalid port, must be from 1 to 65535, got {number}")
    if numbers[0] > numbers[-1]:
        raise UnitError("InvalidPort", f"Invalid port range, it begins after its end, got {port}")
    return f"{'-'.join(map(str, numbers))}/{protocol}"


def integer(text: str) -> Optional[int]:
    """Parse an integer like the original, with an optional sign and spaces. Return None if the text is not one."""
    bare = text.strip()
    digits = bare[1:] if bare[:1] in ("+", "-") else bare
    return int(bare) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None
