"""Jinja2 templates: files, YAML scalars and expressions. Imports `graph` and below.

Most functions are in `rendering`, which loads Jinja2. Playbooks without templates don't need it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from statecfg.problems.positions import SourceLocation
from statecfg.templates.text import Text, is_template

if TYPE_CHECKING:
    from statecfg.templates.rendering import UNREADABLE, expression, names, render_file, render_text

__all__ = [
    "UNREADABLE",
    "Text",
    "evaluate",
    "expression",
    "is_template",
    "names",
    "render_file",
    "render_text",
    "resolve",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from statecfg.templates import rendering

    return getattr(rendering, name)


def evaluate(text: str, variables: Mapping[str, Any], location: SourceLocation, block: bool = False) -> Any:
    """Return the value of a scalar of a playbook.

    A string that consists of one `{{ expression }}` returns the value of the expression with its type: numbers stay
    numbers and lists stay lists. Any other text is rendered as text. Text is never converted because of its content.

    :param text: the scalar
    :param variables: the variables that it can use
    :param location: where the text starts
    :param block: whether its content starts on the line after `location`
    :raises InvalidInput: the template is wrong or fails; for an undefined name, the help lists the existing names
    """
    if not is_template(text):
        return text
    from statecfg.templates import rendering

    return rendering.evaluate(text, variables, location, block)


def resolve(value: Any, variables: Mapping[str, Any]) -> Any:
    """Return a value in which each `Text` is evaluated, also in lists and maps. Other strings stay unchanged.

    :raises InvalidInput: a template is wrong or fails
    """
    if isinstance(value, Text):
        return evaluate(value, variables, value.location, value.block)
    if isinstance(value, dict):
        return {key: resolve(item, variables) for key, item in value.items()}
    if isinstance(value, list):
        return [resolve(item, variables) for item in value]
    return value
