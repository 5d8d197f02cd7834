"""The configuration of a hook: defaults and required keys, as Razor applies them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Mapping, Tuple

    Configuration = Mapping[str, Any]  # of a hook: what its user sets
    Metadata = Mapping[str, Any]  # of a node: what hooks set
    Entry = Mapping[str, Any]  # an event as in Razor's log
    Schema = Mapping[str, Mapping[str, Any]]  # of a hook type: key → description, default, required

NOT_SUPPLIED = "but was not supplied"


def no(value: object) -> bool:
    """Return whether Ruby treats a value as false: null and false. Unlike in Python, 0 is true."""
    return value is None or value is False


def complete(schema: Schema, configuration: Configuration) -> Tuple[Configuration, List[str]]:
    """Return a configuration with the schema's defaults, and the errors in it.

    A default of false or null is ignored; 0 and "" are applied.
    """
    wrong = [
        f"configuration key '{key}' is not defined for this hook type" for key in configuration if key not in schema
    ]
    whole = dict(configuration)
    for key, described in schema.items():
        if key in whole:
            continue
        if not no(described.get("default")):
            whole[key] = described["default"]
        elif not no(described.get("required")):
            wrong.append(f"configuration key '{key}' is required by this hook type, {NOT_SUPPLIED}")
    return whole, wrong
