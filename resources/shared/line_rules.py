"""Text that becomes one line of a file for a program. Only the controller uses this module."""

from __future__ import annotations

from statecfg.remote.graph.value_rules import encodable, no_nul
from statecfg.remote.graph.wrong_values import Wrong


def joins_next(text: str) -> bool:
    """Return whether a program that knows continued lines reads the next line as a part of this one."""
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def check_line(what: str, text: str) -> None:
    """Check that a string is exactly one line for a program that knows continued lines, such as systemd.

    :param what: what the text is, for the message
    :raises Wrong: if a program reads a part of it as another line, or the next line as a part of it
    """
    no_nul(encodable(text))
    if "\n" in text or "\r" in text:
        raise Wrong(f"{what} has a value that is not one line", "write one line per value")
    if joins_next(text):
        help_text = "remove it, or write two if the value ends with one"
        raise Wrong(f"{what} ends with a backslash, which continues the line in the next one", help_text)
