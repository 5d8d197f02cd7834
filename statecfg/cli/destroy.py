"""`statecfg destroy`: remove everything that a playbook owns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from statecfg.cli import options
from statecfg.cli.options import Command
from statecfg.cli.secret_options import secret_keys
from statecfg.remote.graph.names import Mode

EXAMPLES = """
statecfg destroy playbooks/web.yml -l web3        one host: show what would be removed, ask, remove it
statecfg destroy playbooks/web.yml -l web3 --yes  without asking
statecfg destroy shop/old.yml --hosts 'web*'      what a deleted playbook created
"""


@click.command("destroy", cls=Command, examples=EXAMPLES)
@click.argument("playbook", type=click.Path(dir_okay=False))
@click.option(
    "--hosts",
    metavar="PATTERN",
    shell_complete=options.offer_hosts,
    help="Destroy on these hosts without reading the playbook. Use this if the playbook is broken or deleted, or no"
    " longer names the host.",
)
@options.selection_of_all
@secret_keys
@options.changes
def command(playbook: str, hosts: str | None, yes: bool, no_hooks: bool, store: str | None, **values: Any) -> int:
    """Remove everything that the playbook owns on its hosts, regardless of its present definition.

    statecfg compiles the playbook as for a plan, because it names the hosts and the secrets to mask. It reports
    mistakes in the playbook before it contacts any host. Each host removes what it recorded for the playbook. statecfg
    shows what would be removed, and asks. With --hosts, PLAYBOOK only has to identify the playbook: the path of the
    file, or the name that `run-history` shows.

    statecfg refuses a host (exit 5) if something there is protected, or if this would remove more than half of its
    managed resources and --yes is not on the command line.
    """
    chosen, how, output = options.taken(values)
    from statecfg.cli import lifecycle, session
    from statecfg.playbook.definition import for_undoing

    if hosts is None and not Path(playbook).exists():
        raise click.BadParameter(
            f"{playbook!r} does not exist. With --hosts, the file does not have to exist.", param_hint="PLAYBOOK"
        )
    asks = session.asks(yes)
    name = "" if hosts is None else session.owner(playbook)
    with lifecycle.bus(Path(playbook), chosen, Mode.DESTROY, no_hooks, store, name) as events:
        if hosts is None:
            work = session.prepare(Path(playbook), chosen, store=store)
            # Resources that are still defined are removed as well. The hosts need only the secrets for the undo.
            jobs = [replace(job, definition=for_undoing(job.definition)) for job in work.jobs]
            if work.awaited is not None:
                work.awaited.then.append(
                    lambda some: {
                        name: replace(job, definition=for_undoing(job.definition)) for name, job in some.items()
                    }
                )
        else:
            work = session.of_hosts(hosts, chosen)
            jobs = [replace(job, playbook=name) for job in work.jobs]
            from statecfg.run.named_hosts import named

            path = Path(playbook)
            events.keep(named(path, session.choice(chosen)), work.project.relative(path), {})
        work, agreed = replace(work, jobs=jobs), session.agreed()
        finished = session.run(work, Mode.DESTROY, how, output, asks=asks, agreed=agreed, events=events)
    return session.end(finished, output, events.problems)
