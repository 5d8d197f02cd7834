"""Quote an argument list as one line for any login shell.

sshd passes a command to the user's login shell. `shlex.join` supports only POSIX shells: csh expands `!` even inside
quotes, and in fish a backslash inside single quotes escapes. This quoting means the same in sh, bash, dash, zsh, fish
and tcsh, except that csh does not accept line breaks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Without `=` and `%`: zsh expands `=program`, and some shells expand `%job`.
_SAFE = re.compile(r"[A-Za-z0-9_@+:,./-]+")
_PIECES = re.compile(r"[^'\\!]+|['\\!]")


def quote(word: str) -> str:
    """Return `word` quoted so that any shell reads it as this one word."""
    if _SAFE.fullmatch(word):
        return word
    pieces = (f"\\{piece}" if piece in "'\\!" else f"'{piece}'" for piece in _PIECES.findall(word))
    return "".join(pieces) or "''"


def command_line(argv: Sequence[str]) -> str:
    """Return the line that makes a shell run `argv`.

    :raises ValueError: an argument contains a NUL byte, which is impossible in arguments
    """
    if any("\0" in word for word in argv):
        raise ValueError("an argument contains a NUL byte")
    return " ".join(quote(word) for word in argv)
