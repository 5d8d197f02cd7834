"""The option `--facts`, and what commands without a connection say about definitions that depend on facts."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from statecfg.facts.recorded import Recorded
    from statecfg.run.prepare import Work

LAST = "last"
facts_option = click.option(
    "--facts",
    "facts",
    metavar="FILE|last",
    help="Facts to use for definitions that depend on facts: a file of `statecfg facts --record`, or `last` for those "
    "in the store.",
)


def read(facts: str | None, playbook: Path, store: str | None = None) -> dict[str, Recorded]:
    """Return host → the facts that `--facts` selects.

    :param facts: the value of the option
    :param store: the address of the store; None for the default
    :raises InvalidInput: the file is wrong
    :raises StoreError: the store can't be used
    """
    if facts is None:
        return {}
    if facts != LAST:
        from statecfg.facts import recorded

        return recorded.read(Path(facts))
    from statecfg.cli import lifecycle

    with lifecycle.read(playbook, store) as opened:
        if opened is None:
            return {}
        from statecfg.store import facts as stored

        return stored.known(opened)


def values(hosts: Mapping[str, Recorded]) -> dict[str, Mapping[str, Any]]:
    """Return host → name → value of recorded facts, for `Choice`."""
    return {name: recorded.values for name, recorded in hosts.items()}


def notes(work: Work, hosts: Mapping[str, Recorded]) -> Iterator[str]:
    """Yield what the user should know: the age of the facts that were used, and what depends on missing facts.

    :param work: the playbook
    :param hosts: the recorded facts
    """
    for name, used in sorted(work.facts.used.items()):
        times = {hosts[name].at[fact] for fact in used if name in hosts and fact in hosts[name].at}
        if times:
            yield f"{name}: uses recorded facts, {age(time.time() - min(times))} old: {', '.join(sorted(used))}"
    if work.awaited is None:
        return
    for location, (facts, names) in work.awaited.places().items():
        on = "" if len(names) == len(work.jobs) else f" (on {', '.join(sorted(names)[:3])}{' …' * (len(names) > 3)})"
        yield f"{location}: depends on the facts {', '.join(sorted(facts))}{on}"


def age(seconds: float) -> str:
    """Return a duration in words, in its largest unit."""
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'s' * (count != 1)}"
    return "less than a minute"
