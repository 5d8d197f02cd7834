"""Calls about access controls of types and entities, and about tokens."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from typing import Any

from statecfg.entities import access, bodies, rows, urn
from statecfg.entities.calls import Calls, listed
from statecfg.entities.filters import FilterField
from statecfg.entities.model import (
    FULL_CONTROL,
    MEMBERSHIP,
    PROVIDER,
    READ_ONLY,
    ROLES,
    Grant,
    Page,
    Principal,
    Query,
    Token,
)
from statecfg.entities.problems import bad, forbidden
from statecfg.store import records
from statecfg.store.entities import lists as entity_lists
from statecfg.store.entities import tables

FIELDS = {
    "id": FilterField("id"),
    "objectId": FilterField("object"),
    "accessLevelId": FilterField("level"),
    "memberId": FilterField("member"),
}
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,127}")


class AccessCalls(Calls):
    """Calls about access controls and tokens. Users with Full Control of an object change its access controls."""

    def list_grants(self, principal: Principal, object: str, query: Query) -> Page[Grant]:
        """Return a page of the access controls of a type or an entity."""
        with self.store.reading() as connection:
            _need_control(connection, principal, object)
            scope = entity_lists.of(tables.grant, object=object)
            return listed(connection, tables.grant, scope, query, FIELDS, rows.grant)

    def get_grant(self, principal: Principal, object: str, grant: str) -> Grant:
        """Return an access control of a type or an entity."""
        with self.store.reading() as connection:
            _need_control(connection, principal, object)
            return _grant(connection, object, grant)

    def add_grant(self, principal: Principal, object: str, body: Any) -> Grant:
        """Grant access to a user or an organization (grantType, accessLevelId, memberId).

        It replaces the member's earlier grant.
        """

        def add(connection: Any) -> Grant:
            _need_control(connection, principal, object)
            member, level = _member_and_level(bodies.whole(body))
            return _put(connection, object, member, level)

        return self.store.attempt(add)

    def update_grant(self, principal: Principal, object: str, grant: str, body: Any) -> Grant:
        """Change the level of an access control (accessLevelId)."""

        def change(connection: Any) -> Grant:
            _need_control(connection, principal, object)
            current = _grant(connection, object, grant)
            fields = bodies.whole(body)
            if fields.get("memberId") not in (None, current.member):
                raise bad("memberId can't be changed.", "RDE_IMMUTABLE")
            level = access.level_of(fields.get("accessLevelId"))
            records.change(connection, tables.grant, {"level": level}, id=grant)
            return _grant(connection, object, grant)

        return self.store.attempt(change)

    def replace_grants(self, principal: Principal, object: str, body: Any) -> Page[Grant]:
        """Replace all access controls by `values`; return the first page of them."""

        def replace(connection: Any) -> Page[Grant]:
            _need_control(connection, principal, object)
            levels = dict(_member_and_level(item) for item in bodies.values(body))
            for row in records.every(connection, tables.grant, object=object):
                if row.member not in levels:
                    records.drop(connection, tables.grant, id=row.id)
            for member, level in levels.items():
                _put(connection, object, member, level)
            scope = entity_lists.of(tables.grant, object=object)
            return listed(connection, tables.grant, scope, Query(), FIELDS, rows.grant)

        return self.store.attempt(replace)

    def delete_grant(self, principal: Principal, object: str, grant: str) -> None:
        """Remove an access control."""

        def drop(connection: Any) -> None:
            _need_control(connection, principal, object)
            _grant(connection, object, grant)
            records.drop(connection, tables.grant, id=grant)

        self.store.attempt(drop)

    def add_token(self, name: str, org: str, role: str, lasting: float | None = None) -> str:
        """Create a token for a user. Return the secret: 43 characters, which are not stored anywhere.

        :param lasting: lifetime in seconds; None: until someone deletes the token
        :raises ApiError: the name, organization or role is invalid
        """
        bodies.one_of(role, ROLES, "role")
        for key, value in (("name", name), ("org", org)):
            if not NAME.fullmatch(value):
                raise bad(f"{key} must consist of at most 128 letters, digits, `_`, `-`, `.` and `@`.")
        if (role == ROLES[0]) != (org == PROVIDER):
            raise bad(f"The organization {PROVIDER} is for administrators, and administrators must belong to it.")
        expires = None if lasting is None else self.clock() + lasting
        return self._token({"name": name, "org": org, "role": role, "expires": expires, "invocation": None})

    def _token(self, values: Mapping[str, Any]) -> str:
        secret, now = secrets.token_urlsafe(32), self.clock()

        def enter(connection: Any) -> None:
            entity_lists.forget_tokens(connection, now)
            records.add(connection, tables.token, {**values, "digest": digest(secret), "created": now})

        self.store.attempt(enter)
        return secret

    def list_tokens(self) -> list[Token]:
        """Return the users' tokens that have not expired, by number."""
        now = self.clock()
        with self.store.reading() as connection:
            tokens = records.every(connection, tables.token, invocation=None)
            return [rows.token(row) for row in tokens if row.expires is None or row.expires > now]

    def delete_token(self, id: int) -> bool:
        """Remove a token; return whether the number existed."""
        return self.store.attempt(lambda connection: records.drop(connection, tables.token, id=id)) == 1

    def levels_of_types(self, principal: Principal) -> dict[str, str]:
        """Return type → access level ("ReadOnly", "ReadWrite" or "FullControl") for all types that the user may see."""
        with self.store.reading() as connection:
            ranks = access.to_types(connection, principal)
        return {id: access.name_of(rank) for id, rank in ranks.items()}

    def level_of_entity(self, principal: Principal, id: str) -> str:
        """Return a user's access level for an entity: "ReadOnly", "ReadWrite" or "FullControl".

        :raises ApiError: the entity doesn't exist, or the user may not see it
        """
        with self.store.reading() as connection:
            rank = access.to_entity(connection, principal, rows.need(connection, tables.entity, id))
            access.need(rank, READ_ONLY, id)
            return access.name_of(rank)

    def orgs(self, principal: Principal) -> list[str]:
        """Return the organizations that a user may see: administrators see all with tokens, others only their own."""
        if not principal.is_administrator:
            return [principal.org]
        with self.store.reading() as connection:
            tokens = records.every(connection, tables.token, invocation=None)
        return sorted({principal.org, *(row.org for row in tokens)})

    def revoke(self, secret: str) -> bool:
        """Remove a token by its secret (logout); return whether it existed."""
        key = digest(secret)
        return self.store.attempt(lambda connection: records.drop(connection, tables.token, digest=key)) == 1

    def principal_of(self, secret: str) -> Principal | None:
        """Return the user of a token; None if the token is unknown or has expired."""
        with self.store.reading() as connection:
            return owner(records.find(connection, tables.token, digest=digest(secret)), self.clock())

    def invocation_token(self, invocation: str) -> str:
        """Return a token for a running invocation.

        The token is valid until the invocation ends. Changes made with it run no hooks.

        :param invocation: its id
        :raises ApiError: the invocation is not running
        """
        with self.store.reading() as connection:
            task = records.find(connection, tables.task, invocation=invocation)
        if task is None or task.ended is not None:
            raise bad(f"The invocation {invocation[:64]} is not running.")
        values = {"name": task.user, "org": task.org, "role": task.role}
        return self._token({**values, "expires": None, "invocation": invocation})


