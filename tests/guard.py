"""Refuses processes, connections and sleep in unit tests. A test that needs them belongs in `tests/host/`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from typing import Any, NoReturn

import pytest

# Events of Python's audit hooks. Event loops use `socketpair`, which makes no connection and raises none of these.
REFUSED = {
    "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "pty.spawn", "subprocess.Popen",
    "socket.bind", "socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto",
}  # fmt: skip
_refusing = False


def refuse(what: str) -> NoReturn:
    """Fail the test with an exception that `except Exception` does not catch."""
    pytest.fail(f"a unit test used {what}: move it to tests/host/")


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _refusing and event in REFUSED:
        refuse(event)


sys.addaudithook(_audit)  # Python can't remove an audit hook, so a flag switches it off


@pytest.fixture(scope="package", autouse=True)
def only_python() -> Iterator[None]:
    """Refuse processes, connections and sleep in the tests and fixtures of a directory."""
    global _refusing
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "sleep", lambda seconds: refuse("time.sleep"))
        patch.setattr(BaseProcess, "start", lambda process: refuse("multiprocessing"))
        _refusing = True
        yield
        _refusing = False
