"""Help for filters: choose from named values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from statecfg.templates.filters.limits import Refused


def chosen(name: str, values: Mapping[str, Any], what: str) -> Any:
    """Return the value of a name; refuse other names."""
    if name not in values:
        raise Refused(f"unknown {what} {name!r}", f"write one of: {', '.join(values)}")
    return values[name]


def known(options: Mapping[str, Any], names: Sequence[str]) -> Mapping[str, Any]:
    """Return options; refuse unknown ones."""
    for name in options:
        if name not in names:
            raise Refused(f"unknown option {name!r}", f"write one of: {', '.join(names)}")
    return options
