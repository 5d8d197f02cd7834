"""What a handler is given, what it returns, and what a route is: the values that all of the server shares."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statecfg.entities.model import Principal
    from statecfg.entities.operations import Operations
    from statecfg.playbook.project import Project
    from statecfg.server.live import Live
    from statecfg.server.sessions import Sessions
    from statecfg.store.database import Store

JSON = "application/json"
# Who may call a route, from everybody up. A role has its own permission and those before it.
ANYONE, VIEWER, AUTHOR, ADMINISTRATOR = "anyone", "viewer", "author", "administrator"
PERMISSIONS = (ANYONE, VIEWER, AUTHOR, ADMINISTRATOR)


@dataclass(frozen=True, slots=True)
class Shared:
    """What all requests of a server share.

    :param live: tells pages that are open what changes
    :param wake: tells the worker that there may be a task to run
    :param stopping: says whether the server is about to end, so that streams end, too
    """

    project: Project
    store: Store
    operations: Operations
    sessions: Sessions
    live: Live
    wake: Callable[[], None]
    stopping: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request whose form is right, by somebody who may make it.

    :param caller: who asks; None only on routes that are for anyone
    :param session: the browser session it came with; "" where it came with a token
    :param version: of the API, such as 36.0
    :param path: what stands in place of the path's parameters
    :param query: the parameters given, each of its declared type, or its default
    :param body: the JSON value, or the fields of a form; None where there is no body
    :param headers: by name in lower case
    :param base: how the client calls us, such as ``http://127.0.0.1:8470``
    :param address: the same with the path of the request
    :param xml: whether the client asks for XML, on a route that has it
    """

    shared: Shared
    caller: Principal | None
    session: str
    version: float
    path: Mapping[str, str]
    query: Mapping[str, Any]
    body: Any
    headers: Mapping[str, str]
    base: str
    address: str
    xml: bool = False

    @property
    def principal(self) -> Principal:
        """Who asks. Only for routes that are not for anyone."""
        if self.caller is None:
            raise TypeError("a route for anyone has no principal")
        return self.caller

    @property
    def operations(self) -> Operations:
        """What the API does."""
        return self.shared.operations


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back.

    :param body: a JSON value, or bytes of `media_type`; None for an answer without a body
    :param stream: pieces of a body without an end, in place of `body`
    :param media_type: the version of the API is added to that of JSON
    """

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = JSON
    stream: AsyncIterator[bytes] | None = None


Handler = Callable[[Asked], Answer]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the query.

    :param schema: a JSON schema of ``type`` string (with maxLength), integer (with minimum and maximum) or boolean; its
        ``default``, or None, stands where nothing is given
    """

    name: str
    schema: Mapping[str, Any]
    summary: str


@dataclass(frozen=True, slots=True)
class Route:
    """One entry of the table that routing, permissions and the OpenAPI document are made from.

    :param path: with parameters in braces; a slash at its end is tolerated in requests
    :param permission: one of `PERMISSIONS`; there is no default, and what is none of them is refused
    :param handler: called in a thread
    :param responses: status → name of the document in the body, None for none; errors need not be listed
    :param request: name of the document in the body; "" for requests that must have none
    :param optional: whether the body may be left out
    :param form: whether the body is a form instead of JSON
    :param xml: "" no XML; "asked" where the client asks for it; "default" unless it asks for JSON
    :param xml_type: the media type of that XML
    :param media_type: of the answers listed in `responses`
    :param documented: whether it is part of the API; what only the page uses is not
    :param denied: answers who gave no valid token, with 401, in place of an error in JSON
    """

    method: str
    path: str
    permission: str
    handler: Handler
    summary: str
    responses: Mapping[int, str | None]
    query: tuple[Parameter, ...] = ()
    request: str = ""
    optional: bool = False
    form: bool = False
    xml: str = ""
    xml_type: str = ""
    media_type: str = JSON
    denied: Handler | None = None
    documented: bool = True
