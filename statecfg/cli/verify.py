"""`statecfg verify`: compare hosts with the last apply and with the playbook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from statecfg.cli import exit_codes, file_types, options, output_files
from statecfg.cli.options import Command
from statecfg.cli.secret_options import secret_keys
from statecfg.remote.graph.names import Mode

EXAMPLES = """
statecfg verify playbooks/web.yml         every host; exit 2 if anything drifted
statecfg verify playbooks/web.yml --diff  with complete differences
statecfg verify playbooks/web.yml --json  for a monitoring system
"""


@click.command("verify", cls=Command, examples=EXAMPLES)
@click.argument("playbook", type=file_types.PlaybookFile())
@options.selection
@secret_keys
@options.conversation
@options.store_option
@options.output
def command(playbook: str, store: str | None, **values: Any) -> int:
    """Find drift: what changed on the hosts, and what changed in the definition. Change nothing.

    The host changed if a resource is no longer as the last apply left it. The definition changed if the playbook now
    defines a resource differently or no longer defines it. Exit 2 if there is drift of either kind.
    """
    chosen, how, output = options.taken(values)
    from statecfg.cli import lifecycle, session, show
    from statecfg.views.verify import verify_lines

    foreseen = lifecycle.foreseen(Path(playbook), chosen, store)
    work = session.prepare(Path(playbook), chosen, foreseen)
    hooks = foreseen or lifecycle.preview(Path(playbook), chosen, store, bool(work.services))
    finished = session.run(work, Mode.VERIFY, how, output, events=hooks)
    code = finished.stopped if finished.cancelled else exit_codes.of_report(finished.report)
    with output_files.telling(code):
        show.report(finished.report, verify_lines(finished.report, session.detail(output)), output)
    return code
