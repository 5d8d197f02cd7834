"""`statecfg apply`: apply a playbook or a saved plan to its hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from statecfg.cli import file_types, options
from statecfg.cli.options import Command, Selection
from statecfg.cli.secret_options import secret_keys
from statecfg.remote.graph.names import Mode

EXAMPLES = """
statecfg apply playbooks/web.yml                show the plan, ask, apply it
statecfg apply playbooks/web.yml --yes          apply without asking, for scripts
statecfg apply web.plan                         apply exactly this plan, or refuse it
statecfg apply -                                read the plan from standard input
statecfg apply playbooks/web.yml --prune        also remove what left the definition
statecfg apply playbooks/web.yml -l web1 -b -K  one host, with sudo; ask for the password
"""


@click.command("apply", cls=Command, examples=EXAMPLES)
@click.argument("source", metavar="PLAYBOOK|PLAN", type=file_types.PlaybookFile("playbook or plan", allow_dash=True))
@options.project_option
@options.selection
@secret_keys
@options.prune_option
@options.prune_hosts_option
@options.verify_content_option
@options.changes
def command(source: str, project: str | None, yes: bool, no_hooks: bool, store: str | None, **values: Any) -> int:
    """Apply a playbook or a saved plan to its hosts.

    Shows the plan first and asks. With --yes, it does not ask; it shows what it did, with all differences. A plan that
    `statecfg plan --out` saved is applied exactly as it was saved, without another question, on any machine that has
    the same project. statecfg refuses the plan (exit 6) if any input has changed: playbook, includes, templates, files,
    node types, inventory, variables, secrets or the version of statecfg. If a host has changed since the plan was made,
    statecfg refuses this host and continues with the others.

    Resources that an earlier apply created and the playbook no longer defines stay. --prune, or `prune: true` in the
    playbook, removes them. statecfg refuses a host (exit 5) if the run would remove a protected resource there, or
    without --yes on the command line more than half of its managed resources.

    If the playbook was applied to a host and no longer names it, statecfg lists the host with its resources and the
    command that removes them. --prune-hosts with --yes removes them after an apply that succeeded on all other hosts.

    Ctrl-C starts nothing new and waits for running actions; a second Ctrl-C exits immediately.
    """
    chosen, how, output = options.taken(values)
    from statecfg.cli import lifecycle, prune_hosts, saved_plan, session

    def hooks(playbook: Path, selected: Selection) -> lifecycle.Opened:
        return lifecycle.bus(playbook, selected, Mode.APPLY, no_hooks, store)

    prune_hosts.check(chosen)
    path, data = Path(source), saved_plan.plan_in(source)
    if data is not None:
        if chosen.prune_hosts:
            raise click.UsageError(
                "--prune-hosts needs a playbook: a saved plan only changes the hosts that it was made for."
            )
        if how.ask_become_pass and source == saved_plan.STDIN:
            raise click.UsageError("-K reads the password from stdin, and so does the plan: pass the plan as a file.")
        finished, problems = saved_plan.apply(
            source,
            data,
            chosen,
            how,
            output,
            directory=project,
            agreed=session.agreed(),
            store=store,
            hooks=hooks,
        )
    elif project is not None:
        raise click.UsageError("--project is only for saved plans: a playbook belongs to its own project.")
    else:
        asks = session.asks(yes, "Pass --yes or apply a saved plan (statecfg plan --out FILE).")
        with hooks(path, chosen) as events:
            work = session.prepare(path, chosen, events, store)
            agreed = session.agreed()
            finished = session.run(work, Mode.APPLY, how, output, asks=asks, agreed=agreed, events=events)
        problems = [*events.problems]
        if chosen.prune_hosts:
            finished, more = prune_hosts.apply(finished, work, chosen, how, output, no_hooks, store)
            problems += more
    return session.end(finished, output, problems)
