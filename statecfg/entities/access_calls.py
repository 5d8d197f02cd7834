"""Calls about access controls of types and entities, and about tokens."""

from __future__ import annotations

from typing import Any

from statecfg.entities.calls import Calls
from statecfg.entities.model import Grant, Page, Principal, Query, Token


class AccessCalls(Calls):
    """Calls about access controls: who has Full Control of a type or an entity gives and takes them."""

    def list_grants(self, principal: Principal, object: str, query: Query) -> Page[Grant]:
        """Return a page of the access controls of a type or an entity."""
        raise NotImplementedError

    def get_grant(self, principal: Principal, object: str, grant: str) -> Grant:
        """Return an access control of a type or an entity."""
        raise NotImplementedError

    def add_grant(self, principal: Principal, object: str, body: Any) -> Grant:
        """Give a user or organization access (grantType, accessLevelId, memberId), in place of what it had."""
        raise NotImplementedError

    def update_grant(self, principal: Principal, object: str, grant: str, body: Any) -> Grant:
        """Change the level of an access control (accessLevelId)."""
        raise NotImplementedError

    def replace_grants(self, principal: Principal, object: str, body: Any) -> Page[Grant]:
        """Put `values` in the place of all access controls; return the first page of them."""
        raise NotImplementedError

    def delete_grant(self, principal: Principal, object: str, grant: str) -> None:
        """Take an access control away."""
        raise NotImplementedError

    def add_token(self, name: str, org: str, role: str, lasting: float | None = None) -> str:
        """Return a new token of a user: the secret itself, 43 characters, which is nowhere else.

        :param lasting: seconds; None: until it is removed
        :raises ApiError: the name, organization or role is none
        """
        raise NotImplementedError

    def list_tokens(self) -> list[Token]:
        """Return the tokens that were given out and have not expired, by number."""
        raise NotImplementedError

    def delete_token(self, id: int) -> bool:
        """Remove a token; return whether there was one of that number."""
        raise NotImplementedError

    def revoke(self, secret: str) -> bool:
        """Remove a token by its secret (logging out); return whether there was one."""
        raise NotImplementedError

    def principal_of(self, secret: str) -> Principal | None:
        """Return whose a token is; None: nobody's, or it has expired."""
        raise NotImplementedError

    def invocation_token(self, invocation: str) -> str:
        """Return a token for an invocation that runs, which ends with it: what it changes runs no hooks.

        :param invocation: its id
        :raises ApiError: it does not run
        """
        raise NotImplementedError
