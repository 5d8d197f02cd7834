"""The facts of hosts, for people: one block per host, with the paths of nested values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from statecfg.run.report_model import Report
from statecfg.views import hosts as host_lines
from statecfg.views.changes import value_text
from statecfg.views.lines import BLANK, Line, make
from statecfg.views.tally import EqualHosts


def facts_lines(report: Report) -> Iterator[Line]:
    """Yield the lines that show each host's facts, sorted by name."""
    for number, name in enumerate(sorted(report["hosts"])):
        host = report["hosts"][name]
        if number:
            yield BLANK
        yield host_lines.heading(EqualHosts([name], host))
        yield from host_lines.trouble(host)
        pairs = sorted(_flat(host.get("facts") or {}))
        width = max((len(key) for key, _ in pairs), default=0)
        for key, value in pairs:
            yield make("  ", (f"{key:<{width}}", "skip"), f"  {value_text(value)}", hang=width + 4)


def _flat(facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in facts.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
