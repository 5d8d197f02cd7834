"""Check texts that refer to groups of a regular expression. Node types call it on the controller only."""

from __future__ import annotations

import re


def refuse_references(pattern: object, text: object, attribute: str) -> None:
    """Check that a string refers only to groups of a pattern.

    Secrets, which have another type than text, are not checked: the host does that.

    :param attribute: the attribute with the text; `line` must not contain a line break
    :raises ValueError: if a reference or another escape is not valid, with the fix
    """
    if not isinstance(pattern, str) or not isinstance(text, str):
        return
    # The added alternative matches the empty text. The line break ends a comment of a verbose pattern.
    found = re.compile(pattern + "\n|", re.M).search("")
    assert found is not None
    try:
        expanded = found.expand(text)
    except (re.error, IndexError) as problem:
        help = r"write \\ for a backslash, \1 or \g<name> for a group of the pattern"
        raise ValueError(f"{attribute} is not valid for the pattern: {problem}; {help}") from None
    if attribute == "line" and "\n" in expanded:
        raise ValueError("line contains a line break; this must be one line")
