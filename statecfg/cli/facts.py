"""`statecfg facts`: facts about hosts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from statecfg.cli import exit_codes, options, output_files
from statecfg.cli.known_facts import LAST
from statecfg.cli.options import Command
from statecfg.facts import recorded
from statecfg.remote.graph.names import Mode
from statecfg.views import safe

if TYPE_CHECKING:
    from statecfg.playbook.project import Project
    from statecfg.run.report_model import Report

EXAMPLES = """
statecfg facts                     every host of the inventory
statecfg facts 'web*' --json       as JSON, for other programs
statecfg facts @local              this machine
statecfg facts web1 --record FILE  all facts that definitions can use, for `validate --facts FILE`
statecfg facts db1 --record last   into the store, for the definitions of other hosts
"""


@click.command("facts", cls=Command, examples=EXAMPLES)
@click.argument("pattern", default="all", shell_complete=options.offer_hosts)
@options.inventory_option
@click.option(
    "--record",
    metavar="FILE|last",
    type=click.Path(dir_okay=False),
    help="Write all facts that definitions can use, and those of the project, to this file as JSON; or, with `last`, "
    "to the store.",
)
@options.store_option
@options.conversation
@options.output
def command(pattern: str, record: str | None, store: str | None, **values: Any) -> int:
    """Show facts about hosts: their system, processors, memory, and Python.

    PATTERN is a name, a group, a glob or a combination, as for --limit. Default: every host.
    """
    chosen, how, output = options.taken(values)
    from statecfg.cli import session, show
    from statecfg.views.facts import facts_lines

    output_files.check_files(record if record != LAST else None)
    work = session.of_hosts(pattern, chosen)
    request = _request(work.project.root) if record is not None else None
    finished = session.run(work, Mode.FACTS, how, output, facts=request)
    if record is not None:
        hosts = _collected(finished.report)
        if record == LAST:
            _store(work.project, store, hosts)
        else:
            output_files.into_file(record, recorded.text(hosts))
    code = exit_codes.of_report(finished.report)
    with output_files.telling(code):
        show.report(finished.report, facts_lines(finished.report), output)
    return code


def _request(root: Path) -> Mapping[str, Any]:
    """Return the request for all facts in the form that hosts receive.

    :param root: the project's directory
    :raises InvalidInput: a fact of the project is wrong
    """
    from statecfg.facts import own
    from statecfg.facts.catalogue import NAMES, OWN

    facts = own.find(root)
    names = [*NAMES, *(f"{OWN}.{name}" for name in facts)]
    return {"names": names, "own": {name: [fact.file, fact.source] for name, fact in facts.items()}}


def _store(project: Project, store: str | None, hosts: Mapping[str, Mapping[str, Any]]) -> None:
    """Store the facts of hosts.

    :param store: the address of the store; None for the default
    :raises StoreError: the store can't be used
    """
    from statecfg.store import facts, opened

    with opened(project, store) as project_store:
        for name, values in hosts.items():
            facts.keep(project_store, name, values)


def _collected(report: Report) -> dict[str, Mapping[str, Any]]:
    """Return host → the facts of the hosts that answered, and remove them from the report."""
    hosts: dict[str, Mapping[str, Any]] = {}
    for name, host in report["hosts"].items():
        collected = host.pop("collected", None)
        if collected is not None:
            hosts[name] = collected["values"]
            for fact, why in sorted(collected["failed"].items()):
                click.echo(f"warning: {name}: the fact `{fact}` failed: {safe.line(why)}", err=True)
    return hosts
