"""Calls about entities: made, read, changed, resolved, deleted, and their behaviors invoked."""

from __future__ import annotations

from typing import Any

from statecfg.entities.calls import Calls
from statecfg.entities.model import Entity, Page, Principal, Query, Task, Updated


class EntityCalls(Calls):
    """Calls about entities. What is missing and what may not be seen are refused alike, with 403."""

    def create_entity(
        self, principal: Principal, type_id: str, body: Any, resolve: bool = False, invoke_hooks: bool = True
    ) -> Task:
        """Make an entity (name, entity, externalId); its id is the task's `entity`.

        :param resolve: resolve it at once; without effect where a PostCreate hook is to run
        :param invoke_hooks: False only with Full Control of the type
        """
        raise NotImplementedError

    def get_entity(self, principal: Principal, id: str) -> Entity:
        """Return an entity; its `etag` is the header's."""
        raise NotImplementedError

    def list_entities(self, principal: Principal, query: Query) -> Page[Entity]:
        """Return a page of all entities that may be seen."""
        raise NotImplementedError

    def list_entities_of_type(
        self, principal: Principal, vendor: str, nss: str, version: str, query: Query
    ) -> Page[Entity]:
        """Return a page of the entities of a type.

        :param version: whole, or its first numbers: 1 stands for every 1.x.y
        """
        raise NotImplementedError

    def list_entities_of_interface(
        self, principal: Principal, vendor: str, nss: str, version: str, query: Query
    ) -> Page[Entity]:
        """Return a page of the entities of all types that implement an interface; `version` as for types."""
        raise NotImplementedError

    def update_entity(
        self, principal: Principal, id: str, body: Any, if_match: str | None = None, invoke_hooks: bool = True
    ) -> Updated:
        """Change an entity (name, entity, externalId; entityState or state: IN_DELETION marks it for deletion).

        :param if_match: the header; None where it is absent. Another revision: 412
        :param invoke_hooks: False only with Full Control of the type
        """
        raise NotImplementedError

    def resolve_entity(self, principal: Principal, id: str) -> Entity:
        """Check an entity against its type's schema; return it as RESOLVED, or RESOLUTION_ERROR with a message."""
        raise NotImplementedError

    def delete_entity(
        self, principal: Principal, id: str, if_match: str | None = None, invoke_hooks: bool = True
    ) -> Task:
        """Delete an entity, by way of its hooks; return the task deleteDefinedEntity, which may have ended.

        A deletion that is still going on is gone on with: its task is returned.
        """
        raise NotImplementedError

    def invoke(self, principal: Principal, id: str, behavior: str, body: Any = None) -> Task:
        """Invoke a behavior on a RESOLVED entity, by id or ref, with `arguments` and `metadata` of the body."""
        raise NotImplementedError
