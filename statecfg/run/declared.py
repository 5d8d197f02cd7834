"""Turns the services that a playbook declares into services that can be deployed, and checks their relations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any

from statecfg.graph import opaque
from statecfg.playbook.inventory import Inventory
from statecfg.playbook.plays import Play
from statecfg.playbook.secrets import Secret
from statecfg.playbook.service_options import ServiceOption
from statecfg.playbook.services import Endpoint, Relation, Service
from statecfg.problems import Problem, collecting, problem, report, reporting, suggest, tokens
from statecfg.problems.frozen import dataclass
from statecfg.problems.positions import SourceLocation
from statecfg.remote.graph.wrong_values import show
from statecfg.run import charms
from statecfg.run.charms import Charm

Ends = Mapping[str, Sequence[str]]  # relation → (provides, requires or peers; interface)
_FAILED = object()  # replaces a value that could not be evaluated; the error was reported
LARGEST = 65_000  # bytes of all settings as JSON: a hook reads them in one value of AMP, which holds 65,535


@dataclass(frozen=True)
class ServiceWork:
    """A service to deploy.

    :param service: the declared service, with the charm's options in its schema and with evaluated settings
    :param hosts: names of all hosts of its pattern in the inventory's order, regardless of the limit
    :param charm: None for a service without hooks
    """

    service: Service
    hosts: tuple[str, ...]
    charm: Charm | None = field(default=None, repr=False)

    @property
    def schema(self) -> Mapping[str, Any]:
        """Its options as JSON: name → type, default, description."""
        return {name: option.as_json() for name, option in self.service.schema.items()}

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings in the playbook, without secret ones."""
        return {name: value for name, value in self.service.settings.items() if not isinstance(value, Secret)}

    @property
    def secrets(self) -> dict[str, str]:
        """The values of the secret settings."""
        settings = self.service.settings.items()
        return {name: value.reveal() for name, value in settings if isinstance(value, Secret)}

    @property
    def hidden(self) -> dict[str, str]:
        """The values to mask: name of a secret → value."""
        return {value.name: value.reveal() for value in self.service.settings.values() if isinstance(value, Secret)}

    @property
    def timeout(self) -> float:
        """Time limit of each hook, in seconds."""
        return self.service.timeout


def services(plays: Iterable[Play], inventory: Inventory, extra: Mapping[str, Any]) -> list[ServiceWork]:
    """Return the services among plays; report problems with them.

    :param extra: variables that override those of the plays in the templates of settings
    """
    works = []
    for play in plays:
        if play.service is None:
            continue
        hosts: tuple[str, ...] = ()
        with reporting():
            hosts = tuple(host.name for host in inventory.select(play.hosts, None, play.position))
        with reporting():
            works.append(_work(play, play.service, hosts, extra))
    return works


def _work(play: Play, service: Service, hosts: tuple[str, ...], extra: Mapping[str, Any]) -> ServiceWork:
    charm = charms.read(service.charm, service.location_of("charm")) if service.charm is not None else None
    schema = {**(charm.options if charm is not None else {}), **service.schema}
    if charm is None and service.charm is not None:
        return ServiceWork(service, hosts)  # its options are unknown
    settings = dict(_settings(play, service, schema, extra))
    whole = {name: option.default for name, option in schema.items()} | settings
    size = len(json.dumps(whole, default=lambda value: "x" * len(value)))
    if size > LARGEST:
        detail = f"the settings of {service.name} have {size:,} bytes; the maximum is {LARGEST:,}"
        report(problem("SC0709", detail, "put large values into files", service.location_of("settings")))
    return ServiceWork(replace(service, schema=MappingProxyType(schema), settings=settings), hosts, charm)


def _settings(
    play: Play, service: Service, schema: Mapping[str, ServiceOption], extra: Mapping[str, Any]
) -> Iterator[tuple[str, Any]]:
    """Yield each setting with its value; report settings that are unknown or of the wrong type."""
    variables = _variables({**play.vars, **extra})
    for name, written in service.settings.items():
        location = service.location_of(f"settings.{name}")
        option = schema.get(name)
        if option is None:
            detail = f"{service.name} has no option `{name}`"
            hint = suggest(name, schema, "it has") or "the service has no options: declare them under `schema:`"
            report(problem("SC0708", detail, hint, location))
            continue
        value: Any = _FAILED
        with reporting():
            try:
                value = _with_secrets(_resolved(written, variables), option)
            except tokens.SecretError as error:
                report(problem(error.code, f"`{name}` of {service.name}: {error}", error.help, location))
        if value is _FAILED:
            continue
        if isinstance(value, Secret) != (option.type == "secret"):
            report(_misplaced(option, value, location))
            continue
        if isinstance(value, Secret):
            value.reveal()  # records that the run uses this secret
        try:
            checked = option.check(value)
        except ValueError as error:
            report(problem("SC0709", f"`{name}` of {service.name} is {show(value)}", str(error), location))
            continue
        yield name, checked


