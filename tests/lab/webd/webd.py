#!/usr/bin/python3
"""webd: a small web server in the test packages. It reads a configuration file, and reads it again on SIGHUP.

`webd --check FILE` only checks a configuration. A configuration contains lines `port = N`, `message = TEXT` and
comments. `/` returns the message, and `/version` returns the version of the package.
"""

import http.server
import signal
import sys

VERSION = "@VERSION@"
DEFAULT = "/etc/webd/webd.conf"


def load(path: str) -> "dict[str, str]":
    """Read a configuration. If it is invalid, exit with code 1 and a message with the file and the line."""
    settings = {"port": "8080", "message": ""}
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            key, equals, value = (part.strip() for part in text.partition("="))
            if not equals or key not in settings or (key == "port" and not value.isdigit()):
                sys.exit(f"{path}:{number}: not a setting: {text}")
            settings[key] = value
    return settings


class Handler(http.server.BaseHTTPRequestHandler):
    """Returns the message or the version."""

    settings: "dict[str, str]" = {}

    def do_GET(self) -> None:
        """Answer a GET request."""
        text = VERSION if self.path == "/version" else self.settings["message"]
        body = (text + "\n").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def reload(*_: object) -> None:
    """Read the configuration again. An invalid one ends the server. The port does not change."""
    Handler.settings = load(DEFAULT)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        load(sys.argv[2])
        sys.exit(0)
    Handler.settings = load(DEFAULT)
    signal.signal(signal.SIGHUP, reload)
    http.server.ThreadingHTTPServer(("", int(Handler.settings["port"])), Handler).serve_forever()
