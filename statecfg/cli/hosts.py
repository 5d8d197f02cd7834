"""`statecfg hosts`: the hosts in the store."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from statecfg.cli import answers, exit_codes, options
from statecfg.cli.host_store import HostOptions, HostStore
from statecfg.cli.options import Command, Group
from statecfg.remote.graph.events import HostEvent

if TYPE_CHECKING:
    pass

EXAMPLES = """
statecfg hosts                                 every host: last check-in, tags, playbooks
statecfg hosts show web1                       one host with its facts and metadata
statecfg hosts tag web1 canary                 add a tag; --remove removes it
statecfg hosts set web1 rack=12 spare=true     set metadata, which hooks read and write
statecfg hosts bind web1 playbooks/web.yml     bind a playbook to it
statecfg hosts forget web1                     remove it from the store
"""
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}")


def _text(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Return the argument. Refuse bytes that are not UTF-8, because databases don't accept them."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise click.BadParameter("it is not UTF-8.", context, parameter) from None
    return value


@click.group("hosts", cls=Group, examples=EXAMPLES, invoke_without_command=True)
@options.inventory_option
@options.store_option
@options.json_option
@options.no_color_option
@click.pass_context
def command(context: click.Context, inventory: str | None, store: str | None, as_json: bool, no_color: bool) -> None:
    """Show the hosts in the store; tag them, bind playbooks to them, forget them.

    The store adds a host when statecfg first contacts it, or when you tag or bind it before that. Without a
    subcommand, all hosts are listed. Tags are kept in the store; groups come from the inventory.
    """
    context.obj = HostOptions(store, inventory)
    if context.invoked_subcommand is not None:
        return
    from statecfg.store import hosts
    from statecfg.views import host_records

    with HostStore(context.obj) as opened:
        records = hosts.every(opened.store)
        groups = {record.name: opened.groups(record.name) for record in records}
        answers.write(host_records.table(records, groups), host_records.data(records, groups), as_json, no_color)


@command.command("show", cls=Command, examples="statecfg hosts show web1\nstatecfg hosts show web1 --json")
@click.argument("name", callback=_text, shell_complete=options.offer_hosts)
@options.json_option
@options.no_color_option
@click.pass_obj
def show(host_options: HostOptions, name: str, as_json: bool, no_color: bool) -> None:
    """Show everything that the store knows about a host."""
    from statecfg.views import host_records

    with HostStore(host_options) as opened:
        record, groups = opened.stored(name), opened.groups(name)
        answers.write(host_records.one(record, groups), host_records.data([record], {name: groups}), as_json, no_color)


@command.command(
    "tag", cls=Command, examples="statecfg hosts tag web1 canary blue\nstatecfg hosts tag web1 canary --remove"
)
@click.argument("name", callback=_text, shell_complete=options.offer_hosts)
@click.argument("tags", nargs=-1, required=True)
@click.option("--remove", is_flag=True, help="Remove the tags.")
@click.pass_obj
def tag(host_options: HostOptions, name: str, tags: Sequence[str], remove: bool) -> None:
    """Tag a host. Selectors of hooks can select hosts by their tags.

    A tag has up to 100 characters: letters, digits and _ . : -
    """
    for text in tags:
        if not _TAG.fullmatch(text):
            raise click.BadParameter(f"{text!r} is not a valid tag. Use letters, digits and _ . : -")
    from statecfg.store import hosts

    with HostStore(host_options) as opened:
        record = (hosts.untag if remove else hosts.tag)(opened.store, opened.name(name), tags)
    answers.say(f"{name}: {', '.join(record.tags) or 'no tags'}")


@command.command(
    "set", cls=Command, examples="statecfg hosts set web1 rack=12 spare=true\nstatecfg hosts set web1 --remove rack"
)
@click.argument("name", callback=_text, shell_complete=options.offer_hosts)
@click.argument("values", nargs=-1, metavar="[KEY=VALUE]…")
@click.option("--remove", metavar="KEY", multiple=True, help="Remove this key. Repeatable.")
@click.option("--clear", is_flag=True, help="Remove all keys.")
@click.pass_obj
def set_values(host_options: HostOptions, name: str, values: Sequence[str], remove: Sequence[str], clear: bool) -> None:
    """Set or remove metadata of a host.

    The value is parsed as JSON if possible (`spare=true`, `rack=12`); otherwise it is a string.
    """
    metadata = dict(map(_pair, values))
    if not (metadata or remove or clear):
        raise click.UsageError("Nothing to set: give KEY=VALUE, --remove KEY or --clear.")
    if clear and metadata:
        raise click.UsageError("--clear can't be combined with values: set them afterwards.")
    from statecfg.store import hosts

    with HostStore(host_options) as opened:
        record = hosts.set_metadata(opened.store, opened.name(name), metadata, remove, clear)
    answers.say(f"{name}: {json.dumps(record.metadata)}")


def _pair(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise click.BadParameter(f"{text!r} is not KEY=VALUE.")
    try:
        return key, json.loads(value)
    except ValueError:
        # Replace bytes that are not UTF-8, because databases don't accept them.
        return key, value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


@command.command("bind", cls=Command, examples="statecfg hosts bind web1 playbooks/web.yml")
@click.argument("name", callback=_text, shell_complete=options.offer_hosts)
@click.argument("playbook", type=options.PlaybookFile(), callback=_text)
@click.pass_obj
def bind(host_options: HostOptions, name: str, playbook: str) -> None:
    """Bind a playbook to a host (event node-bound-to-policy)."""
    from statecfg.hooks import host_events
    from statecfg.playbook import project
    from statecfg.run import prepare
    from statecfg.store import hosts

    belongs = project.find(Path(playbook))
    bound = prepare.owner(belongs, Path(playbook))
    failed: Sequence[Mapping[str, Any]] = ()
    with HostStore(host_options) as opened:
        is_new = hosts.bind(opened.store, opened.name(name), bound)
        if is_new:
            failed = host_events.fire(opened.store, HostEvent.BOUND, opened.stored(name), bound, belongs)
    _warn(failed)
    answers.say(f"{name}: bound to {bound}" if is_new else f"{name}: it was bound to {bound} before")


@command.command("unbind", cls=Command, examples="statecfg hosts unbind web1 playbooks/web.yml")
@click.argument("name", callback=_text, shell_complete=options.offer_hosts)
@click.argument("playbook", type=click.Path(), callback=_text)
@click.pass_obj
def unbind(host_options: HostOptions, name: str, playbook: str) -> None:
    """Unbind a playbook from a host (event node-unbound-from-policy). What it created on the host stays."""
    from statecfg.hooks import host_events
    from statecfg.playbook import project as projects
    from statecfg.run import prepare
    from statecfg.store import hosts

    belongs = projects.find(Path(playbook))
    bound = prepare.owner(belongs, Path(playbook))
    failed: Sequence[Mapping[str, Any]] = ()
    with HostStore(host_options) as opened:
        record = opened.stored(name)
        if playbook in record.playbooks:  # the name as it is shown, also that of another project
            bound = playbook
        there = bound in record.playbooks
        if there:
            project = opened.store.project
            change = functools.partial(hosts.unbind_in, project=project, name=name, playbook=bound)
            failed = host_events.fire(opened.store, HostEvent.UNBOUND, record, bound, belongs, change)
    _warn(failed)
    others = f"; it is bound to: {', '.join(record.playbooks)}" if record.playbooks else ""
    answers.say(f"{name}: no longer bound to {bound}" if there else f"{name}: it is not bound to {bound}{others}")


@command.command("forget", cls=Command, examples="statecfg hosts forget web1\nstatecfg hosts forget web1 --yes")
@click.argument("name", callback=_text, shell_complete=options.offer_hosts)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_obj
def forget(host_options: HostOptions, name: str, yes: bool) -> int:
    """Remove a host and its units from the store (event node-deleted).

    The host itself and its ledger stay as they are. The next apply tells the units on other hosts that its units
    departed.
    """
    from statecfg.cli import session
    from statecfg.hooks import host_events
    from statecfg.store import hosts, services

    failed: Sequence[Mapping[str, Any]] = ()
    with HostStore(host_options) as opened:
        opened.stored(name)
        if session.asks(yes) and not click.confirm(f"Forget {name}, its tags, metadata, bindings and units?", err=True):
            click.echo("Nothing was changed.", err=True)
            return exit_codes.INTERRUPTED
        services.forget_units(opened.store, opened.store.project, name)
        record = hosts.forget(opened.store, name)
        if record is not None:
            failed = host_events.fire(opened.store, HostEvent.DELETED, record, None, opened.project)
    _warn(failed)
    answers.say(f"{name}: forgotten")
    return exit_codes.DONE


def _warn(failed: Iterable[Mapping[str, Any]]) -> None:
    """Print a warning for each hook that failed."""
    from statecfg.views import safe

    for failure in failed:
        first = next(iter(str(failure["error"]).splitlines()), "")
        detail = f"hook {failure['hook']} failed at {failure['event']}: {first}"
        click.echo(f"warning: {safe.line(detail)} (statecfg hook log {failure['hook']})", err=True)
