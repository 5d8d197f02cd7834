"""A server that runs on a test host and stores things: PUT, GET and DELETE of a path, with TLS if it has a key."""

from __future__ import annotations

from tests.lab import Host

WORD = "s3cret-word-of-db"  # requests that change something need the header `Authorization: Bearer` with it
# It lists all requests in the file `asked` beside it.
SERVER = f"""\
import http.server, os, ssl, sys, time
here, things = os.path.dirname(os.path.abspath(__file__)), {{}}
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, status, body=b""):
        with open(here + "/asked", "a") as stream:
            stream.write("%s %s\\n" % (self.command, self.path))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        if self.path in things:
            self.answer(200, things[self.path])
        else:
            self.answer(404, b"there is no such thing")
    def do_PUT(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Authorization") != "Bearer {WORD}":
            return self.answer(403)
        things[self.path] = body
        self.answer(201)
    def do_DELETE(self):
        if self.headers.get("Authorization") != "Bearer {WORD}":
            return self.answer(403)
        things.pop(self.path, None)
        self.answer(204)
time.sleep(0.5)
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*sys.argv[2:])
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


def start(host: Host, place: str, port: int) -> None:
    """Start a server on a host in the background. Its files are in `place`."""
    host.write(f"{place}/things.py", SERVER)
    host.run(["systemd-run", "--quiet", f"--unit=things-{port}", "/usr/bin/python3", f"{place}/things.py", str(port)])
    probe = f"until curl -s http://127.0.0.1:{port}/; do sleep 0.1; done"
    host.run(["timeout", "60", "sh", "-c", probe])


def delete(host: Host, port: int, path: str) -> None:
    """Delete a thing from a server."""
    argv = ["curl", "-fsS", "-X", "DELETE", "-H", f"Authorization: Bearer {WORD}", f"http://127.0.0.1:{port}{path}"]
    host.run(argv)


def asked(host: Host, place: str) -> list[str]:
    """Return all requests that a server got."""
    return host.read(f"{place}/asked").splitlines()
