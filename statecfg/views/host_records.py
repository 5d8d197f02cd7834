"""The hosts in the store, for people and programs: a table of all hosts, and the details of one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from statecfg.views.changes import value_text
from statecfg.views.lines import BLANK, Line, make
from statecfg.views.tally import plural

if TYPE_CHECKING:
    from statecfg.store.hosts import HostRecord

    Groups = Mapping[str, Sequence[str]]

_HEADS = ("HOST", "LAST CHECK-IN", "TAGS", "GROUPS", "PLAYBOOKS", "INSTALLED")


def data(records: Sequence[HostRecord], groups: Groups) -> Mapping[str, Any]:
    """Return hosts as JSON data: their records in the store, and their groups in the inventory."""
    return {
        "format": 1,
        "hosts": {record.name: {**asdict(record), "groups": list(groups.get(record.name, ()))} for record in records},
    }


def table(records: Sequence[HostRecord], groups: Groups) -> Iterator[Line]:
    """Yield a line for each host: last check-in, tags, groups, bound playbooks and the installed playbook."""
    rows = [
        (
            record.name,
            when(record.last_checkin),
            ", ".join(record.tags),
            ", ".join(groups.get(record.name, ())),
            ", ".join(record.playbooks),
            record.installed or "",
        )
        for record in records
    ]
    if not rows:
        yield make((plural(0, "host"), "dim"))
        return
    kept = [column for column in range(len(_HEADS)) if column < 2 or any(row[column] for row in rows)]
    widths = {column: max(len(row[column]) for row in [_HEADS, *rows]) for column in kept}
    yield make(("  ".join(f"{_HEADS[column]:<{widths[column]}}" for column in kept).rstrip(), "dim"))
    for row in rows:
        first, *others = (f"{row[column]:<{widths[column]}}" for column in kept)
        yield make((first, "bold"), f"  {'  '.join(others)}".rstrip(), hang=widths[0] + 2)
    yield make((plural(len(rows), "host"), "dim"))


def one(record: HostRecord, groups: Sequence[str]) -> Iterator[Line]:
    """Yield the details of a host."""
    yield make(("── ", "dim"), (record.name, "bold"), right=", ".join(groups), rule=True)
    installed = f"{record.installed}, {when(record.installed_at)}" if record.installed else "nothing"
    yield from pairs(
        {
            "first seen": when(record.registered),
            "last check-in": when(record.last_checkin),
            "tags": ", ".join(record.tags) or "none",
            "playbooks": ", ".join(record.playbooks) or "none",
            "installed": installed,
        }
    )
    for title, values in (("metadata", record.metadata), ("facts", record.facts)):
        if values:
            yield BLANK
            yield make((f"  {title}", "dim"))
            yield from pairs({key: value_text(value) for key, value in sorted(values.items())})


def pairs(values: Mapping[str, str], indent: int = 2) -> Iterator[Line]:
    """Yield a line per value, with its key in a separate column."""
    width = max(map(len, values), default=0)
    for key, text in values.items():
        yield make(" " * indent, (f"{key:<{width}}", "skip"), f"  {text}", hang=width + indent + 2)


def when(moment: float | None) -> str:
    """Return a local time as text, "never" for None."""
    return "never" if moment is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))
