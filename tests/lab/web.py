"""An HTTPS server in the test process that hosts can reach. It has its own certificate authority."""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.lab import network


class Web:
    """The servers: `url` with TLS, and `plain`, which is also a proxy for `http`.

    `files` contains path → content. `/short` sends less than it announces, `/unsized…` does not announce its size,
    `/to/PATH` redirects to the other server, and `/private` answers only requests with the header `Authorization:
    Bearer WORD`. `asked` has all requests.
    """

    def __init__(self, directory: Path) -> None:
        network.bridge()
        interface = ipaddress.ip_interface(network.next_address()[1])
        self.address = str(interface.network[1])
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.authority = directory / "web.pem"
        key = directory / "web.key"
        argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        names = f"subjectAltName=IP:{self.address},IP:127.0.0.1"
        argv += ["-keyout", str(key), "-out", str(self.authority), "-subj", "/CN=tests", "-addext", names]
        subprocess.run(argv, check=True, capture_output=True)
        self.authority_text = self.authority.read_text()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(self.authority, key)
        self.servers = [ThreadingHTTPServer(("", 0), self._handler()) for _ in range(2)]
        self.servers[0].socket = tls.wrap_socket(self.servers[0].socket, server_side=True)
        self.url, self.plain = (
            f"{scheme}://{self.address}:{server.server_port}"
            for scheme, server in zip(("https", "http"), self.servers, strict=True)
        )
        for server in self.servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def put(self, path: str, content: str | bytes) -> str:
        """Serve a file, and return its checksum."""
        data = content.encode() if isinstance(content, str) else content
        self.files[path] = data
        return f"sha256:{hashlib.sha256(data).hexdigest()}"

    def stop(self) -> None:
        """Stop both servers."""
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # the name is given by the class
                web.asked.append(self.path)
                path = "/" + self.path.split("/", 3)[3] if self.path.startswith("http:") else self.path
                if path == "/private" and self.headers.get("Authorization") != "Bearer s3cret-word-of-db":
                    self.send_error(401)
                elif path.startswith("/to/"):
                    self.send_response(302)
                    self.send_header("Location", web.plain + path[3:])
                    self.end_headers()
                elif path in web.files:
                    self.send_response(200)
                    if not path.startswith("/unsized"):
                        self.send_header("Content-Length", str(len(web.files[path]) + (7 if path == "/short" else 0)))
                    self.end_headers()
                    self.wfile.write(web.files[path])
                else:
                    self.send_error(404)

            def log_message(self, *args: Any) -> None:
                """Print nothing."""

        return Handler


@contextlib.contextmanager
def serving(directory: Path) -> Iterator[Web]:
    """Serve during a `with` block."""
    web = Web(directory)
    try:
        yield web
    finally:
        web.stop()
