"""`statecfg explain`: where a node, a variable or a host comes from, and why."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from statecfg.cli import exit_codes, file_types, known_facts, options, output_files
from statecfg.cli.options import Command, ConnectionOptions, Selection, take
from statecfg.cli.output_options import OutputOptions
from statecfg.remote.graph.names import HostStatus, Mode

if TYPE_CHECKING:
    from statecfg.cli.session import Finished
    from statecfg.run.prepare import Work

EXAMPLES = """
statecfg explain service:nginx                      what requires this node, and why; in all playbooks
statecfg explain service:nginx playbooks/web.yml    the same in one playbook
statecfg explain port -l web1                       which value of a variable won
statecfg explain web1                               which plays a host has
statecfg explain service:nginx --ledger             also what the hosts recorded about it
statecfg explain web1 --ledger                      also which playbooks manage how many resources there
"""


@click.command("explain", cls=Command, examples=EXAMPLES)
@click.argument("name", metavar="NAME")
@click.argument("playbooks", metavar="[PLAYBOOK…]", nargs=-1, type=file_types.PlaybookFile())
@options.selection
@known_facts.facts_option
@click.option("--ledger", is_flag=True, help="Connect to the hosts and show what their ledgers know about NAME.")
@options.conversation
@options.json_option
@options.no_color_option
def command(
    name: str,
    playbooks: tuple[str, ...],
    facts: str | None,
    ledger: bool,
    as_json: bool,
    no_color: bool,
    **values: Any,
) -> int:
    """Explain a node, a variable or a host: where it is defined, and what determines it.

    For a node: the role that declares it, what it requires, what requires it, and why; and the automatic requirements
    that would have closed a cycle. For a variable: the value on each host, and what it overrides. For a host: its plays
    and groups. Without PLAYBOOK, searches all playbooks in the project's playbooks/. Only --ledger contacts hosts. It
    also finds nodes that left the playbooks. Resources that depend on facts of a host are explained only with --facts.
    """
    chosen: Selection = take(Selection, values)
    how: ConnectionOptions = take(ConnectionOptions, values)
    from statecfg.cli import session
    from statecfg.problems import InvalidInput, problem, suggest
    from statecfg.run.explaining import Explaining
    from statecfg.views import as_json as json_view
    from statecfg.views import explain, safe, stream
    from statecfg.views.problems import nearer

    works = _prepared(playbooks, chosen, facts)
    for note in dict.fromkeys(note for work in works for note in known_facts.notes(work)):
        click.echo(f"note: {safe.line(note)}", err=True)
    extra = session.choice(chosen).extra
    found: dict[str, list[Any]] = {"nodes": [], "variables": [], "hosts": []}
    names: set[str] = set()
    for work in works:
        explaining = Explaining(work, extra, lambda location: str(nearer(location, Path.cwd())))
        found["nodes"] += explaining.nodes(name)
        found["variables"] += explaining.variables(name)
        found["hosts"] += explaining.hosts(name)
        names |= explaining.names()
    finished = _asked(name, works, found, how, OutputOptions(json=as_json, no_color=no_color)) if ledger else None
    hosts = finished.report["hosts"].values() if finished is not None else ()
    if not any(found.values()) and not any(host.get("managed") or host["status"] != HostStatus.OK for host in hosts):
        detail = f"no node, variable or host is called {name}"
        hint = suggest(name, sorted(names), "available")
        if any(job.needs for work in works for job in work.jobs):
            detail, hint = f"{detail}, as far as statecfg knows without facts of hosts", "pass --facts last, or a file"
        raise InvalidInput([problem("SC0433", detail, hint)])
    data: dict[str, Any] = {"format": 1, "name": name, **found}
    if as_json:
        sys.stdout.write(json_view.text(data if finished is None else {**data, "ledgers": finished.report["hosts"]}))
    else:
        colored = stream.coloured(sys.stdout, no_color)
        stream.write(explain.explanation_lines(data), sys.stdout, colored)
        if finished is not None:
            stream.write(explain.ledger_lines(finished.report), sys.stdout, colored)
    if finished is None:
        return exit_codes.DONE
    code = finished.stopped if finished.cancelled else exit_codes.of_report(finished.report)
    with output_files.telling(code):
        return code


def _asked(
    name: str, works: list[Work], found: Mapping[str, list[Any]], how: ConnectionOptions, output: OutputOptions
) -> Finished:
    """Ask the ledgers: of the host if `name` is one; of the hosts that have a node; otherwise of all hosts.

    :raises click.UsageError: `name` is only a variable
    """
    from statecfg.cli import session
    from statecfg.graph import opaque

    if found["variables"] and not found["nodes"] and not found["hosts"]:
        raise click.UsageError(f"Ledgers know nodes and hosts, and {name} is a variable: omit --ledger.")
    jobs = {job.host.name: job for work in works for job in work.jobs}
    hosts = {host for node in found["nodes"] for host in node["hosts"]} | {host["name"] for host in found["hosts"]}
    asked = [replace(job, sources=None) for host, job in jobs.items() if host in hosts or not hosts]
    query = {"owners": True} if found["hosts"] else {"node": name}
    secrets = opaque.by_name(pair for work in works for pair in work.secrets.items())
    asked_work = replace(works[0], jobs=asked, secrets=secrets)
    return session.run(asked_work, Mode.HISTORY, how, output, history={**query, "limit": 5})


def _prepared(playbooks: tuple[str, ...], chosen: Selection, facts: str | None) -> list[Work]:
    """Return the playbooks, prepared without contacting hosts. Without names, broken playbooks are only warnings."""
    from statecfg.cli import session
    from statecfg.dialects import LOADERS
    from statecfg.playbook import project
    from statecfg.problems import InvalidInput, problem
    from statecfg.run.prepare import offline

    folder = project.find(Path.cwd()).root / "playbooks"
    recorded = known_facts.read(facts, Path(playbooks[0]) if playbooks else folder)
    choice = session.choice(chosen)
    choice = replace(choice, sources=True, given=frozenset(), known=replace(choice.known, facts=recorded))
    if playbooks:
        return [session.warned(offline(Path(path), choice)) for path in playbooks]
    paths = sorted(path for path in folder.glob("*") if path.suffix in LOADERS)
    works, problems = [], []
    for path in paths:
        try:
            works.append(offline(path, choice))
        except InvalidInput as wrong:
            problems += wrong.problems
            click.echo(f"warning: {path.name} is not searched, because it has errors", err=True)
    if not works:
        if problems:
            raise InvalidInput(problems)
        raise InvalidInput([problem("SC0433", f"{folder} has no playbooks", "name a playbook")])
    return works
