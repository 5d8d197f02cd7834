"""What a handler gets: Starlette's request with the caller, and with the query and body that were checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette import requests

if TYPE_CHECKING:
    from statecfg.entities.model import Principal
    from statecfg.entities.operations import Operations
    from statecfg.store.database import Store


class Request(requests.Request):
    """A request to one of the routes.

    `version` is the requested version of the API, such as 36.0. `query` has the declared parameters, each with its type
    or its default. `content` is the JSON value of the body, or the fields of a form; None without a body. `wants_xml`
    says whether the client asked for XML, on a route that has it.
    """

    version: float
    wants_xml: bool
    query: Mapping[str, Any]
    content: Any

    @property
    def caller(self) -> Principal | None:
        """The user who sent the request; None without a valid token."""
        caller: Principal | None = self.state.caller
        return caller

    @property
    def principal(self) -> Principal:
        """The user who sent the request, on a route that requires a role."""
        if self.caller is None:
            raise TypeError("a route for anyone has no principal")
        return self.caller

    @property
    def browser_session(self) -> str:
        """The browser session that the request belongs to; "" if it came with a token."""
        session: str = self.state.browser_session
        return session

    @property
    def operations(self) -> Operations:
        """The operations of the API."""
        operations: Operations = self.app.state.operations
        return operations

    @property
    def store(self) -> Store:
        """The store that the server shows."""
        store: Store = self.app.state.store
        return store

    @property
    def base(self) -> str:
        """The address by which the client calls the server, such as ``http://127.0.0.1:8470``."""
        return f"{self.scope['scheme']}://{self.headers['host']}"

    @property
    def address(self) -> str:
        """The same with the path of the request."""
        return self.base + quote(self.scope["path"], safe="/:@!$&'()*+,;=~")
