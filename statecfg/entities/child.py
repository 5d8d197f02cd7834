"""The process in which one behavior runs: its request on stdin, its answer on the descriptor that its argument names.

What the behavior prints is its own; who asks us keeps it. When stdin ends, whoever asked is gone, and so are we, and
all that was started here.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

Json = dict[str, Any]


def main(descriptor: int) -> int:
    """Do one request: {"do": "function" or "playbook", …}; return 0 where it was answered."""
    os.set_inheritable(descriptor, False)
    given = os.fdopen(os.dup(0), "rb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    request: Json = json.loads(given.readline())
    threading.Thread(target=_end_with, args=(given,), daemon=True).start()
    lock = threading.Lock()
    with os.fdopen(descriptor, "wb", buffering=0) as frames:

        def say(what: Json) -> None:
            with lock:
                frames.write(json.dumps(what).encode() + b"\n")

        say({"answer": _answer(request, lambda news: say({"update": news}))})
    return 0


def _answer(request: Json, update: Callable[[Json], None]) -> Json:
    if request["do"] == "function":
        from statecfg.entities import functions

        return functions.call(request, update)
    from statecfg.entities import playbooks

    cancel = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: cancel.set())
    return playbooks.run(request, update, cancel)


def _end_with(stream: BinaryIO) -> None:
    """End, with all of our group and all that left it, when a stream ends."""
    from statecfg.entities.processes import MARK
    from statecfg.remote.machine.process import kill_marked

    while stream.read(1):
        continue
    kill_marked(MARK, os.environ[MARK], signal.SIGKILL, os.getpid())
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1])))
