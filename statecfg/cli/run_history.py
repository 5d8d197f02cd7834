"""`statecfg run-history`: the runs that hosts recorded."""

from __future__ import annotations

from typing import Any

import click

from statecfg.cli import exit_codes, options, output_files
from statecfg.cli.options import Command
from statecfg.remote.graph.names import Mode

EXAMPLES = """
statecfg run-history                                   the last runs on every host of the inventory
statecfg run-history web1 -n 5                         the last five runs on one host
statecfg run-history web --playbook playbooks/web.yml  the runs of one playbook
statecfg run-history web1 --run 4f3a                   one run: the outcome of each resource, and every action
"""


@click.command("run-history", cls=Command, examples=EXAMPLES)
@click.argument("pattern", metavar="[HOSTS]", default="all", shell_complete=options.offer_hosts)
@options.inventory_option
@click.option(
    "--playbook",
    metavar="PLAYBOOK",
    type=click.Path(),
    help="Only runs of this playbook: a file, or its name as shown here.",
)
@click.option(
    "--run", metavar="ID", default="", help="One run with all its actions, by its id or the beginning of its id."
)
@click.option(
    "-n", "--number", metavar="N", type=click.IntRange(1, 10_000), default=20, show_default=True,
    help="Number of runs per host.",
)  # fmt: skip
@options.conversation
@options.output
def command(pattern: str, playbook: str | None, run: str, number: int, **values: Any) -> int:
    """Show the runs that hosts recorded: who, when, what, and how they ended.

    HOSTS is a name, a group, a glob or a combination, as for --limit. Default: every host. Interrupted runs are marked,
    with what they were doing. Exit 5 if no host knows the requested run.
    """
    chosen, how, output = options.taken(values)
    from statecfg.cli import session, show
    from statecfg.views.history import history_lines

    work = session.of_hosts(pattern, chosen)
    request = {"playbook": session.owner(playbook) if playbook else "", "run": run, "limit": number}
    finished = session.run(work, Mode.HISTORY, how, output, history=request)
    code = finished.stopped if finished.cancelled else exit_codes.of_report(finished.report)
    if run and not any(host.get("history") for host in finished.report["hosts"].values()):
        code = exit_codes.worst([code, exit_codes.BAD_INPUT])
    with output_files.telling(code):
        show.report(finished.report, history_lines(finished.report, run), output)
    return code
