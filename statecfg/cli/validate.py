"""`statecfg validate`: check playbooks without contacting a host."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from statecfg.cli import exit_codes, file_types, known_facts, options
from statecfg.cli.options import Command, Selection, take

EXAMPLES = """
statecfg validate playbooks/web.yml             all mistakes, with their locations
statecfg validate playbooks/*.yml               several at once
statecfg validate playbooks/web.yml -e port=81  with this variable
"""


@click.command("validate", cls=Command, examples=EXAMPLES)
@click.argument("playbooks", metavar="PLAYBOOK…", nargs=-1, required=True, type=file_types.PlaybookFile())
@options.selection
@known_facts.facts_option
@options.no_color_option
def command(playbooks: tuple[str, ...], facts: str | None, no_color: bool, **values: Any) -> int:
    """Check playbooks for every host they name, without contacting any host.

    Reports everything that can be known before connecting, all at once and each with its location: unknown and missing
    attributes, wrong values, missing requirements, cycles, two resources for the same object, templates that cannot be
    rendered, and wrong charms, settings and relations of services. Secrets may be missing. Exit status 5 if anything is
    wrong.

    Lists the source locations that depend on facts of a host. It checks them only with --facts.
    """
    chosen: Selection = take(Selection, values)
    from statecfg.cli import session
    from statecfg.problems import InvalidInput
    from statecfg.run.prepare import offline
    from statecfg.views import stream
    from statecfg.views.lines import make
    from statecfg.views.problems import problem_lines
    from statecfg.views.tally import plural

    problems = []
    choice = session.choice(chosen)
    if len(playbooks) > 1:  # a variable may be used by only one of them
        choice = replace(choice, given=frozenset())
    for name in playbooks:
        try:
            recorded = known_facts.read(facts, Path(name))
            work = session.warned(offline(Path(name), replace(choice, known=replace(choice.known, facts=recorded))))
        except InvalidInput as wrong:
            problems.extend(wrong.problems)
            continue
        nodes = sum(len(layer) for job in work.jobs for layer in job.definition.layers)
        text = f"{name}: {plural(nodes, 'resource')} on {plural(len(work.jobs), 'host')}"
        text += f", {plural(len(work.services), 'service')}" if work.services else ""
        text += f", {plural(len(work.relations), 'relation')}" if work.relations else ""
        text += ", no problems found" + (" so far" if work.awaited is not None else "")
        text += f"; missing on this machine and required to plan: {', '.join(work.missing)}" if work.missing else ""
        lines = [make(("✓ ", "add"), text), *(make("  ", note) for note in known_facts.notes(work))]
        stream.write(lines, sys.stdout, stream.coloured(sys.stdout, no_color))
    if problems:
        distinct = list(dict.fromkeys(problems))
        stream.write(problem_lines(distinct, Path.cwd()), sys.stderr, stream.coloured(sys.stderr, no_color))
    return exit_codes.BAD_INPUT if problems else exit_codes.DONE
