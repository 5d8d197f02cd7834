"""Find unbalanced brackets in Hy source that can't be parsed."""

from __future__ import annotations

import re

from statecfg.problems import Problem, SourceLocation, problem

PAIRS = {"(": ")", "[": "]", "{": "}"}
CLOSERS = {closer: opener for opener, closer in PAIRS.items()}
# Comments, bracket strings, strings, then brackets; everything else is ignored.
TOKEN = re.compile(r';[^\n]*|#\[(\w*)\[.*?\]\1\]|"(?:\\.|[^"\\])*"|(?P<open>"|#\[\w*\[)|[()\[\]{}]', re.DOTALL)


def check(text: str, path: str) -> Problem | None:
    """Return the first problem with the brackets and strings of `text`; None if they are balanced."""
    open_: list[tuple[str, int]] = []
    for match in TOKEN.finditer(text):
        token = match.group()
        if match.group("open"):
            return problem(
                "SC0501", "this string is never closed", 'add the missing "', location(text, path, match.start())
            )
        if token in PAIRS:
            if open_ and match.start() == text.rfind("\n", 0, match.start()) + 1:
                return _unclosed(
                    text, path, open_, f", and line {location(text, path, match.start()).line} starts a new form"
                )
            open_.append((token, match.start()))
        elif token in CLOSERS:
            if not open_:
                detail = f"this {token} has no opening bracket"
                return problem("SC0501", detail, "remove it", location(text, path, match.start()))
            opener, start = open_.pop()
            if opener != CLOSERS[token]:
                return problem(
                    "SC0501",
                    f"this {token} can't close the {opener}",
                    f"write {PAIRS[opener]} here, or check the brackets before it",
                    location(text, path, match.start()),
                    location(text, path, start),
                )
    return _unclosed(text, path, open_, "") if open_ else None


def _unclosed(text: str, path: str, open_: list[tuple[str, int]], why: str) -> Problem:
    opener, start = open_[-1]
    outer = [location(text, path, position) for _, position in open_[:-1]]
    count = f"; with those around it, {len(open_)} brackets are open" if outer else ""
    return problem(
        "SC0501",
        f"this {opener} is never closed{why}{count}",
        "close them, the last one first" if len(open_) > 20 else f"add {''.join(PAIRS[o] for o, _ in reversed(open_))}",
        location(text, path, start),
        *outer[:1],
    )


def location(text: str, path: str, index: int) -> SourceLocation:
    """Return the source location of the character at `index`."""
    line_start = text.rfind("\n", 0, index) + 1
    return SourceLocation(path, text.count("\n", 0, index) + 1, index - line_start + 1)
