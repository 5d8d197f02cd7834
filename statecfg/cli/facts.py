"""`statecfg facts`: facts about hosts."""

from __future__ import annotations

from typing import Any

import click

from statecfg.cli import exit_codes, options
from statecfg.cli.options import Command, ConnectionOptions, Output, Selection, take

EXAMPLES = """
statecfg facts                     every host of the inventory
statecfg facts 'web*' --json       as JSON, for other programs
statecfg facts @local              this machine
"""


@click.command("facts", cls=Command, examples=EXAMPLES)
@click.argument("pattern", default="all", shell_complete=options.offer_hosts)
@options.inventory_option
@options.conversation
@options.output
def command(pattern: str, **values: Any) -> int:
    """Show facts about hosts: system, network, disks.

    PATTERN is a name, a group, a glob or a combination, as for --limit. Default: every host.
    """
    chosen: Selection = take(Selection, values)
    how: ConnectionOptions = take(ConnectionOptions, values)
    output: Output = take(Output, values)
    from statecfg.cli import session, show
    from statecfg.views.facts import facts_lines

    finished = session.run(session.of_hosts(pattern, chosen), "facts", how, output)
    code = exit_codes.of_report(finished.report)
    with show.telling(code):
        show.report(finished.report, facts_lines(finished.report), output)
    return code
