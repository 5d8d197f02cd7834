"""Read the answers of programs that run SQL. A failed query is an error: it would look like an empty answer."""

from __future__ import annotations

import re

from statecfg.remote.graph.model import CheckError
from statecfg.remote.machine.world import Probe


def text(answer: Probe, what: str, server: str) -> str:
    """Return what a query prints.

    :param what: what it reads, for the message
    :param server: the name of the server software, for the message
    :raises CheckError: if it failed
    """
    if answer.status:
        raise unreadable(what, first_line(answer), server)
    return answer.text


def number(answer: Probe, what: str, server: str) -> int:
    """Return the number that a query prints, see `text`.

    :raises CheckError: if the query failed, or printed something else
    """
    found = text(answer, what, server).strip()
    if not re.match("[0-9]+\\Z", found):
        raise unreadable(what, "its answer is not a number", server)
    return int(found)


def first_line(answer: Probe) -> str:
    """Return why a program failed."""
    return (answer.errors.decode("utf-8", "replace").strip().splitlines() or ["no answer"])[0]


def unreadable(what: str, why: str, server: str) -> CheckError:
    """Return the error for a query that failed."""
    return CheckError(f"{what} can't be read from {server}: {why}; try again when the server answers")
