"""Asks a server of preloaded processes to run `statecfg`: `python ask.py SOCKET ARGUMENT…`.

This process has the output and the exit code of the command, and passes signals on to it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys


def main() -> int:
    """Return the exit code of the command."""
    path, *argv = sys.argv[1:]
    umask = os.umask(0o77)
    request = {"module": "statecfg", "argv": argv, "cwd": os.getcwd(), "environ": dict(os.environ), "umask": umask}
    ours, theirs = socket.socketpair()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.connect(path)
        socket.send_fds(server, [json.dumps(request).encode()], [theirs.fileno(), 0, 1, 2])
    theirs.close()
    pid = int(ours.recv(32))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: os.kill(pid, number))
    code = int(ours.recv(32))
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
