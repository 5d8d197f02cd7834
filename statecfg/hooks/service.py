"""Write an HTTP hook in ten lines: functions for its phases, and a server for them. Standard library only.

from statecfg.hooks.service import HookError, HookService

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
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from statecfg.remote.graph.errors import StatecfgError

__all__ = ["HookError", "HookService", "Request"]

MAX_REQUEST = 64 << 20  # bytes
PATIENCE = 30.0  # seconds in which a request has to say something

Json = dict[str, Any]


class HookError(StatecfgError):
    """The hook failed, and what follows from that.

    :param message: for people
    :param permanent: whether trying again is pointless
    :param continue_: whether the run goes on nevertheless, with the children as they were
    :param status: of the HTTP answer, 300 or more
    """

    def __init__(self, message: str, permanent: bool = False, continue_: bool = False, status: int = 500) -> None:
        self.message, self.permanent, self.continue_, self.status = message, permanent, continue_, status
        super().__init__(message)

    def body(self) -> Json:
        """Return the error as the contract has it."""
        body: Json = {"message": self.message, "permanent": self.permanent}
        return {**body, "continue": True} if self.continue_ else body


@dataclass
class Request:
    """What a hook is asked; what it changes in here is its answer.

    :param phase: "pre-reconcile" or "finalize"
    :param form_factor: what kind of children there are
    :param object: what is reconciled; only its `status` can be changed
    :param children: the desired objects by key; all of them have to stay. Empty at finalize
    """

    phase: str
    form_factor: str
    object: Json
    children: dict[str, Json] = field(default_factory=dict)

    @property
    def status(self) -> Json:
        """The object's status, to be changed."""
        found = self.object.setdefault("status", {})
        assert isinstance(found, dict)
        return found

    def condition(self, type: str, ok: bool, reason: str, message: str = "") -> None:
        """Set a condition of the status.

        :param type: one that the registration lists under `conditionsFromHook`; others do not last
        :param reason: one word in capitals
        """
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        made = {"type": type, "status": str(ok), "reason": reason, "message": message, "lastTransitionTime": moment}
        found = self.status.get("conditions")
        others = [item for item in found if item.get("type") != type] if isinstance(found, list) else []
        self.status["conditions"] = [*others, {key: value for key, value in made.items() if value}]


Handler = Callable[[Request], Any]


class HookService:
    """An HTTP service for hooks: give it a function for each phase, then run it.

    :param path: where it answers
    :param form_factors: those it knows; none for any
    """

    def __init__(self, path: str = "/v1", form_factors: Collection[str] = ()) -> None:
        self.path, self.form_factors = path, tuple(form_factors)
        self.handlers: dict[str, Handler] = {}

    def pre_reconcile(self, function: Handler) -> Handler:
        """Let a function shape object and children before they are applied: `@service.pre_reconcile`."""
        self.handlers["pre-reconcile"] = function
        return function

    def finalize(self, function: Handler) -> Handler:
        """Let a function clean up before an object goes: `@service.finalize`. Until it succeeds, the object stays."""
        self.handlers["finalize"] = function
        return function

    def run(self, host: str = "127.0.0.1", port: int = 8080) -> None:
        """Answer requests until the process is ended. Give "0.0.0.0" as host to be asked from elsewhere."""
        with self._server(host, port) as server:
            server.serve_forever()

    @contextlib.contextmanager
    def serving(self, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
        """Answer requests beside what runs inside, such as a test; give the URL. Port 0 takes a free one."""
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
        except Exception as error:  # whatever a handler raises is its answer: the controller asks again
            text = f"{type(error).__name__}: {error}"
            return 500, JSON, json.dumps({"message": text}) + "\n"
        reply: Json = {}
        if _differ(request.object, before["object"]):
            reply["object"] = request.object
        if _differ(request.children, before.get("children") or {}) and request.phase == "pre-reconcile":
            reply["children"] = request.children
        return 200, JSON, json.dumps(reply) + "\n"


def _differ(one: Json, other: Json) -> bool:
    """Tell whether two JSON objects differ; 1 and true do."""
    return json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True)


TEXT = "text/plain; charset=utf-8"
JSON = "application/json"


def _read(body: bytes) -> Request:
    """Return the request that a body holds. Raises ValueError, which says what is wrong."""
    try:
        given = json.loads(body)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(given, dict):
        raise ValueError("it is no JSON object")
    factor = given.get("formFactor")
    name = factor.get("name") if isinstance(factor, dict) else factor
    found = given.get("object")
    children = given.get("children") or {}
    if not isinstance(found, dict) or not isinstance(children, dict):
        raise ValueError("`object` and `children` have to be JSON objects")
    return Request(str(given.get("phase", "")), str(name or ""), found, children)


class _Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = PATIENCE

    def answer(self, path: str, body: bytes) -> tuple[int, str, str]:
        raise NotImplementedError

    def do_POST(self) -> None:
        """Answer a request; http.server calls this."""
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch(r"[0-9]{1,12}", length) or int(length) > MAX_REQUEST:
            self.close_connection = True
            self._send(413, TEXT, f"a request has a Content-Length of at most {MAX_REQUEST} bytes\n")
            return
        self._send(*self.answer(self.path.partition("?")[0], self.rfile.read(int(length))))

    def _send(self, status: int, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
