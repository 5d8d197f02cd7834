"""The options of services: what their settings may be, as the `options` of a charm's config.yaml have them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from statecfg.playbook.secrets import Secret
from statecfg.problems import problem, report, suggest
from statecfg.problems.positions import SourceLocation
from statecfg.remote.graph.values import kind_of, show

# Type → what its values are, in words.
TYPES = {
    "string": "a text",
    "int": "a whole number of at most 64 bits",
    "float": "a number",
    "boolean": "true or false",
    "secret": "a secret",
}
KEYS = ("type", "default", "description")
INTEGERS = range(-(2**63), 2**63)


@dataclass(frozen=True)
class Option:
    """An option of a service.

    :param name: what hooks ask for
    :param type: one of `TYPES`
    :param default: its value where no setting gives one; None for none
    :param description: what it is for, for people
    """

    name: str
    type: str = "string"
    default: Any = None
    description: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return it as it is stored and shown: type, default and description."""
        return {"type": self.type, "default": self.default, "description": self.description}

    def check(self, value: Any) -> Any:
        """Return a value as it is kept. Raises ValueError, which says what it must be."""
        whole = isinstance(value, int) and not isinstance(value, bool)
        if self.type == "string" and isinstance(value, str):
            return str(value)
        if self.type == "int" and whole and value in INTEGERS:
            return int(value)
        if self.type == "float" and (whole or isinstance(value, float)) and abs(value) <= sys.float_info.max:
            return float(value)
        if self.type == "boolean" and isinstance(value, bool):
            return value
        if self.type == "secret" and isinstance(value, Secret):
            return value
        raise ValueError(f"it must be {TYPES[self.type]}")


def read(
    given: Mapping[str, Any], place_of: Callable[[str], SourceLocation], lenient: bool = False
) -> dict[str, Option]:
    """Return options by name; report what is wrong with them.

    :param given: by name a map of type, default and description
    :param place_of: where an option is written, by its name
    :param lenient: other keys may stand there as well, as in files that were written for another program
    """
    found = {}
    for name, parts in given.items():
        made = _option(str(name), parts, place_of(str(name)), lenient)
        if made is not None:
            found[made.name] = made
    return found


def _option(name: str, parts: Any, place: SourceLocation, lenient: bool) -> Option | None:
    example = "write title: {type: string, default: My Title, description: What the page says}"
    if not name or not name.isprintable():
        report(problem("SC0707", f"an option is called {show(name)}", "give it a name that can be read", place))
    if not isinstance(parts, Mapping):
        report(problem("SC0707", f"option `{name}` is {kind_of(parts)}: {show(parts)}", example, place))
        return None
    parts = {str(getattr(key, "name", key)): value for key, value in parts.items()}
    for key in parts:
        if key not in KEYS and not lenient:
            report(problem("SC0707", f"option `{name}` has a key `{key}`", suggest(key, KEYS, "it may have"), place))
    kind, default, description = parts.get("type", "string"), parts.get("default"), parts.get("description")
    if not isinstance(kind, str) or kind not in TYPES:
        report(
            problem("SC0707", f"option `{name}` is of type {show(kind)}", suggest(str(kind), TYPES, "one of"), place)
        )
        return None
    option = Option(name, kind, None, str(description or ""))
    if default is None:
        return option
    if kind == "secret":
        detail = f"option `{name}` is a secret and has a default"
        report(problem("SC0710", detail, "give it as a setting, from !secret or secret(…)", place))
        return option
    try:
        return Option(name, kind, option.check(default), option.description)
    except ValueError as error:
        report(problem("SC0707", f"the default of option `{name}` is {show(default)}", str(error), place))
        return option
