"""Help texts that suggest the name that was probably meant."""

from __future__ import annotations

import os
from collections.abc import Iterable

from statecfg.remote.graph.suggestions import did_you_mean, nearest, question

LISTED = 8  # valid names that a help text lists


def suggest(name: str, valid: Iterable[str], what: str = "it may be") -> str:
    """Return a help text with the name that was probably meant, and up to eight other valid names.

    :param name: the misspelled name
    :param valid: the names that are allowed, in the order in which the text lists them
    :param what: the words before the list if no name is similar
    :returns: such as "did you mean `mode`? (also valid: owner, group)"; "" if there are no valid names
    """
    names = list(valid)
    close = nearest(name, names)
    others = [item for item in names[:LISTED] if item not in close]
    meant = question(close)
    if not others:
        return meant
    listed = ", ".join(others) + (", …" if len(names) > LISTED else "")
    return f"{meant} (also valid: {listed})" if meant else f"{what}: {listed}"


def sentence(help_text: str) -> str:
    """Return a help text as a sentence after another one: with a space before it and a capital letter; "" for none."""
    return f" {help_text[0].upper()}{help_text[1:]}" if help_text else ""


def suggest_file(path: str | os.PathLike[str]) -> str:
    """Return a help text with the names of files in the same directory that were probably meant; "" for none.

    :param path: a file that does not exist
    """
    folder, name = os.path.split(os.path.abspath(path))
    try:
        files = sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
    except OSError:
        return ""
    return did_you_mean(name, files)
