"""`statecfg apply`: make the hosts what a playbook or a saved plan says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from statecfg.cli import options
from statecfg.cli.options import Command, Conversation, Output, Selection, take

EXAMPLES = """
statecfg apply playbooks/web.yml                show the plan, ask, do it
statecfg apply playbooks/web.yml --yes          do it without asking, as scripts must
statecfg apply web.plan                         exactly what was planned, or refuse the host
statecfg apply playbooks/web.yml --prune        and remove what left the definition
statecfg apply playbooks/web.yml -l web1 -b -K  one host, by sudo, asking for its password
"""


@click.command("apply", cls=Command, examples=EXAMPLES)
@click.argument("source", metavar="PLAYBOOK|PLAN", type=click.Path(exists=True, dir_okay=False))
@options.selection
@options.prune_option
@options.conversation
@options.yes_option
@options.keep_going_option
@options.no_hooks_option
@options.store_option
@options.output
def command(source: str, yes: bool, no_hooks: bool, store: str | None, **given: Any) -> int:
    """Make the hosts what the playbook or a saved plan says.

    Shows the plan first and asks. A plan saved by `statecfg plan --out` is done exactly as it was saved, without
    another question; a host that is no longer as it was planned for is refused (exit 6), and what differs is said.

    What an earlier apply made and the playbook no longer defines stays, unless --prune or `prune: true` in the
    playbook says otherwise. Where that would be more than half of what is under management on a host, or something
    protected, the host is refused (exit 5).

    Ctrl-C lets what runs end and starts nothing new; a second one leaves at once.
    """
    chosen: Selection = take(Selection, given)
    how: Conversation = take(Conversation, given)
    shown: Output = take(Output, given)
    from statecfg import saved
    from statecfg.cli import lifecycle, session

    def hooks(playbook: Path, selected: Selection) -> lifecycle.Opened:
        return lifecycle.bus(playbook, selected, "apply", no_hooks, store)

    path = Path(source)
    if saved.is_plan(path):
        if chosen != Selection():
            raise click.UsageError(
                "A saved plan is applied as it is: -i, -l, -t, -e and --prune belong to `statecfg plan`."
            )
        finished, problems = session.apply_saved(path, how, shown, session.agreed(), hooks)
    else:
        asks = session.asks(yes)
        with hooks(path, chosen) as events:
            work = session.prepare(path, chosen, events)
            agreed = session.agreed()
            finished = session.converse(work, "apply", how, shown, asks=asks, agreed=agreed, events=events)
        problems = events.problems
    return session.end(finished, shown, problems)
