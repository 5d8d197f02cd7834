"""`statecfg apply`: make the hosts what a playbook or a saved plan says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from statecfg.cli import exit_codes, options
from statecfg.cli.interrupt import interactive
from statecfg.cli.options import Command, Conversation, Output, Selection, take

EXAMPLES = """
statecfg apply playbooks/web.yml                show the plan, ask, do it
statecfg apply playbooks/web.yml --yes          do it without asking, as scripts must
statecfg apply web.plan                         exactly what was planned, or refuse the host
statecfg apply playbooks/web.yml -l web1 -b -K  one host, by sudo, asking for its password
"""


@click.command("apply", cls=Command, examples=EXAMPLES)
@click.argument("source", metavar="PLAYBOOK|PLAN", type=click.Path(exists=True, dir_okay=False))
@options.selection
@options.conversation
@click.option("-y", "--yes", is_flag=True, envvar="STATECFG_YES", help="Don't ask. Needed where nobody can be asked.")
@options.keep_going_option
@options.output
def command(source: str, yes: bool, **given: Any) -> int:
    """Make the hosts what the playbook or a saved plan says.

    Shows the plan first and asks. A plan saved by `statecfg plan --out` is done exactly as it was saved, without
    another question; a host that is no longer as it was planned for is refused (exit 6), and what differs is said.

    Ctrl-C lets what runs end and starts nothing new; a second one leaves at once.
    """
    chosen: Selection = take(Selection, given)
    how: Conversation = take(Conversation, given)
    shown: Output = take(Output, given)
    from statecfg import saved
    from statecfg.cli import session, show

    path = Path(source)
    if saved.is_plan(path):
        if chosen != Selection():
            raise click.UsageError("A saved plan is applied as it is: -i, -l, -t and -e belong to `statecfg plan`.")
        finished = session.apply_saved(path, how, shown)
    elif not yes and not interactive():
        raise click.UsageError(
            "Nobody can be asked here. Pass --yes, or apply a saved plan (statecfg plan --out FILE)."
        )
    else:
        finished = session.converse(session.prepare(path, chosen), "apply", how, shown, asks=not yes)
    if finished.declined:
        click.echo("Nothing was changed.", err=True)
        return exit_codes.INTERRUPTED
    code = exit_codes.INTERRUPTED if finished.cancelled else exit_codes.of_report(finished.report)
    with show.telling(code):
        session.show_outcome(finished, shown)
    return code
