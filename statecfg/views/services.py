"""Services, their units, settings and relations, for people and programs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from statecfg.views import safe, states
from statecfg.views.changes import value_text
from statecfg.views.host_records import pairs, when
from statecfg.views.lines import BLANK, Line, Style, make
from statecfg.views.tally import plural

if TYPE_CHECKING:
    from statecfg.store.service_changes import ServicesSnapshot
    from statecfg.store.units.records import LogLine, RelationRow, ServiceRow, UnitRelation, UnitRow

MASK = "********"
# Parts of keys whose values are probably secret.
_HIDDEN = ("password", "passwd", "passphrase", "secret", "token", "key", "credential")
_LEVELS: Sequence[tuple[int, str, Style]] = (
    (50, "CRITICAL", "remove"),
    (40, "ERROR", "remove"),
    (30, "WARNING", "change"),
    (20, "INFO", ""),
    (0, "DEBUG", "dim"),
)
_HEADS = ("UNIT", "STATE", "HOST", "STATUS")


def masked(settings: Mapping[str, Any], reveal: bool = False) -> Mapping[str, Any]:
    """Return settings sorted by key, with the values masked whose keys look like those of secrets.

    :param reveal: whether to mask nothing
    """
    visible = {}
    for key, value in sorted(settings.items()):
        hidden = not reveal and any(part in key.lower() for part in _HIDDEN)
        visible[key] = MASK if hidden and value not in ("", None) else value
    return visible


def config(service: ServiceRow, settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return option → setting of a service, with secret settings masked.

    :param settings: the settings that its units see, without secret ones
    """
    return {option: settings.get(option, MASK) for option in sorted(service.charm.schema)}


def unit_data(unit: UnitRow) -> Mapping[str, Any]:
    """Return a unit as JSON data."""
    condition = unit.condition
    return {
        "id": unit.id,
        "name": unit.name,
        "service": unit.service,
        "number": unit.number,
        "host": unit.host,
        "state": condition.state,
        "dying": unit.dying,
        "why": condition.why,
        "relation_errors": condition.relation_errors,
        "leader": unit.leader,
        "addresses": unit.network.addresses,
        "ports": list(unit.network.ports),
        "status": unit.announced.status,
        "message": unit.announced.message,
        "since": condition.since,
        "charm": unit.origin.charm,
    }


def relation_data(relation: RelationRow) -> Mapping[str, Any]:
    """Return a relation as JSON data, with each end as `SERVICE:RELATION`."""
    return {**asdict(relation), "ends": _ends(relation), "unsettled": list(relation.unsettled)}


def _ends(relation: RelationRow) -> list[str]:
    return [f"{service}:{name}" for service, name in relation.ends]


def service_data(service: ServiceRow, snapshot: ServicesSnapshot) -> Mapping[str, Any]:
    """Return a service with its units and relations as JSON data, without its settings."""
    return {
        "name": service.name,
        "playbook": service.playbook,
        "alive": service.alive,
        "charm": service.charm.name,
        "timeout": service.timeout,
        "hosts": list(service.hosts),
        "without": service.without,
        "units": [unit_data(unit) for unit in snapshot.units.values() if unit.service == service.name],
        "relations": [relation_data(relation) for relation in _of(service, snapshot)],
    }


def _of(service: ServiceRow, snapshot: ServicesSnapshot) -> list[RelationRow]:
    return [relation for relation in snapshot.relations if service.name in [name for name, _ in relation.ends]]


def data(snapshot: ServicesSnapshot) -> Mapping[str, Any]:
    """Return all services as JSON data."""
    return {"format": 1, "services": [service_data(service, snapshot) for service in snapshot.services.values()]}


def table(snapshot: ServicesSnapshot) -> Iterator[Line]:
    """Yield a line for each unit, under its service, and one for each relation."""
    rows = {unit.name: _row(unit) for unit in snapshot.units.values()}
    widths = [max(len(row[column]) for row in [_HEADS, *rows.values()]) for column in range(3)]
    if rows:
        yield make(("  ".join(f"{head:<{width}}" for head, width in zip(_HEADS, [*widths, 0], strict=True)), "dim"))
    for service in snapshot.services.values():
        mine = [unit for unit in snapshot.units.values() if unit.service == service.name]
        ends = "" if service.alive else ", destroyed"
        yield make((service.name, "bold"), (f"  {service.playbook}{ends}" + ("" if mine else ", no units"), "dim"))
        for unit in mine:
            name, state, host, status = rows[unit.name]
            style: Style = "remove" if _wrong(unit) else ""
            yield make(
                f"{name:<{widths[0]}}  ", (f"{state:<{widths[1]}}", style), f"  {host:<{widths[2]}}  {status}".rstrip(),
                hang=sum(widths) + 6,
            )  # fmt: skip
    for relation in snapshot.relations:
        yield _relation(relation)
    units, relations = plural(len(rows), "unit"), plural(len(snapshot.relations), "relation")
    yield make((f"{plural(len(snapshot.services), 'service')}, {units}, {relations}", "dim"))


