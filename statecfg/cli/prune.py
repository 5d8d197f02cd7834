"""`statecfg prune`: remove what left a playbook's definition, and do nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from statecfg.cli import options
from statecfg.cli.options import Command, ConnectionOptions, Output, Selection, take

EXAMPLES = """
statecfg prune playbooks/web.yml          show what would go, ask, remove it
statecfg prune playbooks/web.yml -l web1  on one host
statecfg prune playbooks/web.yml --yes    without asking, even if it is more than half
"""


@click.command("prune", cls=Command, examples=EXAMPLES)
@click.argument("playbook", type=options.ExistingFile())
@options.selection_of_all
@options.conversation
@options.yes_option
@options.keep_going_option
@options.no_hooks_option
@options.store_option
@options.output
def command(playbook: str, yes: bool, no_hooks: bool, store: str | None, **given: Any) -> int:
    """Remove what earlier runs made and the playbook no longer defines; leave all else alone.

    Each host remembers what it was before a resource came, and goes back to that: a file that was there before comes
    back as it was. What requires another goes first. Shows what would go, and asks.

    Refused (exit 5), host by host: what is protected, and more than half of the resources under management there
    without --yes on the command line. Nothing is removed where the host's own record of it was lost.
    """
    chosen: Selection = take(Selection, given)
    how: ConnectionOptions = take(ConnectionOptions, given)
    shown: Output = take(Output, given)
    from statecfg.cli import lifecycle, session

    asks = session.asks(yes)
    with lifecycle.bus(Path(playbook), chosen, "prune", no_hooks, store) as events:
        work = session.prepare(Path(playbook), chosen, events)
        agreed = session.agreed()
        finished = session.converse(work, "prune", how, shown, asks=asks, agreed=agreed, events=events)
    return session.end(finished, shown, events.problems)
