"""`statecfg secret`: rotate and reveal the values that hosts generated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from statecfg.cli import exit_codes, file_types, options, output_files
from statecfg.cli.options import VerbGroup
from statecfg.cli.secret_options import secret_keys
from statecfg.remote.graph.names import Mode

if TYPE_CHECKING:
    from statecfg.playbook.compile import WireNode
    from statecfg.run.prepare import Work

EXAMPLES = """
statecfg secret rotate playbooks/web.yml db-password        make a new password, and apply the playbook
statecfg secret reveal playbooks/web.yml db-password        print the password
"""
ROTATE = """
statecfg secret rotate playbooks/web.yml db-password --dry-run     show what would change
statecfg secret rotate playbooks/web.yml db-password               show the plan, ask, apply it
statecfg secret rotate playbooks/web.yml db-password -l db1 --yes  on one host, without asking
"""
REVEAL = """
statecfg secret reveal playbooks/web.yml db-password         the value on each host of the playbook
statecfg secret reveal playbooks/web.yml db-password -l db1  the value on one host
"""


@click.group("secret", cls=VerbGroup, examples=EXAMPLES)
def command() -> None:
    """Rotate and show the secrets that hosts generated (`generate` in a playbook)."""


@command.command("rotate", examples=ROTATE)
@click.argument("playbook", type=file_types.PlaybookFile())
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("--dry-run", is_flag=True, help="Show what would change. Change nothing.")
@options.selection_of_all
@secret_keys
@options.changes
def rotate(
    playbook: str, names: tuple[str, ...], dry_run: bool, yes: bool, no_hooks: bool, store: str | None, **values: Any
) -> int:
    """Generate new values of secrets, and apply the playbook.

    The hosts replace the values, and the same run updates each resource that contains them and restarts what depends on
    it. The old values are lost: a resource that needs the old value to change to the new one, such as a database
    user, must allow that.
    """
    chosen, how, output = options.taken(values)
    from statecfg.cli import lifecycle, session, show
    from statecfg.views.plan import plan_lines

    path, mode = Path(playbook), Mode.PLAN if dry_run else Mode.APPLY
    if dry_run:
        work = session.prepare(path, chosen, store=store)
        _mark(work, names)
        finished = session.run(work, mode, how, output)
        code = finished.stopped if finished.cancelled else exit_codes.of_report(finished.report)
        with output_files.telling(code):
            show.report(finished.report, plan_lines(finished.report, session.detail(output)), output)
        return code
    asks = session.asks(yes)
    with lifecycle.bus(path, chosen, mode, no_hooks, store) as events:
        work = session.prepare(path, chosen, events, store)
        _mark(work, names)
        finished = session.run(work, mode, how, output, asks=asks, agreed=session.agreed(), events=events)
    return session.end(finished, output, events.problems)


@command.command("reveal", examples=REVEAL)
@click.argument("playbook", type=file_types.PlaybookFile())
@click.argument("name")
@options.selection_of_all
@options.conversation
@options.output
def reveal(playbook: str, name: str, **values: Any) -> int:
    """Print the value of a secret that a host generated.

    Nothing is changed, and neither the host nor the store records the value. With several hosts, each line begins with
    the host's name.
    """
    chosen, how, output = options.taken(values)
    from statecfg.cli import session, show
    from statecfg.playbook.compile import Definition
    from statecfg.run import prepare
    from statecfg.views.secret_values import value_lines

    work = prepare.offline(Path(playbook), session.choice(chosen))
    nodes = _generating(work, [name])
    jobs = [replace(job, definition=Definition([])) for job in work.jobs if job.host.name in nodes]
    asking = replace(work, jobs=jobs, secrets={}, services=(), relations=())
    finished = session.run(asking, Mode.REVEAL, how, output, history={"name": name})
    code = finished.stopped if finished.cancelled else exit_codes.of_report(finished.report)
    with output_files.telling(code):
        show.report(finished.report, value_lines(finished.report), output)
    return code


def _mark(work: Work, names: Sequence[str]) -> None:
    """Mark the nodes for which hosts generate new values."""
    for nodes in _generating(work, names).values():
        for node in nodes:
            node["options"] = {**node.get("options", {}), "rotate": True}


def _generating(work: Work, names: Sequence[str]) -> dict[str, list[WireNode]]:
    """Return host → the nodes that generate secrets with these names.

    :raises click.BadParameter: no host generates a secret of one of the names
    """
    found: dict[str, list[WireNode]] = {}
    known: set[str] = set()
    for job in work.jobs:
        for node in (node for layer in job.definition.layers for node in layer if node["type"] == "generate"):
            known.add(node["attrs"]["name"])
            if node["attrs"]["name"] in names:
                found.setdefault(job.host.name, []).append(node)
    for name in names:
        if name not in known:
            from statecfg.problems import suggest

            hint = suggest(name, sorted(known), "it generates") or "it generates none"
            raise click.BadParameter(f"The playbook generates no secret `{name}`: {hint}.", param_hint="'NAME'")
    return found
