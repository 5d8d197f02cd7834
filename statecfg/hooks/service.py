"""Write an HTTP hook in ten lines: a server, and a function for each phase. Uses only the standard library.

from statecfg import HookService

service = HookService()

@service.pre_reconcile
def greet(request):
    request.children["file:/etc/motd"]["spec"]["content"] = "Managed.\\n"
    request.condition("Greeted", True, "GREETED")

service.run(port=8080)
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.graph.names import ResourceEvent

__all__ = ["HookError", "HookRequest", "HookService", "Request"]

MAX_REQUEST = 64 << 20  # bytes
PATIENCE = 30.0  # seconds to wait for data of a request

Json = Mapping[str, Any]


class HookError(StatecfgError):
    """A handler raises this to report its failure.

    :param message: for people
    :param permanent: whether a retry is pointless
    :param continue_: whether the run continues nevertheless, with unchanged children
    :param status: status of the HTTP answer, 300 or more
    """

    def __init__(self, message: str, permanent: bool = False, continue_: bool = False, status: int = 500) -> None:
        self.message, self.permanent, self.continue_, self.status = message, permanent, continue_, status
        super().__init__(message)

    def body(self) -> Json:
        """Return the error as JSON, by the contract of hooks."""
        body: Json = {"message": self.message, "permanent": self.permanent}
        return {**body, "continue": True} if self.continue_ else body


@dataclass
class HookRequest:
    """A request to a hook. The handler changes it, and the changes become the answer.

    :param phase: "pre-reconcile" or "finalize"
    :param form_factor: the kind of the children
    :param object: the reconciled object; only changes of its `status` count
    :param children: the desired objects by key; none may be removed. Empty in the phase finalize
    :param dry_run: a plan asks: answer as always, and change nothing. Only services with the capability `dry-run` are
        asked
    """

    phase: str
    form_factor: str
    object: dict[str, Any]
    children: dict[str, dict[str, Any]] = field(default_factory=dict)
    dry_run: bool = False

    @property
    def status(self) -> dict[str, Any]:
        """The object's status, which the handler may change."""
        status = self.object.setdefault("status", {})
        assert isinstance(status, dict)
        return status

    def condition(self, type: str, ok: bool, reason: str, message: str = "") -> None:
        """Set a condition of the status.

        :param type: a type that the registration lists under `conditionsFromHook`; other conditions are dropped
        :param ok: the state of the condition
        :param reason: one word in capitals
        :param message: for people
        """
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        condition = {
            "type": type,
            "status": str(ok),
            "reason": reason,
            "message": message,
            "lastTransitionTime": moment,
        }
        before = self.status.get("conditions")
        others = [item for item in before if item.get("type") != type] if isinstance(before, list) else []
        self.status["conditions"] = [*others, {key: value for key, value in condition.items() if value}]


Request = HookRequest  # its name until 0.3; users may import it
Handler = Callable[[HookRequest], Any]


class HookService:
    """An HTTP service for hooks. Register a function for each phase, then run it.

    :param path: the path of its URL
    :param form_factors: the accepted form factors; empty for all
    """

    def __init__(self, path: str = "/v1", form_factors: Collection[str] = ()) -> None:
        self.path, self.form_factors = path, tuple(form_factors)
        self.handlers: dict[str, Handler] = {}

    def pre_reconcile(self, function: Handler) -> Handler:
        """Register a function that changes object and children before they are applied: `@service.pre_reconcile`."""
        self.handlers[ResourceEvent.PRE_RECONCILE] = function
        return function

    def finalize(self, function: Handler) -> Handler:
        """Register a function that cleans up before an object is removed: `@service.finalize`.

        The object stays until the function succeeds.
        """
        self.handlers[ResourceEvent.FINALIZE] = function
        return function

    def run(self, host: str = "127.0.0.1", port: int = 8080) -> None:
        """Answer requests until the process ends.

        :param host: the address to listen on; "0.0.0.0" accepts requests from other machines
        """
        with self._server(host, port) as server:
            server.serve_forever()

    @contextlib.contextmanager
    def serving(self, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
        """Answer requests while the block runs, for example in a test; yield the URL. Port 0 selects a free port."""
        with self._server(host, port) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
            thread.start()
            try:
                yield f"http://{host}:{server.server_port}{self.path}"
            finally:
                server.shutdown()
                thread.join()

    def _server(self, host: str, port: int) -> ThreadingHTTPServer:
        service = self

        class Answering(_Answering):
            def answer(self, path: str, body: bytes) -> tuple[int, str, str]:
                return service.answer(path, body)

        server = ThreadingHTTPServer((host, port), Answering)
        server.daemon_threads = True
        return server

    def answer(self, path: str, body: bytes) -> tuple[int, str, str]:
        """Return status, content type and body of the answer to a request."""
        if path not in (self.path, self.path + "/"):
            return 404, TEXT, f"no resource at path {json.dumps(path)}\n"
        try:
            request = _read(body)
        except ValueError as error:
            return 400, TEXT, f"cannot decode request into HookRequest: {error}\n"
        if self.form_factors and request.form_factor not in self.form_factors:
            return 400, TEXT, f"request for formfactor {json.dumps(request.form_factor)} not supported\n"
        handler = self.handlers.get(request.phase)
        if handler is None:
            return 400, TEXT, f"request for phase {json.dumps(request.phase)} not supported\n"
        before = json.loads(body)
        try:
            handler(request)
        except HookError as error:
            return error.status, JSON, json.dumps(error.body(), separators=(",", ":")) + "\n"
        except Exception as error:  # report any other error, too: the controller retries
            text = f"{type(error).__name__}: {error}"
            return 500, JSON, json.dumps({"message": text}) + "\n"
        reply: dict[str, Any] = {}
        if _differ(request.object, before["object"]):
            reply["object"] = request.object
        if _differ(request.children, before.get("children") or {}) and request.phase == ResourceEvent.PRE_RECONCILE:
            reply["children"] = request.children
        return 200, JSON, json.dumps(reply) + "\n"


def _differ(one: Json, other: Json) -> bool:
    """Return whether two JSON objects differ. Unlike in Python, 1 differs from true."""
    return json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True)


TEXT = "text/plain; charset=utf-8"
JSON = "application/json"


def _read(body: bytes) -> HookRequest:
    """Return the request in a body.

    :raises ValueError: the body is invalid; the message says why
    """
    try:
        content = json.loads(body)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(content, dict):
        raise ValueError("it is not a JSON object")
    factor = content.get("formFactor")
    name = factor.get("name") if isinstance(factor, dict) else factor
    object = content.get("object")
    children = content.get("children") or {}
    if not isinstance(object, dict) or not isinstance(children, dict):
        raise ValueError("`object` and `children` must be JSON objects")
    dry_run = content.get("dryRun") is True
    return HookRequest(str(content.get("phase", "")), str(name or ""), object, children, dry_run)


class _Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = PATIENCE

    def answer(self, path: str, body: bytes) -> tuple[int, str, str]:
        raise NotImplementedError

    def do_POST(self) -> None:
        """Answer a request. http.server calls this."""
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch(r"[0-9]{1,12}", length) or int(length) > MAX_REQUEST:
            self.close_connection = True
            self._send(413, TEXT, f"a request has a Content-Length of at most {MAX_REQUEST} bytes\n")
            return
        self._send(*self.answer(self.path.partition("?")[0], self.rfile.read(int(length))))

    def _send(self, status: int, content_type: str, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
