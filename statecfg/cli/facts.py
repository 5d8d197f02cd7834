"""`statecfg facts`: facts about hosts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from statecfg.cli import exit_codes, options
from statecfg.cli.options import Command, ConnectionOptions, Output, Selection, take
from statecfg.views import safe

if TYPE_CHECKING:
    from statecfg.run.report_model import Report

EXAMPLES = """
statecfg facts                     every host of the inventory
statecfg facts 'web*' --json       as JSON, for other programs
statecfg facts @local              this machine
statecfg facts web1 --record FILE  all facts that definitions can use, for `validate --facts FILE`
"""


@click.command("facts", cls=Command, examples=EXAMPLES)
@click.argument("pattern", default="all", shell_complete=options.offer_hosts)
@options.inventory_option
@click.option(
    "--record",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Write all facts that definitions can use, and those of the project, to this file as JSON.",
)
@options.conversation
@options.output
def command(pattern: str, record: str | None, **values: Any) -> int:
    """Show facts about hosts: their system, processors, memory, and Python.

    PATTERN is a name, a group, a glob or a combination, as for --limit. Default: every host.
    """
    chosen: Selection = take(Selection, values)
    how: ConnectionOptions = take(ConnectionOptions, values)
    output: Output = take(Output, values)
    from statecfg.cli import session, show
    from statecfg.views.facts import facts_lines

    show.check_files(record)
    work = session.of_hosts(pattern, chosen)
    request = _request(work.project.root) if record is not None else None
    finished = session.run(work, "facts", how, output, facts=request)
    if record is not None:
        _record(record, finished.report)
    code = exit_codes.of_report(finished.report)
    with show.telling(code):
        show.report(finished.report, facts_lines(finished.report), output)
    return code


def _request(root: Path) -> dict[str, Any]:
    """Return the request for all facts in the form that hosts receive.

    :param root: the project's directory
    :raises InvalidInput: a fact of the project is wrong
    """
    from statecfg.facts import own
    from statecfg.facts.catalogue import NAMES, OWN

    facts = own.find(root)
    names = [*NAMES, *(f"{OWN}.{name}" for name in facts)]
    return {"names": names, "own": {name: [fact.file, fact.source] for name, fact in facts.items()}}


def _record(file: str, report: Report) -> None:
    """Write the facts of the hosts that answered to a file, and remove them from the report.

    :raises Unwritten: the file can't be written
    """
    from statecfg.cli import show
    from statecfg.facts import recorded

    hosts = {}
    for name, host in report["hosts"].items():
        collected = host.pop("collected", None)
        if collected is not None:
            hosts[name] = collected["values"]
            for fact, why in sorted(collected["failed"].items()):
                click.echo(f"warning: {name}: the fact `{fact}` failed: {safe.line(why)}", err=True)
    show.into_file(file, recorded.text(hosts))