def owner(token: Any, now: float) -> Principal | None:
    """Return the user of a token (a row); None if the row is None or the token has expired."""
    if token is None or (token.expires is not None and token.expires <= now):
        return None
    return Principal(token.name, token.org, token.role, token.invocation or "")


def digest(secret: str) -> str:
    """Return the digest that the store keeps instead of a token or cookie."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def _need_control(connection: Any, principal: Principal, object: str) -> None:
    """Check that the user has Full Control of a type or an entity.

    :raises ApiError: the user lacks it, or the id names neither
    """
    entity = records.find(connection, tables.entity, id=object)
    if entity is not None:
        have = access.to_entity(connection, principal, entity)
    else:
        rows.need(connection, tables.entity_type, object)
        have = access.to_type(connection, principal, object)
    access.need(have, FULL_CONTROL, object)


def _grant(connection: Any, object: str, grant: str) -> Grant:
    row = records.find(connection, tables.grant, object=object, id=grant)
    if row is None:
        raise forbidden(grant[:200])
    return rows.grant(row)


def _member_and_level(body: Mapping[str, Any]) -> tuple[str, str]:
    """Return the member and the access level from a request body.

    :raises ApiError: the body is invalid
    """
    if body.get("grantType") not in (None, MEMBERSHIP):
        raise bad(f"grantType must be {MEMBERSHIP}.")
    member = bodies.text(body, "memberId")
    if not urn.MEMBER.fullmatch(member):
        raise bad("memberId must be the URN of a user or an organization: urn:vcloud:user:… or urn:vcloud:org:….")
    return member, access.level_of(body.get("accessLevelId"))


def _put(connection: Any, object: str, member: str, level: str) -> Grant:
    if not records.change(connection, tables.grant, {"level": level}, object=object, member=member):
        values = {"id": urn.grant(), "object": object, "member": member, "level": level}
        records.add(connection, tables.grant, values)
    return rows.grant(records.find(connection, tables.grant, object=object, member=member))
