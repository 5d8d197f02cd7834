"""`statecfg prune`: remove what a playbook no longer defines, and change nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from statecfg.cli import file_types, options
from statecfg.cli.options import Command
from statecfg.cli.secret_options import secret_keys
from statecfg.remote.graph.names import Mode

EXAMPLES = """
statecfg prune playbooks/web.yml          show what would be removed, ask, remove it
statecfg prune playbooks/web.yml -l web1  on one host
statecfg prune playbooks/web.yml --yes    without asking, even if it is more than half
"""


@click.command("prune", cls=Command, examples=EXAMPLES)
@click.argument("playbook", type=file_types.PlaybookFile())
@options.selection_of_all
@secret_keys
@options.changes
def command(playbook: str, yes: bool, no_hooks: bool, store: str | None, **values: Any) -> int:
    """Remove what earlier runs created and the playbook no longer defines. Change nothing else.

    Each host recorded its state before a resource was applied, and restores it: a file that existed before comes back
    as it was. A resource is removed before the resources that it requires. statecfg shows what would be removed, and
    asks.

    statecfg refuses a host (exit 5) if something there is protected, or if this would remove more than half of its
    managed resources and --yes is not on the command line. If a host has lost its record, nothing is removed there.
    """
    chosen, how, output = options.taken(values)
    from statecfg.cli import lifecycle, session

    asks = session.asks(yes)
    with lifecycle.bus(Path(playbook), chosen, Mode.PRUNE, no_hooks, store) as events:
        work = session.prepare(Path(playbook), chosen, events)
        agreed = session.agreed()
        finished = session.run(work, Mode.PRUNE, how, output, asks=asks, agreed=agreed, events=events)
    return session.end(finished, output, events.problems)
