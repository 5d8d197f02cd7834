"""One line for the user's login shell, whichever it is, out of an argument list.

sshd hands a command to the login shell. `shlex.join` knows POSIX shells only: csh looks for history behind `!` even
between quotes, and for fish a backslash between single quotes escapes. What stands here means the same to sh, bash,
dash, zsh, fish and tcsh, except that csh takes no line breaks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Not `=` and `%`: zsh looks for a program behind the one, some shells for a job behind the other.
_SAFE = re.compile(r"[A-Za-z0-9_@+:,./-]+")
_PIECES = re.compile(r"[^'\\!]+|['\\!]")


def quote(word: str) -> str:
    """Return `word` so that any shell takes it as one word, as it is."""
    if _SAFE.fullmatch(word):
        return word
    pieces = (f"\\{piece}" if piece in "'\\!" else f"'{piece}'" for piece in _PIECES.findall(word))
    return "".join(pieces) or "''"


def command_line(argv: Sequence[str]) -> str:
    """Return the line that makes a shell run `argv`. Raises ValueError for a NUL, which no argument can hold."""
    if any("\0" in word for word in argv):
        raise ValueError("an argument holds a NUL byte")
    return " ".join(quote(word) for word in argv)
