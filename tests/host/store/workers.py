"""Functions that tests run in separate processes, and helpers that start these processes."""

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

from statecfg.store import StoreError, hosts, locks, migrations, opened
from statecfg.store.connection import Connection

# The fork server has all modules loaded. It starts processes quickly, and without the threads of the test process.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.host.store.workers", "tests.host.entities.racing"])


@contextmanager
def started(*works: tuple[Callable[..., None], tuple[Any, ...]]) -> Iterator[list[tuple[BaseProcess, Pipe]]]:
    """Start a process for each work, with a pipe to it as its first argument. Kill running processes at the end."""
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
    """Wait until all processes have ended. Return their exit codes."""
    deadline = time.monotonic() + seconds
    for process, _ in running:
        process.join(max(0.0, deadline - time.monotonic()))
    return [process.exitcode for process, _ in running]


def heard(pipe: Pipe, seconds: float = 60) -> Any:
    """Return the next message of a process."""
    if not pipe.poll(seconds):
        raise TimeoutError(f"the process sent nothing for {seconds} s")
    return pipe.recv()


def everything(pipe: Pipe) -> list[Any]:
    """Return all messages of a process that has ended."""
    said = []
    try:
        while pipe.poll(0):
            said.append(pipe.recv())
    except (EOFError, ConnectionResetError):
        return said
    return said


def add_one(connection: Connection, name: str) -> int:
    """Read a counter in a host's metadata and store it plus one. The sum reveals lost and repeated writes."""
    count = int(hosts.ensure(connection, "", name).metadata.get("count", 0)) + 1
    hosts.change_metadata(connection, "", name, {"count": count})
    return count


def count(pipe: Pipe, url: str, name: str, times: int) -> None:
    """Increase the counter `times` times. Send each result after it is stored."""
    with opened(url=url) as store:
        for _ in range(times):
            pipe.send(store.attempt(lambda connection: add_one(connection, name)))


def write_much(pipe: Pipe, url: str, name: str) -> None:
    """Write forever, each time many values with the same number. Send each number after it is stored."""
    with opened(url=url) as store:
        number = 0
        while True:
            number += 1
            values = {f"k{key}": f"{number} " * 200 for key in range(40)}
            hosts.set_metadata(store, name, {**values, "number": number})
            pipe.send(number)


def take_turns(pipe: Pipe, url: str, marker: str, times: int) -> None:
    """Take the lock again and again. Fail if another process holds it at the same time."""
    with opened(url=url) as store:
        for _ in range(times):
            with locks.taken(store, "marker", 60):
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
                time.sleep(0.002)
                os.unlink(marker)


def hold_turn(pipe: Pipe, url: str, name: str) -> None:
    """Take the lock and send "held". Then answer each message with whether this process still holds the lock."""
    with opened(url=url) as store, locks.taken(store, name, 60) as lock:
        pipe.send("held")
        while True:
            pipe.recv()
            try:
                store.attempt(lock.hold)
                pipe.send("ours")
            except StoreError as problem:
                pipe.send(str(problem))


def make(pipe: Pipe, url: str) -> None:
    """Open a store. Send a message before and after."""
    pipe.send("begun")
    opened(url=url).close()
    pipe.send("done")


# A future schema version. It has many steps, so that a kill can happen between them.
NEXT = migrations.SCHEMA + 1
CHANGES = {
    NEXT: {"host": [*(f"ALTER TABLE host ADD COLUMN more{n} TEXT" for n in range(40)), "UPDATE host SET more0 = 'x'"]}
}


def bring_forward(pipe: Pipe, url: str) -> None:
    """Migrate the schema to a future version in one transaction."""
    with opened(url=url) as store:
        pipe.send("begun")
        with store.transaction() as connection:
            migrations.forward(connection, migrations.SCHEMA, NEXT, CHANGES)
        pipe.send("done")


def use(pipe: Pipe, url: str, path: Path) -> None:
    """Copy a store while other processes write to it."""
    with opened(url=url) as store:
        store.backup(path)