def _variables(definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the variables that don't depend on a host. Settings can use only these: a setting is for all units."""
    variables: dict[str, Any] = {}
    for name, value in definitions.items():
        with collecting() as problems, reporting():
            resolved = _resolved(value, variables)
        if not problems:
            variables[name] = resolved
    return variables


def _resolved(value: Any, variables: Mapping[str, Any]) -> Any:
    if not isinstance(value, str | dict | list):
        return value
    from statecfg import templates  # takes time to import

    return templates.resolve(value, variables)


def _with_secrets(value: Any, option: ServiceOption) -> Any:
    """Return a string that contains a secret as a secret with the option's name; return other values unchanged."""
    value = opaque.resolve_tokens(value)
    if isinstance(value, opaque.Value) and value.on_host:
        value._bare()  # raises SecretError: units get their settings from the controller
    return Secret(option.name, value.reveal(), value.available) if isinstance(value, opaque.Composed) else value


def _misplaced(option: ServiceOption, value: Any, location: SourceLocation) -> Problem:
    if isinstance(value, Secret):
        detail = f"option `{option.name}` is of type {option.type}, and its value is or contains a secret"
        return problem("SC0710", detail, "declare it in the schema: type: secret", location)
    detail = f"option `{option.name}` is a secret, and the playbook contains its value"
    return problem("SC0710", detail, "read it from the environment or a file: !secret {env: NAME}", location)


def relations(works: Sequence[ServiceWork], declared: Sequence[Relation]) -> list[Relation]:
    """Return the relations of a playbook and the peer relations of its charms; report invalid ones.

    :param works: the playbook's services; invalid ones may be missing
    :param declared: the declared relations
    """
    offered = {work.service.name: work.charm.related if work.charm is not None else {} for work in reversed(works)}
    first: dict[tuple[Endpoint, ...], Relation] = {}
    for relation in declared:
        with reporting():
            check(relation, offered)
            key = tuple(sorted(relation.ends))
            before = first.setdefault(key, relation)
            if before is not relation:
                report(problem("SC0715", str(relation), "keep one of them", relation.position, before.position))
    for work in works:
        # As in juju, a peer relation needs no declaration in the playbook.
        for name, (role, _) in (work.charm.endpoints if work.charm is not None else {}).items():
            end = Endpoint(work.service.name, name)
            if role == "peers":
                first.setdefault((end,), Relation((end,), work.service.position))
    return list(first.values())


def check(relation: Relation, offered: Mapping[str, Ends]) -> None:
    """Report a relation between services if it is invalid.

    :param offered: service → the relations that its charm offers (see `Charm.related`)
    """
    parts = [_part(end, relation, offered) for end in relation.ends]
    if len({end.service for end in relation.ends}) < len(relation.ends):
        hint = "write a peer relation with one end"
        report(problem("SC0711", f"both ends of {relation} belong to the same service", hint, relation.position))
        return
    wanted = ("peers",) if len(relation.ends) == 1 else ("provides", "requires")
    for end, part in zip(relation.ends, parts, strict=True):
        if part is not None and part[0] not in wanted:
            hint = f"write [{end}] alone" if part[0] == "peers" else "write two ends: one provides, the other requires"
            report(problem("SC0714", f"{end} is in `{part[0]}:` of its metadata.yaml", hint, relation.position))
            return
    if len(parts) == 2 and parts[0] is not None and parts[1] is not None:
        (one, that), (other, there) = parts[0], parts[1]
        if that != there:
            detail = f"{relation.ends[0]} has the interface {that}, {relation.ends[1]} has {there}"
            report(problem("SC0714", detail, "relate ends that have the same interface", relation.position))
        elif one == other:
            hint = "one of them must provide what the other requires"
            detail = f"{relation.ends[0]} and {relation.ends[1]} are both in `{one}:`"
            report(problem("SC0714", detail, hint, relation.position))


def _part(end: Endpoint, relation: Relation, offered: Mapping[str, Ends]) -> Sequence[str] | None:
    """Return the role of an end in its charm, and its interface; None if unknown or if a problem was reported."""
    ends = offered.get(end.service)
    if ends is None:
        hint = suggest(end.service, offered, "available")
        report(problem("SC0712", f"service {end.service} of {end} does not exist", hint, relation.position))
        return None
    role = ends.get(end.relation)
    if role is None and ends:
        hint = suggest(end.relation, [name for name in ends if name not in charms.IMPLICIT], "it has")
        report(problem("SC0713", f"the charm of {end.service} has no relation {end.relation}", hint, relation.position))
    return role
