"""Filters and tests with regular expressions. Each has a time limit."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from statecfg.templates.filters.limits import BUDGET, Refused, TooMuch

_LARGE = 100_000  # characters; a longer result is made step by step


def regex_replace(
    text: Any,
    pattern: str,
    replacement: str,
    ignorecase: bool = False,
    multiline: bool = False,
    count: int = 0,
    mandatory_count: int = 0,
) -> str:
    """Return a string with all matches replaced. `\\1` in the replacement is the first group."""
    found = _compiled(pattern, ignorecase, multiline)
    budget, size = BUDGET.get(), 0

    def replaced(match: Any) -> str:
        nonlocal size
        more: str = match.expand(replacement)
        size += len(more)
        budget.tick()
        budget.text(size)
        budget.make(64 + len(more))
        return more

    large = (len(str(text)) + 1) * (len(replacement) + 1) > _LARGE or "\\" in replacement
    result, number = _searched(
        lambda timeout: found.subn(replaced if large else replacement, str(text), count, timeout=timeout)
    )
    if mandatory_count and number != mandatory_count:
        raise Refused(f"the pattern {pattern!r} matches {number} times instead of {mandatory_count} times")
    return str(result)


def regex_search(text: Any, pattern: str, *groups: str, ignorecase: bool = False, multiline: bool = False) -> Any:
    """Return the first match, or a list of its groups (`\\1`, `\\g<name>`); None if there is no match."""
    match = _searched(lambda timeout: _compiled(pattern, ignorecase, multiline).search(str(text), timeout=timeout))
    if match is None or not groups:
        return None if match is None else match[0]
    return [match[_group(name)] for name in groups]


def _group(name: str) -> str | int:
    match = re.fullmatch(r"\\(\d+)|\\g<(\w+)>", name)
    if match is None:
        raise Refused(f"{name!r} is not the name of a group", r"write \\1 or \\g<name>")
    return int(match[1]) if match[1] else str(match[2])


def regex_findall(text: Any, pattern: str, multiline: bool = False, ignorecase: bool = False) -> list[Any]:
    """Return all matches; if the pattern has several groups, each match as a list of them."""
    found = _compiled(pattern, ignorecase, multiline)
    matches: list[Any]
    if len(str(text)) <= _LARGE:
        matches = _searched(lambda timeout: found.findall(str(text), timeout=timeout))
        return matches
    budget = BUDGET.get()
    each = _searched(lambda timeout: budget.counted(found.finditer(str(text), timeout=timeout)))
    matches = _searched(lambda timeout: [_groups_of(match) for match in each])
    return matches


def _groups_of(match: Any) -> Any:
    groups = match.groups("")
    return match[0] if not groups else groups[0] if len(groups) == 1 else groups


def regex_escape(text: str, re_type: str = "python") -> str:
    """Return a pattern that matches exactly this text, for `python` or `posix_basic`."""
    if re_type == "posix_basic":
        return re.sub(r"([].[^$*\\])", r"\\\1", text)
    if re_type != "python":
        raise Refused(f"unknown type {re_type!r} of regular expressions", "write python or posix_basic")
    return re.escape(text)


def _compiled(pattern: str, ignorecase: bool, multiline: bool) -> Any:
    import regex  # type: ignore[import-untyped]  # no stubs; late, because most templates don't need it

    try:
        return regex.compile(pattern, (regex.I if ignorecase else 0) | (regex.M if multiline else 0))
    except regex.error as error:
        raise Refused(f"the regular expression {pattern!r} is invalid: {error}") from None


def _searched(search: Callable[[float], Any]) -> Any:
    """Return the result of a search that may take the rest of the template's time.

    :param search: receives its time limit in seconds
    """
    try:
        return search(max(0.01, BUDGET.get().left))
    except TimeoutError:
        raise TooMuch("a regular expression takes too long") from None


def match(text: Any, pattern: str, ignorecase: bool = False, multiline: bool = False) -> bool:
    """Tell whether a string begins with a match of a regular expression."""
    return regex_test(text, pattern, ignorecase, multiline, "match")


def search(text: Any, pattern: str, ignorecase: bool = False, multiline: bool = False) -> bool:
    """Tell whether a string contains a match of a regular expression."""
    return regex_test(text, pattern, ignorecase, multiline)


def regex_test(
    text: Any, pattern: str = "", ignorecase: bool = False, multiline: bool = False, match_type: str = "search"
) -> bool:
    """Tell whether a string matches a regular expression by `search`, `match` or `fullmatch`."""
    if match_type not in ("search", "match", "fullmatch"):
        raise Refused(f"unknown match_type {match_type!r}", "write one of: search, match, fullmatch")
    found = _compiled(pattern, ignorecase, multiline)
    return _searched(lambda timeout: getattr(found, match_type)(str(text), timeout=timeout)) is not None
