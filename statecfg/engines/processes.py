"""Worker processes on this machine: `--engine processes`. Each uses another core."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from typing import IO

from statecfg.engines.link import Link

OURS = "STATECFG_"  # environment variables that set our options; one may contain a secret
ENDED = 2.0  # seconds in which a process whose socket is closed has ended
LARGEST_MESSAGE = 500  # bytes of its output in messages


class ProcessWorkers:
    """Processes that are connected to this one, and end with it.

    :param count: how many; None for one per core
    """

    def __init__(self, count: int | None = None) -> None:
        self.count = count or len(os.sched_getaffinity(0))
        self.processes: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []

    def start(self) -> Sequence[Link]:
        """Start the processes; see `Workers.start`."""
        return [self._start(f"{number + 1} of {self.count}") for number in range(self.count)]

    def _start(self, name: str) -> Link:
        ours, theirs = socket.socketpair()
        output = tempfile.TemporaryFile()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "statecfg.engines.processes", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[theirs.fileno()],
                env={key: value for key, value in os.environ.items() if not key.startswith(OURS)},
                start_new_session=True,  # Ctrl-C reaches only the controller, which ends its workers itself
            )
        self.processes.append((process, output))
        return Link(f"{name} (process {process.pid})", ours, partial(_describe, process, output))

    def close(self) -> None:
        """Wait until the processes have ended. They end because their sockets are closed."""
        for process, output in self.processes:
            try:
                process.wait(ENDED)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            output.close()


def _describe(process: subprocess.Popen[bytes], output: IO[bytes]) -> str:
    try:
        status = process.wait(ENDED)
    except subprocess.TimeoutExpired:
        return ""
    if output.closed:
        return ""
    how = f"it was killed by signal {-status}" if status < 0 else f"it ended with exit status {status}"
    output.seek(0, os.SEEK_END)
    output.seek(max(0, output.tell() - LARGEST_MESSAGE))
    message = output.read().decode("utf-8", "replace").strip()
    return how + (f": {message}" if message else "")


def main(descriptor: int) -> None:
    """Serve the controller on an inherited socket."""
    from statecfg.engines import open_files
    from statecfg.engines.relay import serve

    open_files.allow()
    with socket.socket(fileno=descriptor) as sock:
        os.set_inheritable(descriptor, False)
        serve(sock)


if __name__ == "__main__":
    main(int(sys.argv[1]))
