"""`statecfg service`: services, their units, settings and relations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from statecfg import dialects
from statecfg.cli import exit_codes, options, printing
from statecfg.cli.options import ConnectionOptions, take
from statecfg.cli.output_options import OutputOptions, with_file
from statecfg.cli.service_store import ServiceStore
from statecfg.cli.verbs import COLOR, JSON, StoreGroup, VerbResult
from statecfg.problems import InvalidInput, problem, suggest
from statecfg.views import services as view
from statecfg.views.changes import value_text

EXAMPLES = """
statecfg service list                          services, their units and relations
statecfg service show db/0 --settings          a unit with its relation settings
statecfg service set db title=Blog             change a setting; `title=` resets it
statecfg service add-unit web --host web3      add a unit
statecfg service relate web:db db:db           relate two services
statecfg service resolved db/0 --retry         run the failed hook again
statecfg service log db/0                      the output of its hooks
"""
_LATER = "The next `statecfg apply {}` makes this change."


@click.group("service", cls=StoreGroup, opens=ServiceStore, examples=EXAMPLES)
@options.store_option
@click.pass_context
def command(context: click.Context, store: str | None) -> None:
    """Show and change services, their units and relations, as declared in playbooks and recorded in the store.

    All commands work on the project of the current directory. Changes are stored immediately. They take effect in the
    next apply of the playbook that declares the service.
    """
    context.obj = store


@command.verb("list", "statecfg service list\nstatecfg service list --json", JSON, COLOR)
def listed(opened: ServiceStore) -> VerbResult:
    """List services, units and relations. The leader of a service has a `*`."""
    return VerbResult(view.table(opened.snapshot), view.data(opened.snapshot))


@command.verb("show", "statecfg service show db\nstatecfg service show db/0 --settings --json", JSON, COLOR)
@click.argument("name", metavar="SERVICE|UNIT", shell_complete=options.offer_services_and_units)
@click.option("--settings", is_flag=True, help="Also show the relation settings of the unit.")
@click.option("--reveal", is_flag=True, help="Do not mask settings whose names look like secrets (password, token, …).")
def show(opened: ServiceStore, name: str, settings: bool, reveal: bool) -> VerbResult:
    """Show a service with its settings, or a unit with its relations.

    A relation setting is masked if its name looks like a secret: password, token, key and so on. Options of type
    secret are always masked; the store does not contain them.
    """
    from statecfg.store import services

    if "/" in name:
        unit = opened.unit(name)
        relations = services.in_relations(opened.store, unit.id)
        data = view.unit_with_relations(unit, relations, settings, reveal)
        return VerbResult(view.one_unit(unit, relations, settings, reveal), data)
    service = opened.service(name)
    values = services.get_settings(opened.store, opened.name, name) if service.alive else {}
    data = {"format": 1, **view.service_data(service, opened.snapshot), "settings": view.config(service, values)}
    return VerbResult(view.one_service(service, opened.snapshot, values), data)


@command.verb("add-unit", "statecfg service add-unit web\nstatecfg service add-unit web --host web3")
@click.argument("service", shell_complete=options.offer_services)
@click.option(
    "--host",
    metavar="HOST",
    shell_complete=options.offer_hosts,
    help="Host of the unit. Default: the host that has the fewest units of the service.",
)
def add_unit(opened: ServiceStore, service: str, host: str | None) -> str:
    """Add a unit to a service. A host can have several units, and keeps them if the pattern does not match the host."""
    from statecfg.playbook.inventory import LOCAL
    from statecfg.store import services

    row = opened.service(service)
    hosts = dialects.inventory(opened.project).hosts
    if host is not None and host != LOCAL and host not in hosts:
        raise InvalidInput([problem("SC0404", f"the inventory has no host `{host}`", suggest(host, hosts, "it has"))])
    unit = services.add_unit(opened.store, opened.name, service, host)
    return f"{unit.name}: a new unit on {unit.host}. {_LATER.format(opened.file(row))}"


@command.verb("remove-unit", "statecfg service remove-unit web/2")
@click.argument("unit", shell_complete=options.offer_units)
def remove_unit(opened: ServiceStore, unit: str) -> str:
    """Stop and remove a unit. Its number is never reused, and its host does not get a new unit automatically."""
    from statecfg.store import services

    before = opened.unit(unit)
    row = opened.service(before.service)
    services.remove_unit(opened.store, opened.name, unit)
    destroy = f"statecfg destroy --hosts {before.host} {opened.file(row)}"
    ends = f"The playbook no longer names {before.host}: run `{destroy}`."
    later = _LATER.format(opened.file(row)) if before.origin.added or before.host in row.hosts else ends
    return f"{unit}: will be stopped and removed. {later}"


@command.verb("relate", "statecfg service relate web:db db:db\nstatecfg service relate db:cluster")
@click.argument("one", metavar="SERVICE:RELATION")
@click.argument("other", metavar="[SERVICE:RELATION]", required=False)
def relate(opened: ServiceStore, one: str, other: str | None) -> str:
    """Relate two services. With one argument, the units of a service become peers."""
    from statecfg.store import services

    ends = opened.ends([one, *([other] if other is not None else [])])
    opened.fit(ends)
    is_new = services.relate(opened.store, opened.name, ends)
    playbooks = sorted({opened.file(opened.service(name)) for name, _ in ends})
    relation = f"{' '.join(filter(None, (one, other)))}: "
    return relation + (f"related. {_LATER.format(' and '.join(playbooks))}" if is_new else "related before")


@command.verb("unrelate", "statecfg service unrelate web:db db:db")
@click.argument("one", metavar="SERVICE:RELATION")
@click.argument("other", metavar="[SERVICE:RELATION]", required=False)
def unrelate(opened: ServiceStore, one: str, other: str | None) -> str:
    """End a relation. If a playbook declares it, only `service relate` creates it again."""
    from statecfg.store import services

    ends = opened.ends([one, *([other] if other is not None else [])])
    if not services.unrelate(opened.store, opened.name, ends):
        raise opened.no_relation(ends)
    playbooks = sorted({opened.file(opened.service(name)) for name, _ in ends})
    return f"{' '.join(filter(None, (one, other)))}: will be removed. {_LATER.format(' and '.join(playbooks))}"


@command.verb("set", "statecfg service set db title=Blog size=3\nstatecfg service set db title=")
@click.argument("service", shell_complete=options.offer_services)
@click.argument("values", nargs=-1, required=True, metavar="KEY=VALUE…")
def set_values(opened: ServiceStore, service: str, values: Sequence[str]) -> str:
    """Change settings of a service. They override the playbook; `KEY=` returns to the playbook's value."""
    from statecfg.cli import service_store
    from statecfg.store import services

    row = opened.service(service)
    changed, reset = service_store.settings(row, values)
    services.set_settings(opened.store, opened.name, service, changed, reset)
    return f"{service}: {', '.join([*changed, *reset])} set. {_LATER.format(opened.file(row))}"


