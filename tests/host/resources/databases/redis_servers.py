"""Redis servers on test hosts: each has its own directory and port, and is not running yet."""

from __future__ import annotations

import shutil

import pytest

from tests.lab import Host

UNIT = """\
[Service]
Type=notify
ExecStart=/usr/bin/redis-server {path} --supervised systemd --daemonize no --dir /srv/{name}
"""


def path(name: str) -> str:
    """Return the path of the configuration file of a server."""
    return f"/srv/{name}/redis.conf"


def create(host: Host, name: str, port: int) -> str:
    """Create a server on a host, and return the name of its service. Skip the test if this machine has no server."""
    if not shutil.which("redis-server"):
        pytest.skip("not run on this machine: there is no Redis server (Debian: redis-server)")
    host.write(path(name), f"port {port}\ntimeout 9\n# maxmemory <bytes>\n")
    host.write(f"/etc/systemd/system/{name}.service", UNIT.format(name=name, path=path(name)))
    host.run(["systemctl", "daemon-reload"])
    return name


def ask(host: Host, port: int, *words: str, password: str = "") -> str:
    """Send a command to a server, and return what the client prints."""
    login = ["--no-auth-warning", "-a", password] if password else []
    return host.run(["redis-cli", "-p", str(port), *login, *words]).stdout.strip()
