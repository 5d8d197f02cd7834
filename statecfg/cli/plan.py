"""`statecfg plan`: show what would change; change nothing."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import click

from statecfg.cli import exit_codes, file_types, next_command, options, output_files
from statecfg.cli.options import Command
from statecfg.cli.secret_options import secret_keys
from statecfg.remote.graph.names import Mode

EXAMPLES = """
statecfg plan playbooks/web.yml                      every host that the playbook names
statecfg plan playbooks/web.yml -l 'web*,!web3'      some of them
statecfg plan playbooks/web.yml -e port=8081 --diff  with a variable, and diffs in full
statecfg plan playbooks/web.yml --out web.plan       save it; `statecfg apply web.plan` makes exactly these changes
statecfg plan playbooks/web.yml --detailed-exitcode  exit 2 if anything would change, for CI
statecfg plan playbooks/web.yml --prune              include the removal of what left the definition
"""


@click.command("plan", cls=Command, examples=EXAMPLES)
@click.argument("playbook", type=file_types.PlaybookFile())
@options.selection
@secret_keys
@options.prune_option
@options.prune_hosts_option
@options.conversation
@options.verify_content_option
@options.out_option
@options.detailed_option
@options.store_option
@options.output
def command(playbook: str, out: str | None, store: str | None, **values: Any) -> int:
    """Show exactly what would change on the hosts. Change nothing.

    PLAYBOOK is a .yml, .py or .hy file. statecfg checks the whole playbook before it contacts any host. Each host
    computes its own plan: it plans each step on the state that the earlier steps will leave. If something cannot be
    known in advance, the plan says that it is `known after` the resource that decides it. The plan always lists what
    left the definition; with --prune, the removal is part of the plan.
    """
    chosen, how, output = options.taken(values)
    from statecfg.cli import lifecycle, prune_hosts, save_plan, session
    from statecfg.problems import inputs

    output_files.check_files(out)
    if out and chosen.prune_hosts:
        raise click.UsageError("A saved plan can't contain --prune-hosts. Apply the playbook with --prune-hosts --yes.")
    with inputs.recording() if out else contextlib.nullcontext(inputs.Inputs()) as read:
        foreseen = lifecycle.foreseen(Path(playbook), chosen, store)
        work = session.prepare(Path(playbook), chosen, foreseen, store)
    if out and any(os.path.realpath(out) == os.path.realpath(path) for _, path, _ in read):
        detail = f"'{out}' is a file that the plan is made from, and would be overwritten."
        raise click.BadParameter(detail, param_hint="'-o' / '--out'")
    if chosen.prune_hosts:
        work = prune_hosts.planned(work, Path(playbook), store)
    store_identity = save_plan.store_of(work, store) if out and work.services else ""
    hooks = foreseen or lifecycle.preview(Path(playbook), chosen, store, bool(work.services))
    finished = session.run(work, Mode.PLAN, how, output, events=hooks)
    if out:
        save_plan.save(Path(out), work, chosen, how, finished.report, read, store_identity)
    applying = next_command.apply_arguments(playbook, chosen, how)
    saved = [*next_command.key_arguments(chosen), *next_command.connection_arguments(how, saved=True)]
    arguments = [out, *saved] if out else applying
    code = exit_codes.of_report(finished.report, output.detailed_exitcode)
    code = finished.stopped if finished.cancelled else code
    with output_files.telling(code):
        session.show_plan(finished, output, arguments)
    return code
