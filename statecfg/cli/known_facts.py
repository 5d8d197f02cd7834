"""The option `--facts`, and what commands without a connection say about definitions that depend on facts."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from statecfg.facts import recorded
from statecfg.facts.recorded import StoredFacts
from statecfg.problems import positions

if TYPE_CHECKING:
    from statecfg.run.prepare import Work
    from statecfg.run.report_model import Report

LAST = "last"
facts_option = click.option(
    "--facts",
    "facts",
    metavar="FILE|last",
    help="Facts to use for definitions that depend on facts: a file of `statecfg facts --record`, or `last` for those "
    "in the store.",
)


def seconds(text: str | None) -> float | None:
    """Return the value of `--max-fact-age` in seconds; None for any age.

    :raises click.BadParameter: it is not a duration
    """
    if text is None:
        return None
    from statecfg.problems import durations

    try:
        return durations.seconds(text)
    except ValueError as error:
        raise click.BadParameter(f"{error}; such as P1D or PT12H", param_hint="'--max-fact-age'") from None


def read(facts: str | None, playbook: Path, store: str | None = None) -> dict[str, StoredFacts]:
    """Return host → the facts that `--facts` selects.

    :param facts: the value of the option
    :param store: the address of the store; None for the default
    :raises InvalidInput: the file is wrong
    :raises StoreError: the store can't be used
    """
    if facts is None:
        return {}
    return dict(stored(playbook, store)) if facts == LAST else recorded.read(Path(facts))


def stored(playbook: Path, store: str | None) -> Mapping[str, StoredFacts]:
    """Return host → the facts in the store.

    :raises StoreError: the store can't be used
    """
    from statecfg.cli import lifecycle

    with lifecycle.read(playbook, store) as opened:
        if opened is None:
            return {}
        from statecfg.store import facts

        return facts.known(opened)


def with_ages(report: Report, work: Work, now: float | None = None) -> Report:
    """Return a report whose hosts name the facts of other hosts that come from the store, with their age.

    :param now: the time to which the age refers, in seconds since 1970; None for the current time
    """
    hosts = dict(report["hosts"])
    for name, host in hosts.items():
        texts = [text for of, text in _ages(work, name, now) if of != name]
        if texts:
            hosts[name] = {**host, "warnings": [*host.get("warnings", ()), *texts]}
    return {**report, "hosts": hosts}


def _ages(work: Work, host: str, now: float | None = None) -> Iterator[tuple[str, str]]:
    """Yield each host with recorded facts that the definition of a host uses, and a string with their age."""
    reading = work.facts.readings.get(host)
    for of, facts in sorted(reading.recorded.items()) if reading is not None else ():
        whose = "" if of == host else f" of {of}"
        old = recorded.age((time.time() if now is None else now) - min(facts.times.values()))
        yield of, f"uses recorded facts{whose}, {old} old: {', '.join(sorted(facts.times))}"


def notes(work: Work) -> Iterator[str]:
    """Yield what the user should know: the age of the facts that were used, and what depends on missing facts."""
    for name in sorted(work.facts.readings):
        yield from (f"{name}: {text}" for _, text in _ages(work, name))
    if work.awaited is None:
        return
    for location, (facts, names) in work.awaited.locations().items():
        on = "" if len(names) == len(work.jobs) else f" (on {', '.join(sorted(names)[:3])}{' …' * (len(names) > 3)})"
        shown = positions.relative(location, str(Path.cwd()))
        yield f"{shown}: depends on the facts {', '.join(sorted(facts))}{on}"
