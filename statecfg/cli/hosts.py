"""`statecfg hosts`: the hosts in the store."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from statecfg.cli import exit_codes, file_types, options, printing
from statecfg.cli.host_store import HostOptions, HostStore
from statecfg.cli.values import json_or_text
from statecfg.cli.verbs import COLOR, JSON, StoreGroup, VerbResult
from statecfg.remote.graph.events import HostEvent
from statecfg.views import host_records, safe

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


_name = click.argument("name", callback=_text, shell_complete=options.offer_hosts)


@click.group("hosts", cls=StoreGroup, opens=HostStore, examples=EXAMPLES, invoke_without_command=True)
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

    with HostStore(context.obj) as opened:
        records = hosts.every(opened.store)
        groups = {record.name: opened.groups(record.name) for record in records}
        printing.write(host_records.table(records, groups), host_records.data(records, groups), as_json, no_color)


@command.verb("show", "statecfg hosts show web1\nstatecfg hosts show web1 --json", JSON, COLOR)
@_name
def show(opened: HostStore, name: str) -> VerbResult:
    """Show everything that the store knows about a host."""
    record, groups = opened.stored(name), opened.groups(name)
    return VerbResult(host_records.one(record, groups), host_records.data([record], {name: groups}))


def _tags(context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> Sequence[str]:
    """Return the tags.

    :raises click.UsageError: one of them is not a tag
    """
    for text in values:
        if not _TAG.fullmatch(text):
            raise click.UsageError(f"Invalid value: {text!r} is not a valid tag. Use letters, digits and _ . : -")
    return values


@command.verb("tag", "statecfg hosts tag web1 canary blue\nstatecfg hosts tag web1 canary --remove")
@_name
@click.argument("tags", nargs=-1, required=True, callback=_tags)
@click.option("--remove", is_flag=True, help="Remove the tags.")
def tag(opened: HostStore, name: str, tags: Sequence[str], remove: bool) -> str:
    """Tag a host. Selectors of hooks can select hosts by their tags.

    A tag has up to 100 characters: letters, digits and _ . : -
    """
    from statecfg.store import hosts

    record = (hosts.untag if remove else hosts.tag)(opened.store, opened.name(name), tags)
    return f"{name}: {', '.join(record.tags) or 'no tags'}"


def _pairs(context: click.Context, parameter: click.Parameter, values: Sequence[str]) -> Mapping[str, Any]:
    """Convert arguments KEY=VALUE to a dictionary."""
    return dict(map(_pair, values))


def _pair(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise click.UsageError(f"Invalid value: {text!r} is not KEY=VALUE.")
    return key, json_or_text(value)


@command.verb("set", "statecfg hosts set web1 rack=12 spare=true\nstatecfg hosts set web1 --remove rack")
@_name
@click.argument("values", nargs=-1, metavar="[KEY=VALUE]…", callback=_pairs)
@click.option("--remove", metavar="KEY", multiple=True, help="Remove this key. Repeatable.")
@click.option("--clear", is_flag=True, help="Remove all keys.")
def set_values(opened: HostStore, name: str, values: Mapping[str, Any], remove: Sequence[str], clear: bool) -> str:
    """Set or remove metadata of a host.

    The value is parsed as JSON if possible (`spare=true`, `rack=12`); otherwise it is a string.
    """
    from statecfg.store import hosts

    if not (values or remove or clear):
        raise click.UsageError("Nothing to set: give KEY=VALUE, --remove KEY or --clear.")
    if clear and values:
        raise click.UsageError("--clear can't be combined with values: set them afterwards.")
    record = hosts.set_metadata(opened.store, opened.name(name), values, remove, clear)
    return f"{name}: {json.dumps(record.metadata)}"


@command.verb("bind", "statecfg hosts bind web1 playbooks/web.yml")
@_name
@click.argument("playbook", type=file_types.PlaybookFile(), callback=_text)
def bind(opened: HostStore, name: str, playbook: str) -> str:
    """Bind a playbook to a host (event node-bound-to-policy)."""
    from statecfg.hooks import host_events
    from statecfg.playbook import project
    from statecfg.run import prepare
    from statecfg.store import hosts

    belongs = project.find(Path(playbook))
    bound = prepare.owner(belongs, Path(playbook))
    if not hosts.bind(opened.store, opened.name(name), bound):
        return f"{name}: it was bound to {bound} before"
    _warn(host_events.fire(opened.store, HostEvent.BOUND, opened.stored(name), bound, belongs))
    return f"{name}: bound to {bound}"


@command.verb("unbind", "statecfg hosts unbind web1 playbooks/web.yml")
@_name
@click.argument("playbook", type=click.Path(), callback=_text)
def unbind(opened: HostStore, name: str, playbook: str) -> str:
    """Unbind a playbook from a host (event node-unbound-from-policy). What it created on the host stays."""
    from statecfg.hooks import host_events
    from statecfg.playbook import project as projects
    from statecfg.run import prepare
    from statecfg.store import hosts

    belongs = projects.find(Path(playbook))
    bound = prepare.owner(belongs, Path(playbook))
    record = opened.stored(name)
    if playbook in record.playbooks:  # the name as it is shown, also that of another project
        bound = playbook
    if bound not in record.playbooks:
        others = f"; it is bound to: {', '.join(record.playbooks)}" if record.playbooks else ""
        return f"{name}: it is not bound to {bound}{others}"
    change = functools.partial(hosts.unbind_in, project=opened.store.project, name=name, playbook=bound)
    _warn(host_events.fire(opened.store, HostEvent.UNBOUND, record, bound, belongs, change))
    return f"{name}: no longer bound to {bound}"


@command.verb("forget", "statecfg hosts forget web1\nstatecfg hosts forget web1 --yes")
@_name
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def forget(opened: HostStore, name: str, yes: bool) -> str | VerbResult:
    """Remove a host and its units from the store (event node-deleted).

    The host itself and its ledger stay as they are. The next apply tells the units on other hosts that its units
    departed.
    """
    from statecfg.cli import session
    from statecfg.hooks import host_events
    from statecfg.store import hosts, services

    opened.stored(name)
    if session.asks(yes) and not click.confirm(f"Forget {name}, its tags, metadata, bindings and units?", err=True):
        click.echo("Nothing was changed.", err=True)
        return VerbResult([], code=exit_codes.INTERRUPTED)
    services.forget_units(opened.store, opened.store.project, name)
    record = hosts.forget(opened.store, name)
    if record is not None:
        _warn(host_events.fire(opened.store, HostEvent.DELETED, record, None, opened.project))
    return f"{name}: forgotten"


def _warn(failed: Iterable[Mapping[str, Any]]) -> None:
    """Print a warning for each hook that failed."""
    for failure in failed:
        first = next(iter(str(failure["error"]).splitlines()), "")
        detail = f"hook {failure['hook']} failed at {failure['event']}: {first}"
        click.echo(f"warning: {safe.line(detail)} (statecfg hook log {failure['hook']})", err=True)
