"""The options of services: the schema of their settings, in the format of `options` in a charm's config.yaml."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from statecfg.playbook.secrets import Secret
from statecfg.problems import problem, report, suggest
from statecfg.problems.frozen import dataclass
from statecfg.problems.positions import SourceLocation
from statecfg.remote.graph.wrong_values import show, type_words

# Type → a description of valid values.
TYPES = {
    "string": "a string",
    "int": "a whole number of at most 64 bits",
    "float": "a number",
    "boolean": "true or false",
    "secret": "a secret",
}
KEYS = ("type", "default", "description")
INTEGERS = range(-(2**63), 2**63)


@dataclass(frozen=True)
class ServiceOption:
    """An option of a service.

    :param name: the name that hooks use
    :param type: one of `TYPES`
    :param default: the value without a setting; None for none
    :param description: its purpose, for users
    """

    name: str
    type: str = "string"
    default: Any = None
    description: str = ""

    def as_json(self) -> Mapping[str, Any]:
        """Return type, default and description, as stored and shown."""
        return {"type": self.type, "default": self.default, "description": self.description}

    def check(self, value: Any) -> Any:
        """Return a valid value as it is stored.

        :raises ValueError: the value does not have the option's type; the message describes valid values
        """
        integer = isinstance(value, int) and not isinstance(value, bool)
        if self.type == "string" and isinstance(value, str):
            return str(value)
        if self.type == "int" and integer and value in INTEGERS:
            return int(value)
        if self.type == "float" and (integer or isinstance(value, float)) and abs(value) <= sys.float_info.max:
            return float(value)
        if self.type == "boolean" and isinstance(value, bool):
            return value
        if self.type == "secret" and isinstance(value, Secret):
            return value
        raise ValueError(f"it must be {TYPES[self.type]}")


def read(
    declared: Mapping[str, Any], location_of: Callable[[str], SourceLocation], lenient: bool = False
) -> dict[str, ServiceOption]:
    """Return options by name, and report invalid ones.

    :param declared: name → map with type, default and description
    :param location_of: returns the source location of an option
    :param lenient: ignore other keys, for files that were written for another program
    """
    options = {}
    for name, parts in declared.items():
        option = _option(str(name), parts, location_of(str(name)), lenient)
        if option is not None:
            options[option.name] = option
    return options


def _option(name: str, parts: Any, location: SourceLocation, lenient: bool) -> ServiceOption | None:
    example = "write title: {type: string, default: My Title, description: What the page says}"
    if not name or not name.isprintable():
        report(
            problem(
                "SC0707", f"{show(name)} is not a valid option name", "use printable characters in its name", location
            )
        )
    if not isinstance(parts, Mapping):
        report(problem("SC0707", f"option `{name}` is {type_words(parts)}: {show(parts)}", example, location))
        return None
    parts = {str(getattr(key, "name", key)): value for key, value in parts.items()}
    for key in parts:
        if key not in KEYS and not lenient:
            report(problem("SC0707", f"option `{name}` has a key `{key}`", suggest(key, KEYS, "it may have"), location))
    option_type, default, description = parts.get("type", "string"), parts.get("default"), parts.get("description")
    if not isinstance(option_type, str) or option_type not in TYPES:
        report(
            problem(
                "SC0707",
                f"option `{name}` is of type {show(option_type)}",
                suggest(str(option_type), TYPES, "one of"),
                location,
            )
        )
        return None
    option = ServiceOption(name, option_type, None, str(description or ""))
    if default is None:
        return option
    if option_type == "secret":
        detail = f"option `{name}` is a secret and has a default"
        report(problem("SC0710", detail, "pass it as a setting, with !secret or secret(…)", location))
        return option
    try:
        return ServiceOption(name, option_type, option.check(default), option.description)
    except ValueError as error:
        report(problem("SC0707", f"the default of option `{name}` is {show(default)}", str(error), location))
        return option
