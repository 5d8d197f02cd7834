"""MariaDB servers on test hosts: each has its own data and socket, and is not running yet."""

from __future__ import annotations

import shutil

import pytest

from tests.lab import Host

UNIT = """\
[Service]
Type=notify
RuntimeDirectory=mysqld
RuntimeDirectoryPreserve=yes
User=mysql
ExecStart=/usr/sbin/mariadbd --no-defaults --datadir=/srv/{name}-data --socket={socket} --skip-networking \\
    --innodb-buffer-pool-size=8M --innodb-log-file-size=4M --innodb-flush-log-at-trx-commit=0 \\
    --general-log --general-log-file=/srv/{name}-data/general.log
"""


def socket(name: str) -> str:
    """Return the socket of a server."""
    return f"/run/mysqld/{name}.sock"


def create(host: Host, name: str) -> str:
    """Create a server on a host, and return the name of its service. Skip the test if this machine has no server."""
    if not shutil.which("mariadbd", path="/usr/sbin"):
        pytest.skip("not run on this machine: there is no MariaDB server (Debian: mariadb-server)")
    options = ["--auth-root-authentication-method=socket", "--skip-test-db", "--user=mysql"]
    host.run(["mariadb-install-db", "--no-defaults", f"--datadir=/srv/{name}-data", *options], seconds=600)
    host.write(f"/etc/systemd/system/{name}.service", UNIT.format(name=name, socket=socket(name)))
    host.run(["systemctl", "daemon-reload"])
    return name


def sql(host: Host, socket: str, text: str) -> str:
    """Run SQL as the administrator of the server, and return what it prints."""
    return host.run(["mariadb", "--no-defaults", "-N", "--raw", "-S", socket, "-e", text]).stdout.strip()


def login(host: Host, socket: str, user: str, password: str, text: str) -> tuple[int, str]:
    """Run SQL as a user with a password; return exit status and output."""
    argv = ["mariadb", "--no-defaults", "-N", "--raw", "-S", socket, "-u", user, f"-p{password}", "-e", text]
    done = host.run(argv, check=False)
    return done.returncode, done.stdout.strip() + done.stderr
