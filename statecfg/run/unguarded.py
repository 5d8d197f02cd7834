"""Find commands without guards: they run in every apply, which is rarely intended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statecfg.run.job import Job

# With one of these attributes or `always`, a command does not run in every apply, or its author has thought about that.
DELIBERATE = ("creates", "removes", "unless", "onlyif", "effects")


def warnings(jobs: Iterable[Job]) -> tuple[str, ...]:
    """Return a warning for each command without a guard; only one if several hosts have the command."""
    found: dict[tuple[str, str], str] = {}
    for job in {id(job.definition.layers): job for job in jobs}.values():
        for layer in job.definition.layers:
            for node in layer:
                guarded = node.get("triggers") or "when_host" in node.get("options", {})
                if node["type"] == "command" and not guarded and _unguarded(node.get("attrs", {})):
                    position, name = node.get("position", ""), node["provides"]
                    # The name of each host's command may contain the host's name.
                    found.setdefault((position, name.replace(job.host.name, "\0")), _warning(position, name))
    return tuple(found.values())


def _unguarded(attrs: Mapping[str, Any]) -> bool:
    return not attrs.get("always") and all(attrs.get(name) is None for name in DELIBERATE)


def _warning(position: str, name: str) -> str:
    where = f"{position}: " if position else ""
    return (
        f"{where}{name}: this command has no guard, so it runs in every apply; guard it with `creates`, `unless` or "
        "`onlyif`, run it after changes only with `restart_on`, or write `always: true`"
    )
