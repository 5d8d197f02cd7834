"""Functions that tests of entities run in separate processes; see `tests.host.store.workers`."""

from __future__ import annotations

import os
import signal
from multiprocessing.connection import Connection as Pipe

from statecfg.entities.invocation import BehaviorResult
from statecfg.entities.operations import Operations
from statecfg.entities.problems import ApiError
from statecfg.store import opened
from tests.unit.entities.scenes import ROOT


def change(pipe: Pipe, url: str, id: str) -> None:
    """Change an entity with each ETag from the pipe. Send "ok", or the status of the refusal."""
    with opened(url=url) as store:
        operations = Operations(store)
        pipe.send("ready")
        while (etag := pipe.recv()) is not None:
            try:
                operations.update_entity(ROOT, id, {"name": f"by {os.getpid()}"}, etag)
                pipe.send("ok")
            except ApiError as problem:
                pipe.send(problem.status)


def work(pipe: Pipe, url: str) -> None:
    """Run all due tasks. Send the id of each invocation whose outcome was stored."""
    with opened(url=url) as store:
        operations = Operations(store)
        worker = f"process {os.getpid()}"
        while (task := operations.claim(worker)) is not None:
            while (found := operations.advance(task)) is not None:
                if operations.enter_outcome(task, found.id, BehaviorResult(True)):
                    pipe.send(found.id)


def die(pipe: Pipe, url: str, step: int) -> None:
    """Claim a task, finish `step` steps of it, begin the next step, and kill this process."""
    with opened(url=url) as store:
        operations = Operations(store)
        task = operations.claim("doomed")
        assert task is not None
        for _ in range(step):
            found = operations.advance(task)
            assert found is not None
            operations.enter_outcome(task, found.id, BehaviorResult(True))
        found = operations.advance(task)
        assert found is not None
        pipe.send((task, found.id))
        os.kill(os.getpid(), signal.SIGKILL)
