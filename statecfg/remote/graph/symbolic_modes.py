"""Symbolic modes, such as `u=rw,go=r` or `a+X`. Source: chmod(1) of GNU and of POSIX, with the classes always given."""

from __future__ import annotations

import re
from typing import Any

_CLAUSE = re.compile(r"([ugoa]+)((?:[-+=](?:[ugo]|[rwxXst]*))+)\Z")
_STEP = re.compile(r"([-+=])([ugo]|[rwxXst]*)")
_SHIFTS = {"u": 6, "g": 3, "o": 0}
_SPECIAL = {"u": 0o4000, "g": 0o2000, "o": 0o1000}  # the bit that belongs to a class
_BITS = {"r": 4, "w": 2, "x": 1}


def valid(text: str) -> bool:
    """Tell whether a string is a symbolic mode that can be applied."""
    for clause in text.split(","):
        found = _CLAUSE.match(clause)
        if found is None:
            return False
        who, steps = found.groups()
        if ("s" in steps and not set("uga") & set(who)) or ("t" in steps and not set("oa") & set(who)):
            return False
    return True


def stable(text: str) -> bool:
    """Tell whether applying a symbolic mode twice has the same result as applying it once, for every mode."""
    for directory in (False, True):
        for mode in range(0o10000):
            once = applied(text, mode, directory)
            if applied(text, once, directory) != once:
                return False
    return True


def of(text: str, stat: Any, directory: bool) -> int:
    """Return the mode that a path gets.

    :param stat: its Stat; None if it is new
    """
    return applied(text, stat.mode if stat else 0o755 if directory else 0o644, directory)


def applied(text: str, mode: int, directory: bool) -> int:
    """Return the mode that a valid symbolic mode makes of another mode.

    :param directory: whether it is the mode of a directory; its set-user-id and set-group-id bits survive `=`
    """
    new = mode
    for clause in text.split(","):
        found = _CLAUSE.match(clause)
        assert found is not None
        who = "ugo" if "a" in found.group(1) else found.group(1)
        for sign, given in _STEP.findall(found.group(2)):
            bits = mask = 0
            for letter in who:
                bits |= _allowed(given, new, directory) << _SHIFTS[letter]
                if ("s" in given and letter in "ug") or ("t" in given and letter == "o"):
                    bits |= _SPECIAL[letter]
                mask |= 7 << _SHIFTS[letter] | (0 if directory and letter in "ug" else _SPECIAL[letter])
            new = new & ~bits if sign == "-" else (new & ~mask if sign == "=" else new) | bits
    return new


def _allowed(given: str, mode: int, directory: bool) -> int:
    """Return the bits of one class that the letters of a step mean.

    :param mode: the mode before this step
    """
    if given and given in "ugo":
        return mode >> _SHIFTS[given] & 7
    bits = sum(_BITS[letter] for letter in set(given) & set(_BITS))
    return bits | (1 if "X" in given and (directory or mode & 0o111) else 0)
