"""The page: its HTML, its login form, and the files that it loads."""

from __future__ import annotations

import functools
import hashlib
import html
from collections.abc import Mapping
from importlib import resources

from starlette.responses import HTMLResponse, Response

from statecfg.entities.problems import ApiError
from statecfg.server import sessions
from statecfg.server.auth import ANYONE, VIEWER
from statecfg.server.request import ApiRequest
from statecfg.server.routing import Routes

routes = Routes()
HTML = "text/html; charset=utf-8"
_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}


@functools.cache
def _files() -> Mapping[str, bytes]:
    folder = resources.files("statecfg.server") / "static"
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def _denied(_: ApiRequest) -> Response:
    return sign_in("", 401)


@routes("GET", "/", VIEWER, "Show the page.", {200: "Page"}, media_type=HTML, denied=_denied, documented=False)
def _page(request: ApiRequest) -> Response:
    """Answer with the page. Its scripts request the data, with the rights of the signed-in user."""
    caller = request.principal
    values = {"csrf": sessions.csrf(request.browser_session), "user": caller.name, "role": caller.role}
    return HTMLResponse(_filled("index.html", values))


def sign_in(message: str, status: int) -> Response:
    """Return a response with the login form.

    :param message: why the last login failed; "" if there was none
    :param status: the HTTP status
    """
    return HTMLResponse(_filled("login.html", {"message": message}), status)


def _filled(name: str, values: Mapping[str, str]) -> str:
    text = _files()[name].decode()
    for key, value in values.items():
        text = text.replace(f"{{{{{key}}}}}", html.escape(value))
    return text


@routes(
    "GET", "/static/{file}", ANYONE, "Get a file of the page.", {200: "Page"}, media_type="text/*", documented=False
)
def _static(request: ApiRequest) -> Response:
    # Starlette's StaticFiles reports errors in plain text, and bases its ETag on the file's time, not its content.
    name = request.path_params["file"]
    media_type = _TYPES.get(name.rpartition(".")[2])
    if media_type is None or name not in _files():
        raise ApiError(404, "NOT_FOUND", f"File {name} does not exist.")
    data = _files()[name]
    tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(None, 304, headers)
    return Response(data, 200, headers, media_type)
