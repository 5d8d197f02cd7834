"""Strings of playbooks that may be templates."""

from __future__ import annotations

from statecfg.problems.positions import SourceLocation


class Text(str):
    """A string in a playbook, which may be a template.

    :param location: where the text starts
    :param block: whether its content starts on the line after `location`, as after `|`
    """

    __slots__ = ("block", "location")

    def __new__(cls, text: str, location: SourceLocation, block: bool = False) -> Text:
        """Attach a source location to a string."""
        result = super().__new__(cls, text)
        result.location, result.block = location, block
        return result

    location: SourceLocation
    block: bool


def is_template(text: str) -> bool:
    """Return whether a string contains Jinja2 syntax."""
    return "{" in text and any(mark in text for mark in ("{{", "{%", "{#"))
