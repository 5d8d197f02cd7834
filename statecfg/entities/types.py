"""Calls about types, what they override of their interfaces' behaviors, and who may invoke these."""

from __future__ import annotations

from typing import Any

from statecfg.entities.calls import Calls
from statecfg.entities.model import Behavior, BehaviorGrant, EntityType, Page, Principal, Query


class TypeCalls(Calls):
    """Calls about types. Administrators make them; who has Full Control of one changes it; any grant shows it."""

    def create_type(self, principal: Principal, body: Any) -> EntityType:
        """Make a type (name, vendor, nss, version, schema; interfaces, hooks, description, externalId, …)."""
        raise NotImplementedError

    def get_type(self, principal: Principal, id: str) -> EntityType:
        """Return a type."""
        raise NotImplementedError

    def list_types(self, principal: Principal, query: Query) -> Page[EntityType]:
        """Return a page of the types that may be seen."""
        raise NotImplementedError

    def update_type(self, principal: Principal, id: str, body: Any) -> EntityType:
        """Change a type; vendor, nss and version can't be changed, nor anything while entities of it exist."""
        raise NotImplementedError

    def delete_type(self, principal: Principal, id: str) -> None:
        """Remove a type that has no entities, with its overrides and access controls."""
        raise NotImplementedError

    def list_type_behaviors(self, principal: Principal, id: str, query: Query) -> Page[Behavior]:
        """Return a page of the behaviors of a type: its overrides, and its interfaces' for the rest."""
        raise NotImplementedError

    def get_type_behavior(self, principal: Principal, id: str, behavior: str) -> Behavior:
        """Return a behavior of a type, by its id or its ref; the override where there is one."""
        raise NotImplementedError

    def override_behavior(self, principal: Principal, id: str, behavior: str, body: Any) -> Behavior:
        """Override a behavior of an interface on a type (execution, description), or change the override."""
        raise NotImplementedError

    def delete_override(self, principal: Principal, id: str, behavior: str) -> None:
        """Remove the override of a behavior, by its id or its ref: the interface's counts again."""
        raise NotImplementedError

    def list_behavior_grants(self, principal: Principal, id: str, query: Query) -> Page[BehaviorGrant]:
        """Return a page of the behavior access controls of a type."""
        raise NotImplementedError

    def add_behavior_grant(self, principal: Principal, id: str, body: Any) -> BehaviorGrant:
        """Add a behavior access control (behaviorId, accessLevelId), in place of one for the same behavior."""
        raise NotImplementedError

    def replace_behavior_grants(self, principal: Principal, id: str, body: Any) -> Page[BehaviorGrant]:
        """Put `values` in the place of all behavior access controls; return the first page of them."""
        raise NotImplementedError
