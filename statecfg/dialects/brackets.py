"""Finds the bracket that is never closed, or closes nothing, in Hy source that can't be read."""

from __future__ import annotations

import re

from statecfg.problems import Problem, SourceLocation, problem

PAIRS = {"(": ")", "[": "]", "{": "}"}
CLOSERS = {closer: opener for opener, closer in PAIRS.items()}
# Comments, bracket strings, strings, then brackets; everything else is passed over.
TOKEN = re.compile(r';[^\n]*|#\[(\w*)\[.*?\]\1\]|"(?:\\.|[^"\\])*"|(?P<open>"|#\[\w*\[)|[()\[\]{}]', re.DOTALL)


def check(text: str, path: str) -> Problem | None:
    """Return what is wrong with the brackets and strings of `text`, with its place; None where they match."""
    open_: list[tuple[str, int]] = []
    for found in TOKEN.finditer(text):
        token = found.group()
        if found.group("open"):
            return problem(
                "SC0501", "this string is never closed", 'add the missing "', place(text, path, found.start())
            )
        if token in PAIRS:
            if open_ and found.start() == text.rfind("\n", 0, found.start()) + 1:
                return _unclosed(
                    text, path, open_, f", though line {place(text, path, found.start()).line} starts anew"
                )
            open_.append((token, found.start()))
        elif token in CLOSERS:
            if not open_:
                return problem("SC0501", f"this {token} closes nothing", "remove it", place(text, path, found.start()))
            opener, start = open_.pop()
            if opener != CLOSERS[token]:
                return problem(
                    "SC0501",
                    f"{token} stands where {PAIRS[opener]} should close the {opener}",
                    "",
                    place(text, path, found.start()),
                    place(text, path, start),
                )
    return _unclosed(text, path, open_, "") if open_ else None


def _unclosed(text: str, path: str, open_: list[tuple[str, int]], why: str) -> Problem:
    opener, start = open_[-1]
    outer = [place(text, path, position) for _, position in open_[:-1]]
    count = f"; with those around it, {len(open_)} brackets are open" if outer else ""
    return problem(
        "SC0501",
        f"this {opener} is never closed{why}{count}",
        "close them, the last one first" if len(open_) > 20 else f"add {''.join(PAIRS[o] for o, _ in reversed(open_))}",
        place(text, path, start),
        *outer[:1],
    )


def place(text: str, path: str, index: int) -> SourceLocation:
    """Return the place of the character at `index`."""
    line_start = text.rfind("\n", 0, index) + 1
    return SourceLocation(path, text.count("\n", 0, index) + 1, index - line_start + 1)