def _row(unit: UnitRow) -> tuple[str, str, str, str]:
    leads = "*" if unit.leader else ""
    return f"  {unit.name}{leads}", _state(unit), unit.host, _announced(unit)


def _announced(unit: UnitRow) -> str:
    return ": ".join(filter(None, (unit.announced.status, unit.announced.message)))


def _state(unit: UnitRow) -> str:
    failed = ["relation error"] if unit.condition.relation_errors else []
    return ", ".join([states.of_unit(unit.condition.state), *(["dying"] if unit.dying else []), *failed])


def _wrong(unit: UnitRow) -> bool:
    return unit.condition.state.endswith("_error") or bool(unit.condition.relation_errors)


def _relation(relation: RelationRow) -> Line:
    origin = f"by {relation.playbook}" if relation.playbook else "by hand"
    ends = ", ends" if relation.dying else ""
    peers = " (peers)" if len(relation.ends) == 1 else ""
    endless = f"  hooks kept triggering each other: {', '.join(relation.unsettled)}" if relation.unsettled else ""
    return make(f"{' – '.join(_ends(relation))}{peers}", (f"  {origin}{ends}", "dim"), (endless, "remove"))


def one_service(service: ServiceRow, snapshot: ServicesSnapshot, settings: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the details of a service.

    :param settings: the settings that its units see, without secret ones
    """
    mine = [unit for unit in snapshot.units.values() if unit.service == service.name]
    yield make(("── ", "dim"), (service.name, "bold"), right=service.playbook, rule=True)
    yield from _pairs(
        {
            "charm": service.charm.name or "none",
            "units": ", ".join(unit.name for unit in mine) or "none",
            "hosts": ", ".join(service.hosts) or "none",
            "removed manually": ", ".join([*service.without["hosts"], *service.without["relations"]]),
        }
    )
    options = config(service, settings)
    if options:
        yield BLANK
        yield make(("  settings", "dim"))
        by_hand = dict.fromkeys(service.overrides, "  (by hand)")
        yield from _pairs({option: value_text(value) + by_hand.get(option, "") for option, value in options.items()})
    relations = _of(service, snapshot)
    if relations:
        yield BLANK
        yield make(("  relations", "dim"))
        for relation in relations:
            line = _relation(relation)
            yield line._replace(spans=(("  ", ""), *line.spans))


def one_unit(unit: UnitRow, relations: Sequence[UnitRelation], settings: bool, reveal: bool) -> Iterator[Line]:
    """Yield the details of a unit.

    :param settings: whether to show its relation settings
    :param reveal: whether to show also values whose keys look like those of secrets
    """
    yield make(("── ", "dim"), (unit.name, "bold"), right=unit.host, rule=True)
    addresses = ", ".join(
        f"{name.partition('-')[0]} {address}" for name, address in sorted(unit.network.addresses.items())
    )
    yield from _pairs(
        {
            "state": f"{_state(unit)}, since {when(unit.condition.since)}",
            "error": unit.condition.why,
            "leader": "yes" if unit.leader else "no",
            "status": _announced(unit) or "none",
            "ports": ", ".join(unit.network.ports) or "none",
            "addresses": addresses or "not known yet",
        }
    )
    for relation in relations:
        yield BLANK
        members = ", ".join(relation.members) or "no units"
        yield make("  ", (relation.id, "bold"), f"  {members}" + (", ends" if relation.dying else ""), hang=4)
        for text in safe.block(relation.error) if relation.error else ():
            yield make("    ", (text, "remove"), hang=4)
        if settings:
            visible = masked(relation.settings, reveal)
            yield from _pairs({key: value_text(value) for key, value in visible.items()}, 4)


def unit_with_relations(
    unit: UnitRow, relations: Sequence[UnitRelation], settings: bool, reveal: bool
) -> Mapping[str, Any]:
    """Return a unit and its relations as JSON data; `settings` and `reveal` as in `one_unit`."""
    entries = []
    for relation in relations:
        entry = {"id": relation.id, "members": list(relation.members), "dying": relation.dying, "error": relation.error}
        entries.append({**entry, "settings": masked(relation.settings, reveal)} if settings else entry)
    return {"format": 1, **unit_data(unit), "relations": entries}


def _pairs(values: Mapping[str, str], indent: int = 2) -> Iterator[Line]:
    return pairs({key: text for key, text in values.items() if text}, indent)


def settings_lines(values: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the settings of a service, one to a line."""
    yield from _pairs({key: value_text(value) for key, value in values.items()}, 0)


def log_lines(entries: Iterable[LogLine]) -> Iterator[Line]:
    """Yield the log of hooks: time, unit, hook, level and text."""
    for entry in entries:
        level, style = next(((name, style) for least, name, style in _LEVELS if entry.level >= least), ("DEBUG", "dim"))
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.at))
        for text in safe.block(entry.text):
            about = f"{entry.unit} {entry.hook}".rstrip()
            yield make((at, "dim"), f"  {about}  ", (f"{level:<8}", style or "skip"), f"  {text}", hang=4)


def log_data(entries: Iterable[LogLine]) -> Mapping[str, Any]:
    """Return the log of hooks as JSON data."""
    return {"format": 1, "log": [asdict(entry) for entry in entries]}
