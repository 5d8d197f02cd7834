"""Problems, for people: code, summary, source location with the line itself, and help; all problems at once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict

from statecfg.problems import Problem, SourceLocation, tokens
from statecfg.views import safe
from statecfg.views.lines import BLANK, Line, make
from statecfg.views.tally import plural

MOST = 20
_TAB = 4
_LONGEST = 70
_CODE = (".py", ".hy")
# Passwords in lines that could not be parsed, as inventories contain them: in INI, in INI without `=`, and in YAML.
_NAME = r"(?i:pass|passwd|password|passphrase)"
_VALUE = r"(?!['\"]?\{[{%])([^\s=].*?)(?=\s+\w+=|\s*$)"
_PASSWORDS = (
    re.compile(rf"((?:^|[\s_]){_NAME}[ \t]*=[ \t]*){_VALUE}"),
    re.compile(rf"((?:^|_){_NAME}[ \t]+){_VALUE}"),
    re.compile(rf"(^[ \t-]*['\"]?(?:\w+_)?{_NAME}['\"]?:[ \t]+)(?![!&*|>{{\[]){_VALUE}"),
)


def problem_lines(problems: Sequence[Problem], base: Path) -> Iterator[Line]:
    """Yield the lines for the first 20 problems, and the number of the others.

    :param problems: the problems in the order in which they were found
    :param base: the directory to which relative source locations refer
    """
    for problem in problems[:MOST]:
        yield from _problem(problem, base)
        yield BLANK
    if len(problems) > MOST:
        yield make((f"… and {plural(len(problems) - MOST, 'more problem')}", "dim"))
    yield make((f"{plural(len(problems), 'problem')} found; no host was changed.", "bold"))


class LocationData(TypedDict):
    """A source location, for programs."""

    file: str
    line: int
    column: int | None


class ProblemData(TypedDict):
    """A problem, for programs."""

    code: str
    summary: str
    detail: str
    help: str
    places: list[LocationData]


def problem_data(problems: Sequence[Problem]) -> list[ProblemData]:
    """Return the problems as JSON data, for programs."""
    return [
        {
            "code": problem.code,
            "summary": problem.summary,
            "detail": problem.detail,
            "help": problem.help,
            "places": [
                {"file": position.file, "line": position.line, "column": position.column}
                for position in problem.locations
            ],
        }
        for problem in problems
    ]


def _problem(problem: Problem, base: Path) -> Iterator[Line]:
    yield make((f"error[{problem.code}]", "remove"), (f": {problem.summary}", "bold"), hang=4)
    for number, position in enumerate(problem.locations):
        yield from _excerpt(position, base, first=number == 0)
    detail = problem.detail
    for position in problem.locations:
        detail = detail.replace(str(position), str(nearer(position, base)))
    yield from _explanation(detail, problem.help)


def failure_lines(summary: str, detail: str, help: str) -> Iterator[Line]:
    """Yield the lines for a failure without a source location: what failed, how, and what to do."""
    yield make(("error", "remove"), (f": {summary}", "bold"), hang=4)
    yield from _explanation(detail, help)


def _explanation(detail: str, help: str) -> Iterator[Line]:
    for text in safe.block(detail) if detail else ():
        yield make("  ", text, hang=2)
    for number, text in enumerate(safe.block(help) if help else ()):
        yield make(("  help: " if number == 0 else "        ", "skip"), text, hang=8)


def _excerpt(position: SourceLocation, base: Path, first: bool) -> Iterator[Line]:
    if position.file.startswith("<"):  # nowhere: the problem is not in a file
        return
    near = nearer(position, base)
    yield make(("  --> " if first else "  and ", "skip"), str(near) if position.line else near.file, hang=6)
    if not position.line:
        return
    text = source_line(base / position.file, position.line)
    if text is None:
        return
    gutter = len(str(position.line))
    yield make((f"  {'':{gutter}} │", "skip"))
    visible, mark = _window(safe.line(text.expandtabs(_TAB)), _caret(text, position.column) if position.column else "")
    yield make((f"  {position.line} │ ", "skip"), visible, hang=gutter + 5)
    if mark:
        yield make((f"  {'':{gutter}} │ ", "skip"), (mark, "remove"))


def _window(text: str, mark: str) -> tuple[str, str]:
    """Return the part of a long line above its mark, and the mark, so that both fit on a terminal."""
    if len(text) <= _LONGEST:
        return text, mark
    start = len(mark) - len(mark.lstrip())
    cut = 0 if start < _LONGEST - 20 else start - 10
    head = "…" if cut else ""
    visible = head + text[cut + len(head) : cut + _LONGEST - 1]
    return visible + ("…" if cut + _LONGEST - 1 < len(text) else ""), mark[cut:][:_LONGEST]


def nearer(position: SourceLocation, base: Path) -> SourceLocation:
    """Return the position, with its file relative to `base` if the file is inside that directory."""
    path = Path(position.file)
    inside = path.is_absolute() and path.is_relative_to(base)
    return position._replace(file=str(path.relative_to(base))) if inside else position


def _caret(text: str, column: int) -> str:
    """Return the marks under the word that starts at `column` (counted from 1)."""
    start = min(column - 1, len(text))
    end = start
    while end < len(text) and (text[end].isalnum() or text[end] in "_-?"):
        end += 1
    lead = len(safe.line(text[:start].expandtabs(_TAB)))
    return " " * lead + "^" * max(1, end - start)


def _masked(text: str, is_code: bool) -> str:
    """Return a line of a file with its passwords hidden. It keeps its length, so that marks below it fit.

    :param is_code: whether `password=` only names an argument
    """
    for value in _values():
        text = text.replace(value, "*" * len(value))
    for pattern in () if is_code else _PASSWORDS:
        text = pattern.sub(lambda match: match[1] + "*" * len(match[2]), text)
    return text


def _values() -> list[str]:
    """Return the values of the secrets that were read."""
    if not tokens.in_use():
        return []
    from statecfg.graph import opaque  # takes time to import

    return [value for _, value in opaque.known_values()]


def source_line(path: Path, number: int) -> str | None:
    """Return line `number` (from 1) of a file, or None if it can't be read."""
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            for count, text in enumerate(stream, 1):
                if count == number:
                    return _masked(text.rstrip("\r\n"), path.suffix in _CODE)
    except (OSError, ValueError):
        return None
    return None
