"""Functions that find, await and end processes and their descendants."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


def parents() -> dict[int, int]:
    """Return the parent ids of all processes."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb", buffering=0) as file:
                    stat = file.read()
            except (FileNotFoundError, ProcessLookupError):
                continue  # the process has ended since the listing
            found[int(entry)] = int(stat.rpartition(b")")[2].split(None, 2)[1])
    return found


def children(pid: int) -> list[int]:
    """Return the ids of the direct children of a process, lowest first."""
    return sorted(child for child, parent in parents().items() if parent == pid)


def descendants(pid: int) -> list[int]:
    """Return the ids of all descendants of a process, children first."""
    by_parent: dict[int, list[int]] = {}
    for child, parent in parents().items():
        by_parent.setdefault(parent, []).append(child)
    found, pending = [], [pid]
    while pending:
        below = by_parent.get(pending.pop(0), [])
        found += below
        pending += below
    return found


def alive(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def connected(pid: int, address: str, port: int) -> bool:
    """Return whether a process has a TCP connection to an IPv4 address."""
    remote = f"{int.from_bytes(socket.inet_aton(address), sys.byteorder):08X}:{port:04X}"
    try:
        rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()]
        sockets = {f"socket:[{row[9]}]" for row in rows if row[2] == remote and row[3] == "01"}
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except (FileNotFoundError, ProcessLookupError):
        return False  # the process has ended
    return any(_target(f"/proc/{pid}/fd/{name}") in sockets for name in descriptors)


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except (FileNotFoundError, ProcessLookupError):
        return ""  # it was closed since the listing


def end(process: subprocess.Popen[bytes], *, ends_after_children: bool = False) -> None:
    """Kill a process that we started and all its descendants. Wait until they have ended.

    Parameters: `ends_after_children`, whether the process reaps its children and ends after them. Then this function
    kills only the descendants. Otherwise, they might stay zombies if process 1 reaps no children.
    """
    below = descendants(process.pid) if process.poll() is None else []
    if not (ends_after_children and below):
        process.kill()
    for pid in below:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue  # the process has ended with its parent
    try:
        process.wait(30)
    finally:
        process.kill()
        process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            stream.close()
    wait_until(lambda: not any(alive(pid) for pid in below), 30, f"processes below {process.pid} to end")


def wait_until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait until a function returns true. After `seconds`, raise TimeoutError with `what`."""
    deadline = time.monotonic() + seconds
    pause = 0.005
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds} s in vain for {what}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)


def ssh_answers(address: str, port: int) -> bool:
    """Return whether an SSH server answers at an address."""
    try:
        with socket.create_connection((address, port), timeout=2) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False
