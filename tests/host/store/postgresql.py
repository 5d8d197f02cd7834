"""A real PostgreSQL server for tests: Debian's programs, an unprivileged user, a separate directory, only loopback."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from tests.lab import owner, plain, processes

PASSWORD = "correct horse"
_PREFIX = "statecfg-postgresql-"


@dataclass
class Server:
    """A running server. `postgres` connects through a socket in `folder`, and `ann` over loopback with a password."""

    folder: Path
    port: int
    argv: Sequence[str] = field(repr=False)
    process: subprocess.Popen[bytes] = field(repr=False)

    def url(self, database: str) -> str:
        """Return the URL of a database through the socket."""
        return f"postgresql://postgres@/{database}?host={self.folder}&port={self.port}"

    def by_password(self, database: str, password: str) -> str:
        """Return the URL of a database over TCP for the user ann."""
        return f"postgresql://ann:{password}@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str = "postgres") -> psycopg.Connection[Any]:
        """Open a connection as the user postgres."""
        return psycopg.connect(self.url(database), autocommit=True)

    def fresh(self) -> str:
        """Create an empty database. Return its name."""
        name = f"t{uuid.uuid4().hex}"
        with self.connect() as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return name

    def drop(self, name: str) -> None:
        """Remove a database, even if it has connections."""
        with self.connect() as connection:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())

    def restart(self, kill: bool = False) -> None:
        """Stop the server and start it again. With `kill`, stop it by SIGKILL."""
        self.end(signal.SIGKILL if kill else signal.SIGINT)
        self.process = _started(self.folder, self.port, self.argv)

    def stop(self) -> None:
        """Stop the server and remove its directory."""
        self.end(signal.SIGINT)
        shutil.rmtree(self.folder)
        owner.forget(self)

    def end(self, how: signal.Signals) -> None:
        """Stop the server by a signal, and wait for its processes: they hold shared memory that a new server needs."""
        below = processes.descendants(self.process.pid)
        self.process.send_signal(how)
        try:
            self.process.wait(20)
        finally:
            processes.end(self.process)
        processes.wait_until(lambda: not any(map(processes.alive, below)), 20, "the server's processes to end")


def start() -> Server:
    """Start a server. Raise `Unavailable` if PostgreSQL is not installed."""
    program = _programs()
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    try:
        account = _account()
        os.chown(folder, account.pw_uid, account.pw_gid)
        argv = _as(account)
        made = [program / "initdb", "-D", folder / "data", "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8"]
        subprocess.run([*argv, *map(str, made), "--no-locale"], check=True, capture_output=True, cwd="/")
        (folder / "data/pg_hba.conf").write_text(
            "local all postgres trust\nhost all ann 127.0.0.1/32 scram-sha-256\n", encoding="ascii"
        )
        port = plain.free_port()
        options = {
            "listen_addresses": "127.0.0.1",
            "port": port,
            "unix_socket_directories": folder,
            "fsync": "off",
            "full_page_writes": "off",
        }
        command = [*argv, str(program / "postgres"), "-D", str(folder / "data")]
        command += [text for name, value in options.items() for text in ("-c", f"{name}={value}")]
        server = Server(folder, port, command, _started(folder, port, command))
    except BaseException:
        shutil.rmtree(folder)
        raise
    owner.remember(server)
    with server.connect() as connection:
        connection.execute(f"CREATE ROLE ann SUPERUSER LOGIN PASSWORD '{PASSWORD}'".encode())
    return server


def _started(folder: Path, port: int, argv: Sequence[str]) -> subprocess.Popen[bytes]:
    log = folder / "log"
    process = owner.start(argv, stdin=subprocess.DEVNULL, log=log)

    def ready() -> bool:
        if process.poll() is not None:
            raise RuntimeError(f"the PostgreSQL server ended: {log.read_text()}")
        try:
            psycopg.connect(f"postgresql://postgres@/postgres?host={folder}&port={port}").close()
        except psycopg.OperationalError:
            return False
        return True

    try:
        processes.wait_until(ready, 30, "the server to answer")
    except BaseException:
        processes.end(process)
        raise
    return process


def _programs() -> Path:
    """Return the directory of the newest installed PostgreSQL. Raise `Unavailable` if there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not found:
        raise owner.Unavailable("there is no PostgreSQL server (Debian: postgresql)")
    return found[-1].parent


def _account() -> pwd.struct_passwd:
    """Return the account for the server, which refuses root. Debian's package creates the user postgres."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    return pwd.getpwnam("postgres")


def _as(account: pwd.struct_passwd) -> list[str]:
    if os.geteuid() != 0:
        return []
    # Changing the user clears the signal at the parent's death, so setpriv sets it again.
    user = ["--reuid", str(account.pw_uid), "--regid", str(account.pw_gid), "--clear-groups"]
    return ["setpriv", *user, "--pdeathsig", "KILL", "--"]


def _sweep() -> None:
    """Remove the directories of servers whose test process was killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        match = re.match(rf"{_PREFIX}(\d+)-", path.name)
        if match and not os.path.exists(f"/proc/{match[1]}"):
            shutil.rmtree(path, ignore_errors=True)
