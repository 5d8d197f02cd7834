"""The process that runs one behavior. It reads its request from stdin and answers on the descriptor in its argument.

The parent reads the behavior's output. The end of stdin means that the parent is gone: then this process ends, with
everything that it started.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

# Not in the thread that needs them: imports of several threads at once can end in a deadlock.
from statecfg.entities.processes import MARK
from statecfg.remote.machine.process import kill_marked

if TYPE_CHECKING:
    from statecfg.entities import functions, playbooks
    from statecfg.entities.invocation import Update


def main(descriptor: int) -> int:
    """Handle one request, of `functions` or `playbooks`; return 0 after answering it."""
    os.set_inheritable(descriptor, False)
    requests = os.fdopen(os.dup(0), "rb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    request: functions.FunctionRequest | playbooks.PlaybookRequest = json.loads(requests.readline())
    threading.Thread(target=_end_with, args=(requests,), daemon=True).start()
    lock = threading.Lock()
    with os.fdopen(descriptor, "wb", buffering=0) as frames:

        def send(message: Mapping[str, Any]) -> None:
            with lock:
                frames.write(json.dumps(message).encode() + b"\n")

        send({"answer": _result(request, lambda news: send({"update": news}))})
    return 0


def _result(
    request: functions.FunctionRequest | playbooks.PlaybookRequest, update: Callable[[Update], None]
) -> functions.FunctionResult | playbooks.PlaybookResult:
    if request["do"] == "function":
        from statecfg.entities import functions

        return functions.call(request, update)
    from statecfg.entities import playbooks

    cancel = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: cancel.set())
    return playbooks.run(request, update, cancel)


def _end_with(stream: BinaryIO) -> None:
    """When a stream ends, kill this process, its group, and all marked processes that left the group."""
    while stream.read(1):
        continue
    kill_marked(MARK, os.environ[MARK], signal.SIGKILL, os.getpid())
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1])))
