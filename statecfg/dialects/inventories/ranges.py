"""Expand the host patterns of Ansible's inventories: `web[01:10:2].example.org:2222`."""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Iterator

from statecfg.remote.graph.errors import StatecfgError

MAX_HOSTS = 100_000

_PORT = re.compile(r"(?:\[(?P<inner>.+)\]|(?P<plain>(?:[^:\[\]]|\[[^\]]*\])*)):(?P<port>[0-9]+)\Z")
_RANGE = re.compile(r"\[([^\[\]]*:[^\[\]]*)\]")
_IPV6 = re.compile(r"[0-9a-f]*:[0-9a-f:.]*:[0-9a-f.]*\Z", re.I)


class WrongRange(StatecfgError):
    """The text of a range or port is invalid. The message says why."""


def expand(pattern: str) -> tuple[list[str], int | None]:
    """Return the names that a pattern expands to, and its port.

    :raises WrongRange: the pattern contains an invalid range or port
    """
    port = None
    if match := _PORT.match(pattern):
        pattern, port = match["inner"] or match["plain"], int(match["port"])
        if not 1 <= port <= 65535:
            raise WrongRange(f"{port} is not a port: use 1 to 65535")
    elif pattern.endswith(":") and not _IPV6.match(pattern):
        raise WrongRange("a port must follow the `:`")
    parts = _RANGE.split(pattern)
    choices = [_values(part) if index % 2 else [part] for index, part in enumerate(parts)]
    total = 1
    for choice in choices:
        total *= len(choice)
    if total > MAX_HOSTS:
        raise WrongRange(f"`{pattern}` expands to {total:,} hosts; the maximum is {MAX_HOSTS:,}")
    return ["".join(one) for one in itertools.product(*choices)], port


def _values(text: str) -> list[str]:
    return list(_checked(text, *text.split(":")))


def _checked(text: str, begin: str, end: str = "", step: str = "1", *more: str) -> Iterator[str]:
    if more or not end:
        raise WrongRange(f"the range [{text}] must be [begin:end] or [begin:end:step]")
    begin = begin or "0"
    if not step.isdecimal() or int(step) < 1:
        raise WrongRange(f"the step of the range [{text}] must be a number from 1")
    letters = string.ascii_letters
    if len(begin) == len(end) == 1 and begin in letters and end in letters:
        values = letters[letters.index(begin) : letters.index(end) + 1 : int(step)]
        if not values:
            raise WrongRange(f"the range [{text}] ends before it begins")
        yield from values
        return
    if not (begin.isdecimal() and end.isdecimal()):
        raise WrongRange(f"the range [{text}] must consist of numbers, or of two letters")
    width = len(begin) if begin[0] == "0" and len(begin) > 1 else 0
    if width and width != len(end):
        raise WrongRange(f"both ends of the range [{text}] must have the same number of digits")
    if int(begin) > int(end):
        raise WrongRange(f"the range [{text}] ends before it begins")
    numbers = range(int(begin), int(end) + 1, int(step))
    if len(numbers) > MAX_HOSTS:
        raise WrongRange(f"the range [{text}] has {len(numbers):,} values; the maximum is {MAX_HOSTS:,}")
    yield from (str(number).zfill(width) for number in numbers)
