"""The error that ends a host session early."""

from __future__ import annotations

from statecfg.remote.graph.errors import StatecfgError

SUSPICIOUS = (
    "The executor of statecfg never does this. Check the host, and what answers in its place, before you try again."
)
NO_ANSWER = "Check that this login may run programs, and that its login shell is a shell: `ssh HOST python3 -V`."
READABLE = 300  # characters of a line; a longer one repeats the program that statecfg starts


class Broken(StatecfgError):
    """The host broke the protocol, or stopped sending.

    :param summary: what is wrong, in one line
    :param hint: what the user should do
    :param heard_all: whether everything that the host sent has arrived: the executor ended, not the connection
    """

    def __init__(self, summary: str, hint: str = "", heard_all: bool = False) -> None:
        super().__init__(summary)
        self.summary, self.hint, self.heard_all = summary, hint, heard_all


def readable(printed: str) -> str:
    """Return what a host printed, without the lines that repeat the program of statecfg."""
    lines = printed.splitlines()
    short = [line for line in lines if len(line) <= READABLE]
    return "\n".join(short or [line[:READABLE] for line in lines])


def quoted(value: object) -> str:
    """Return the beginning of a value from a host, in quotes."""
    return f"{str(value)[:80]!r}"
