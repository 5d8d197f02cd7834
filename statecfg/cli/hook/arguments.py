"""Check the arguments of `statecfg hook`: name, type, configuration and selector."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from statecfg.problems import InvalidInput, Problem, problem, suggest
from statecfg.remote.wire.strict_json import loads

if TYPE_CHECKING:
    from statecfg.playbook.inventory import Inventory

LONGEST = 250
_FORMS = "write KEY=VALUE, or a JSON object"


def configuration(texts: Sequence[str]) -> dict[str, Any]:
    """Return the configuration that the -c options define, processed in their order.

    `KEY=VALUE` sets a key: the value is parsed as JSON if possible; otherwise it is a string; an empty value is null.
    A JSON object replaces everything before it. Source: Razor's client.

    :raises InvalidInput: an option has neither form
    """
    values: dict[str, Any] = {}
    for text in texts:
        whole = _object(text)
        if whole is None:
            key, value = pair(text)
            values[key] = value
        else:
            values = whole
    return values


def pair(text: str) -> tuple[str, Any]:
    """Return the key and the value of `KEY=VALUE`.

    :raises InvalidInput: the text has another form
    """
    key, equals, value = _clean(text).partition("=")
    if not key or not equals:
        raise InvalidInput([problem("SC0622", f"`{text}` is not KEY=VALUE", _FORMS)])
    return key, _value(value) if value else None


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = loads(_clean(text))
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict):
        return value
    json_type = {list: "array", str: "string", bool: "boolean", type(None): "null"}.get(type(value), "number")
    detail = f"configuration should be a object, but was actually a {json_type}"
    raise InvalidInput([problem("SC0622", detail, _FORMS)])


def _value(text: str) -> Any:
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return text


def _clean(text: str) -> str:
    # Replace bytes that are not UTF-8, because databases don't accept them.
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def checked(
    name: str | None, type_name: str | None, spec: Mapping[str, Any], inventory: Inventory
) -> tuple[dict[str, Any], list[Problem]]:
    """Check the arguments of a new hook.

    :param type_name: the hook's type
    :param spec: the options by name; options that were not given are None or empty
    :returns: the fields of a `Spec`, and the problems of all arguments
    """
    from statecfg.hooks.registration.model import EVENTS
    from statecfg.problems import durations

    problems: list[Problem] = []
    if not name:
        problems.append(problem("SC0625", "the hook has no name", "write: statecfg hook create NAME TYPE"))
    elif (wrong := _wrong(name)) is not None:
        problems.append(problem("SC0625", f"`{name[:40]}` {wrong}", f"at most {LONGEST} letters, and no /"))
    if not type_name:
        problems.append(problem("SC0620", "the hook has no type", "write: statecfg hook create NAME TYPE"))
    values = {key: value for key, value in spec.items() if value not in (None, ())}
    values.update({key: _split(values[key]) for key in ("types", "names", "tags", "events") if key in values})
    for event in values.get("events", ()):
        if event not in EVENTS:
            problems.append(problem("SC0604", f"unknown event `{event}`", suggest(event, EVENTS, "available")))
    try:
        durations.deadline(values.get("deadline", "PT30S"))
    except ValueError as error:
        problems.append(problem("SC0605", f"--deadline: {error}", durations.HELP))
    if "hosts" in values:
        try:
            inventory.select(values["hosts"])
        except InvalidInput as wrong_hosts:
            problems += wrong_hosts.problems
    return values, problems


def _split(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.strip() for text in texts for one in text.split(",") if one.strip()))


def _wrong(name: str) -> str | None:
    """Return what is wrong with a hook's name, or None. Source: Razor's rules for names of objects."""
    if len(name) > LONGEST:
        return f"has {len(name)} letters"
    if name != name.strip():
        return "begins or ends with a space"
    if "/" in name or re.search(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", name):
        return "contains a slash or a control character"
    return None
