"""A due hook of a unit, as ordered by the controller."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional, Sequence


class StepRelation:
    """The relation of a hook.

    :param id: NAME:NUMBER
    :param name: its name in the unit's service
    :param remote: the remote unit; "" for a broken relation
    :param members: the units that the hook sees, sorted
    :param broken: whether this hook ends the relation, or the unit's part in it
    """

    __slots__ = ("broken", "id", "members", "name", "remote")

    def __init__(
        self,
        id: str,
        name: str,
        remote: str = "",
        members: Sequence[str] = (),
        broken: bool = False,
        number: int = 0,
        key: int = 0,
    ) -> None:
        self.id, self.name, self.remote, self.members, self.broken = id, name, remote, list(members), broken


class UnitState:
    """The state of the hook's unit when the hook begins.

    :param leader: whether the unit is the leader of its service
    :param ports: its open ports
    :param status: its status and message
    :param addresses: the addresses of the host
    """

    __slots__ = ("addresses", "leader", "ports", "status")

    def __init__(
        self, leader: bool, ports: Sequence[str], status: Mapping[str, str], addresses: Mapping[str, str]
    ) -> None:
        self.leader, self.ports, self.status, self.addresses = leader, list(ports), status, addresses


class UnitStep:
    """A hook to run. `store.units.records.DueStep` describes the parameters; `addresses` are those of the host."""

    __slots__ = (
        *("charm", "goal", "hook", "hooks", "relation", "relations", "service", "services", "state", "timeout"),
        "unit",
    )

    def __init__(
        self,
        unit: str,
        service: str,
        charm: str,
        hook: str,
        hooks: Sequence[str] = (),
        relation: Optional[Mapping[str, Any]] = None,
        relations: Optional[Mapping[str, List[str]]] = None,
        services: Optional[Mapping[str, str]] = None,
        leader: bool = False,
        timeout: float = 0.0,
        ports: Sequence[str] = (),
        status: Optional[Mapping[str, str]] = None,
        goal: Optional[Mapping[str, Any]] = None,
        addresses: Optional[Mapping[str, str]] = None,
        unit_id: int = 0,
        failed_before: bool = False,
        last: bool = False,
        digest: str = "",
        config: str = "",
        upto: int = 0,
    ) -> None:
        self.unit, self.service, self.charm, self.hook, self.hooks = unit, service, charm, hook, hooks
        self.relation = None if relation is None else StepRelation(**relation)
        self.relations, self.services, self.timeout = relations or {}, services or {}, timeout
        self.goal = goal or {"units": {}, "relations": {}}
        self.state = UnitState(leader, ports, status or {"status": "", "message": ""}, addresses or {})

    @classmethod
    def from_json(cls, step: Mapping[str, Any]) -> UnitStep:
        """Return the step that the controller describes.

        :raises TypeError: a key is unknown or missing
        """
        return cls(**step)
