"""The request that handlers receive: Starlette's request with the caller and the checked query and body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette import requests

if TYPE_CHECKING:
    from statecfg.entities.model import Principal
    from statecfg.entities.operations import Operations
    from statecfg.store.database import Store


class ApiRequest(requests.Request):
    """A request to one of the routes.

    :param version: the requested version of the API, such as 36.0
    :param wants_xml: the response is in XML: the route has XML, and the client accepts it
    :param query: the declared parameters: name → converted value or default
    :param content: the JSON value of the body, or the fields of a form; None without a body
    """

    version: float
    wants_xml: bool
    query: Mapping[str, Any]
    content: Any

    @property
    def caller(self) -> Principal | None:
        """The user who sent the request; None without a valid token or browser session."""
        caller: Principal | None = self.state.caller
        return caller

    @property
    def principal(self) -> Principal:
        """The user who sent the request. Only routes that require a role have one."""
        if self.caller is None:
            raise TypeError("a route for anyone has no principal")
        return self.caller

    @property
    def browser_session(self) -> str:
        """The browser session of the request; "" if the client sent a token."""
        session: str = self.state.browser_session
        return session

    @property
    def operations(self) -> Operations:
        """The operations on entities."""
        operations: Operations = self.app.state.operations
        return operations

    @property
    def store(self) -> Store:
        """The server's store."""
        store: Store = self.app.state.store
        return store

    @property
    def base(self) -> str:
        """The URL that the client uses for the server, such as ``http://127.0.0.1:8470``."""
        return f"{self.scope['scheme']}://{self.headers['host']}"

    @property
    def address(self) -> str:
        """The URL of the request: `base` with the path, without the query."""
        return self.base + quote(self.scope["path"], safe="/:@!$&'()*+,;=~")
