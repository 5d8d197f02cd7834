"""Runs functions on several light hosts at the same time, because such tests mostly wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests import lab
from tests.lab import Host
from tests.lab.fixtures import or_skip

Found = dict[str, Any]  # the result of each function, or the exception that ended it


def side_by_side(prefix: str, works: Mapping[str, Callable[[Host], Any]]) -> Iterator[Found]:
    """Run each function in its own thread with its own host; yield the results by name."""
    with or_skip():
        machines = lab.light_hosts(len(works), prefix=prefix)
    found: Found = {}

    def work(name: str, host: Host) -> None:
        try:
            found[name] = works[name](host)
        except BaseException as problem:
            found[name] = problem

    threads = [threading.Thread(target=work, args=pair) for pair in zip(works, machines, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    yield found
    for host in machines:
        host.stop()


def given(found: Found, name: str) -> Any:
    """Return the result of a function, or raise the exception that ended it."""
    if isinstance(found[name], BaseException):
        raise found[name]
    return found[name]
