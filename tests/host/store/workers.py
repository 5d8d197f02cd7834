"""What the processes do that tests start beside themselves, and how they are started."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection as Pipe
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from statecfg.store import StoreError, hosts, migrations, opened

# A server that has everything imported makes each process: quick, and without the threads of whoever runs the tests.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.host.store.workers", "tests.host.entities.racing"])


@contextmanager
def started(*works: tuple[Callable[..., None], tuple[Any, ...]]) -> Iterator[list[tuple[BaseProcess, Pipe]]]:
    """Start a process for each work, which gets a pipe to us first; kill those that still run at the end."""
    running: list[tuple[BaseProcess, Pipe]] = []
    try:
        for work, given in works:
            ours, theirs = _CONTEXT.Pipe()
            process = _CONTEXT.Process(target=work, args=(theirs, *given), daemon=True)
            process.start()
            theirs.close()
            running.append((process, ours))
        yield running
    finally:
        for process, pipe in running:
            process.kill()
            process.join(20)
            process.close()
            pipe.close()


def finish(running: list[tuple[BaseProcess, Pipe]], seconds: float = 120) -> list[int | None]:
    """Wait until all have ended; return their exit codes."""
    deadline = time.monotonic() + seconds
    for process, _ in running:
        process.join(max(0.0, deadline - time.monotonic()))
    return [process.exitcode for process, _ in running]


def heard(pipe: Pipe, seconds: float = 60) -> Any:
    """Return the next word of a process."""
    if not pipe.poll(seconds):
        raise TimeoutError(f"nothing was said for {seconds} s")
    return pipe.recv()


def everything(pipe: Pipe) -> list[Any]:
    """Return all that a process that ended has said."""
    said = []
    try:
        while pipe.poll(0):
            said.append(pipe.recv())
    except (EOFError, ConnectionResetError):
        return said
    return said


def add_one(connection: Connection, name: str) -> int:
    """Count up a host's metadata: read, then write; what is lost or done twice shows in the sum."""
    count = int(hosts.ensure(connection, "", name).metadata.get("count", 0)) + 1
    hosts.change_metadata(connection, "", name, {"count": count})
    return count


def count(pipe: Pipe, url: str, name: str, times: int) -> None:
    """Count up `times` times; say each result once it is kept."""
    with opened(url=url) as store:
        for _ in range(times):
            pipe.send(store.attempt(lambda connection: add_one(connection, name)))


def write_much(pipe: Pipe, url: str, name: str) -> None:
    """Write for ever, enough at once that it does not fit into memory; say each number once it is kept."""
    with opened(url=url) as store:
        number = 0
        while True:
            number += 1
            values = {f"k{key}": f"{number} " * 200 for key in range(40)}
            hosts.set_metadata(store, name, {**values, "number": number})
            pipe.send(number)


def take_turns(pipe: Pipe, url: str, marker: str, times: int) -> None:
    """Take the turn again and again; fail where somebody else has it at the same time."""
    with opened(url=url) as store:
        for _ in range(times):
            with store.lock("marker", 60):
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
                time.sleep(0.002)
                os.unlink(marker)


def hold_turn(pipe: Pipe, url: str, name: str) -> None:
    """Take the turn and say so; then, for each word heard, say whether it is still ours."""
    with opened(url=url) as store, store.lock(name, 60) as lock:
        pipe.send("held")
        while True:
            pipe.recv()
            try:
                store.attempt(lock.hold)
                pipe.send("ours")
            except StoreError as problem:
                pipe.send(str(problem))


def make(pipe: Pipe, url: str) -> None:
    """Open a store, said at once and when it is done."""
    pipe.send("begun")
    opened(url=url).close()
    pipe.send("done")


# A version to come: many steps, so that there is a middle to be killed in.
NEXT = migrations.SCHEMA + 1
CHANGES = {
    NEXT: {"host": [*(f"ALTER TABLE host ADD COLUMN more{n} TEXT" for n in range(40)), "UPDATE host SET more0 = 'x'"]}
}


def bring_forward(pipe: Pipe, url: str) -> None:
    """Bring the schema to a version to come, in a transaction."""
    with opened(url=url) as store:
        pipe.send("begun")
        with store.transaction() as connection:
            migrations.forward(connection, migrations.SCHEMA, NEXT, CHANGES)
        pipe.send("done")


def use(pipe: Pipe, url: str, path: Path) -> None:
    """Copy a store while others write."""
    with opened(url=url) as store:
        store.backup(path)
