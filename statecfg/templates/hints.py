"""What to write instead of a wrong template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment
from jinja2.utils import missing

from statecfg.problems import Problem, problem, suggest
from statecfg.problems.positions import SourceLocation
from statecfg.remote.graph.wrong_values import type_words
from statecfg.templates.sandbox import Missing

_TYPE_WORDS = {int: "a number", float: "a number", type(None): "empty"}
# Part of a message of Jinja → what to write.
_UNCLOSED = {
    "expected 'end of print statement'.": "close `{{` with `}}`",
    "expected 'end of statement block'.": "close `{%` with `%}`",
    "Missing end of comment tag": "close `{#` with `#}`",
    "following tags": "close every {% block %} with its {% end… %}",
    "Unexpected end of template": "close every {% block %} with its {% end… %}",
}


def undefined(error: Missing, variables: Mapping[str, Any], locations: list[SourceLocation]) -> Problem:
    """Return the problem of an undefined name.

    :param variables: the variables of the template
    :param locations: where the name is used
    """
    if error.owner is missing:
        hint = suggest(str(error.name), sorted(variables), "variables here") if error.name else ""
        return problem("SC0321", f"the variable `{error.name}` is not defined", hint, *locations)
    if isinstance(error.owner, Mapping):
        hint = suggest(str(error.name), [str(key) for key in error.owner], "it has")
        owner = _path(error.owner, variables) or "a map"
        return problem("SC0321", f"{owner} has no key `{error.name}`", hint, *locations)
    path, words = _path(error.owner, variables), _TYPE_WORDS.get(type(error.owner), type_words(error.owner))
    owner = f"{path} is {words} and" if path else words
    return problem("SC0321", f"{owner} has no `{error.name}`", "check the value of the name before it", *locations)


def _path(value: Any, variables: Mapping[str, Any]) -> str:
    """Return the name of a value in a message, such as `host.name` with backticks; "" if it has no or several names."""
    found: list[str] = []
    waiting = list(variables.items())
    for _ in range(1000):  # a limit: variables can be large
        if not waiting:
            return f"`{found[0]}`" if len(found) == 1 else ""
        name, item = waiting.pop()
        if item is value:
            found.append(name)
        elif isinstance(item, dict) and name.count(".") < 5:  # not in facts, because a read of facts is recorded
            waiting += [(f"{name}.{key}", inner) for key, inner in item.items()]
    return ""


def syntax(message: str, environment: Environment) -> str:
    """Return a help text for a syntax error.

    :param message: the message of Jinja
    :param environment: has the filters and tests to suggest
    """
    for category, valid in (("filter", environment.filters), ("test", environment.tests)):
        start = f"No {category} named '"
        if message.startswith(start):
            return suggest(message[len(start) :].split("'")[0], sorted(valid), "available")
    if message.endswith("got '='"):
        return "to compare, write `==`"
    for ending, help_text in _UNCLOSED.items():
        if ending in message:
            return help_text
    if message.startswith("Encountered unknown tag"):
        return "use a tag of Jinja, such as `if`, `for` or `set`"
    return "check the expression, and quote the strings in it"
