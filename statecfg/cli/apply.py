"""`statecfg apply`: make the hosts what a playbook or a saved plan says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from statecfg.cli import options
from statecfg.cli.options import Command, ConnectionOptions, Output, Selection, take

EXAMPLES = """
statecfg apply playbooks/web.yml                show the plan, ask, do it
statecfg apply playbooks/web.yml --yes          do it without asking, as scripts must
statecfg apply web.plan                         exactly what was planned, or refuse it
statecfg apply -                                the plan comes from standard input
statecfg apply playbooks/web.yml --prune        and remove what left the definition
statecfg apply playbooks/web.yml -l web1 -b -K  one host, by sudo, asking for its password
"""


@click.command("apply", cls=Command, examples=EXAMPLES)
@click.argument("source", metavar="PLAYBOOK|PLAN", type=options.ExistingFile(allow_dash=True))
@options.project_option
@options.selection
@options.prune_option
@options.prune_hosts_option
@options.conversation
@options.yes_option
@options.keep_going_option
@options.no_hooks_option
@options.store_option
@options.output
def command(source: str, project: str | None, yes: bool, no_hooks: bool, store: str | None, **given: Any) -> int:
    """Make the hosts what the playbook or a saved plan says.

    Shows the plan first and asks; with --yes, what was done is shown with all differences. A plan saved by
    `statecfg plan --out` is done exactly as it was saved, without another question, on any machine that has the same
    project. It is refused (exit 6) if any input has changed: playbook, includes, templates, files, node types,
    inventory, variables, secrets or the version of statecfg. A host that is not as it was when the plan was made is
    refused too, while the others go on.

    What an earlier apply made and the playbook no longer defines stays, unless --prune or `prune: true` in the
    playbook says otherwise. Where that would be more than half of what is under management on a host, or something
    protected, the host is refused (exit 5).

    Hosts that the playbook was applied to and no longer names are listed, with what they have and the command that
    removes it. --prune-hosts with --yes removes it after an apply that went well on all other hosts.

    Ctrl-C lets what runs end and starts nothing new; a second one leaves at once.
    """
    chosen: Selection = take(Selection, given)
    how: ConnectionOptions = take(ConnectionOptions, given)
    shown: Output = take(Output, given)
    from statecfg.cli import lifecycle, prune_hosts, saved_plan, session

    def hooks(playbook: Path, selected: Selection) -> lifecycle.Opened:
        return lifecycle.bus(playbook, selected, "apply", no_hooks, store)

    prune_hosts.check(chosen)
    path, data = Path(source), saved_plan.plan_in(source)
    if data is not None:
        if chosen.prune_hosts:
            raise click.UsageError(
                "--prune-hosts is for playbooks: a saved plan changes the hosts that it was made for."
            )
        if how.ask_become_pass and source == saved_plan.STDIN:
            raise click.UsageError("-K reads the password from standard input, which holds the plan: name its file.")
        finished, problems = saved_plan.apply(
            source,
            data,
            chosen,
            how,
            shown,
            directory=project,
            agreed=session.agreed(),
            store=store,
            hooks=hooks,
        )
    elif project is not None:
        raise click.UsageError("--project goes with a saved plan: a playbook knows its project.")
    else:
        asks = session.asks(yes)
        with hooks(path, chosen) as events:
            work = session.prepare(path, chosen, events, store)
            agreed = session.agreed()
            finished = session.converse(work, "apply", how, shown, asks=asks, agreed=agreed, events=events)
        problems = [*events.problems]
        if chosen.prune_hosts:
            finished, more = prune_hosts.apply(finished, work, chosen, how, shown, no_hooks, store)
            problems += more
    return session.end(finished, shown, problems)
