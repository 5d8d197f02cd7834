"""PostgreSQL servers on test hosts: a new cluster of Debian's packages, which is not running yet."""

from __future__ import annotations

import pytest

from tests.lab import Host

PG = "/usr/lib/postgresql"


def create(host: Host, name: str, port: int) -> str:
    """Create a cluster on a host, and return the name of its service. Skip the test if this machine has no server."""
    versions = sorted(path.name for path in host.path(PG).iterdir()) if host.path(PG).is_dir() else []
    if not versions:
        pytest.skip("not run on this machine: there is no PostgreSQL server (Debian: postgresql)")
    options = ["--port", str(port), "--locale", "C.UTF-8"]
    host.run(["pg_createcluster", *options, versions[-1], name, "--", "--no-sync"])
    host.write(f"/etc/postgresql/{versions[-1]}/{name}/conf.d/tests.conf", "fsync = off\nlog_statement = all\n")
    return f"postgresql@{versions[-1]}-{name}"


def sql(host: Host, port: int, text: str, database: str = "postgres") -> str:
    """Run SQL as the administrator of the server, and return what it prints."""
    argv = ["runuser", "-u", "postgres", "--", "psql", "-X", "-At", "-p", str(port), "-d", database, "-c", text]
    return host.run(argv).stdout.strip()


def login(host: Host, port: int, user: str, password: str, database: str, text: str) -> tuple[int, str]:
    """Run SQL as a role with a password, over TCP; return exit status and output."""
    argv = ["env", f"PGPASSWORD={password}", "psql", "-X", "-At", "-h", "127.0.0.1", "-p", str(port), "-U", user]
    done = host.run([*argv, "-d", database, "-c", text], check=False)
    return done.returncode, done.stdout.strip() + done.stderr