@command.verb("get", "statecfg service get db\nstatecfg service get db title --json", JSON, COLOR)
@click.argument("service", shell_complete=options.offer_services)
@click.argument("key", required=False)
def get(opened: ServiceStore, service: str, key: str | None) -> VerbResult:
    """Show all settings of a service, or one of them, as its units see them. Secrets are masked."""
    from statecfg.store import services

    row = opened.service(service)
    values = view.config(row, services.get_settings(opened.store, opened.name, service))
    if key is None:
        return VerbResult(view.settings_lines(values), {"format": 1, "settings": values})
    if key not in values:
        help = suggest(key, values, "it has") or "it has no options"
        raise InvalidInput([problem("SC0708", f"the service `{service}` has no option `{key}`", help)])
    value = values[key]
    text = value if isinstance(value, str) else "" if value is None else value_text(value)
    lines = [printing.line(part) for part in text.split("\n")]
    return VerbResult(lines, {"format": 1, "settings": {key: value}})


@command.command("resolved", examples="statecfg service resolved db/0\nstatecfg service resolved db/0 --retry -b -K")
@click.argument("unit", shell_complete=options.offer_units)
@click.option("--retry", is_flag=True, help="Run the failed hooks again now.")
@options.conversation
@options.output
@click.pass_obj
def resolved(store: str | None, /, unit: str, retry: bool, **values: Any) -> int:
    """Resolve the failed hooks of a unit after you fixed the cause.

    Without --retry, the failed hooks count as done, and their changes of settings are lost. With --retry, they run
    again.
    """
    how: ConnectionOptions = take(ConnectionOptions, values)
    output = with_file(take(OutputOptions, values))
    from statecfg.store import services

    with ServiceStore(store) as opened:
        row = opened.service(opened.unit(unit).service)
        hooks = services.resolve(opened.store, opened.name, unit, retry)
        playbook = opened.playbook(row)
    if hooks and retry:
        from statecfg.cli import service_runs

        return service_runs.retry(playbook, how, output, store)
    count = "counts" if len(hooks) == 1 else "count"
    later = _LATER.format(opened.file(row))
    text = f"{', '.join(hooks)} {count} as done. {later}" if hooks else "none of its hooks has failed"
    lines = [printing.line(f"{unit}: {text}")]
    printing.write(lines, {"format": 1, "unit": unit, "hooks": hooks}, output.json, output.no_color)
    return exit_codes.DONE


@command.verb("log", "statecfg service log\nstatecfg service log db/0 --limit 20 --json", JSON, COLOR)
@click.argument("name", metavar="[SERVICE|UNIT]", required=False, shell_complete=options.offer_services_and_units)
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1, 10_000),
    default=100,
    help="Maximum number of lines to print. Default: 100.",
)
def log(opened: ServiceStore, name: str | None, limit: int) -> VerbResult:
    """Show the output of hooks: the newest lines, in the order in which they were written."""
    from statecfg.store import services

    about = {} if name is None else {"of_unit" if "/" in name else "of_service": name}
    entries = services.lines(opened.store, opened.name, limit=limit, **about)
    if name is not None and not entries:
        # Refuse unknown names. Removed services and units are opened, even if they have no lines.
        service, slash, number = name.partition("/")
        there = opened.service(service)
        if slash and not (number.isdecimal() and int(number) < there.next):
            opened.unit(name)
    return VerbResult(view.log_lines(entries), view.log_data(entries))
