"""Services, which run as units on hosts; their settings, and the relations between services."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from statecfg.playbook import plays, service_options
from statecfg.playbook.plays import Play
from statecfg.playbook.service import NOTHING, TIMEOUT, Endpoint, Relation, Service
from statecfg.playbook.service_options import ServiceOption
from statecfg.problems import durations, positions, problem, report
from statecfg.problems.frozen import dataclass
from statecfg.problems.positions import SourceLocation
from statecfg.remote.graph.wrong_values import show, type_words

__all__ = ["Endpoint", "Playbook", "Relation", "Service", "ServiceOption", "deploy", "relate"]

# The rule of juju: a part without a letter would look like the number of a unit.
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]*[a-z][a-z0-9]*)*\Z")
RELATION = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*\Z")
MAX_NAME = 100  # characters; the name of a directory on the host contains the unit's name
OPTIONS = ("hosts", "charm", "schema", "settings", "timeout", "playbook", "vars", "prune", "name")


@dataclass(frozen=True)
class Playbook:
    """The definitions of a playbook: its plays, including services, and the relations between services."""

    plays: Sequence[Play]
    relations: Sequence[Relation] = ()


def deploy(
    *,
    hosts: str | Sequence[str],
    charm: str | os.PathLike[str] | None = None,
    schema: Mapping[str, Mapping[str, Any]] | None = None,
    settings: Mapping[str, Any] | None = None,
    timeout: str | None = None,
    playbook: str | os.PathLike[str] | None = None,
    vars: Mapping[str, Any] | None = None,
    prune: bool = False,
    name: str | None = None,
) -> Callable[[Callable[..., Any]], Play]:
    """Turn a function into a service: `@deploy(hosts="db1", charm="../charms/db")`.

    The function is the function of a play: it takes the host (`HostContext`) or no argument, and returns the graph
    that is applied to the hosts of the units before hooks run, or None.

    :param hosts: a host pattern, or a list of them; each host has one unit
    :param charm: directory with the hooks, relative to the playbook
    :param schema: option → type (string, int, float, boolean or secret), default and description
    :param settings: option → value
    :param timeout: time limit of each hook, as an ISO 8601 duration; default: ten minutes
    :param playbook: another playbook, relative to this one, whose graphs are added for the hosts
    :param vars: variables, as in a play
    :param prune: every apply removes orphans
    :param name: the service's name; default: the name of the function
    """
    location = positions.of_frame(sys._getframe(1))
    define = plays.defining(hosts, vars, name, prune)
    parts = {"charm": charm, "schema": schema, "settings": settings, "timeout": timeout, "playbook": playbook}

    def make(function: Callable[..., Any]) -> Play:
        play_ = define(function)
        service = declared(play_.name, play_.hosts, parts, os.path.dirname(play_.file), location)
        return plays.add_definition(replace(play_, service=service))

    return make


def relate(*ends: str) -> Relation | None:
    """Relate two services, `relate("web:db", "db:db")`, or the units of one service, `relate("db:cluster")`.

    :param ends: one or two endpoints, each with a service and its name for the relation
    :returns: the relation; None if an endpoint is invalid, which is reported
    """
    relation = related(ends, positions.of_frame(sys._getframe(1)))
    return None if relation is None else plays.add_definition(relation)


def declared(
    name: str,
    hosts: str,
    parts: Mapping[str, Any],
    directory: str,
    position: SourceLocation,
    locations: Mapping[str, SourceLocation] = NOTHING,
) -> Service:
    """Return a service that a dialect read, and report its problems.

    :param parts: `charm`, `schema`, `settings`, `timeout` and `playbook`; None for a missing part
    :param directory: the directory to which paths are relative
    :param locations: the source locations of the parts, as in `Service`
    """
    empty = Service(name, hosts, position=position, locations=locations)
    if not NAME.match(name) or len(name) > MAX_NAME:
        rule = (
            f"use at most {MAX_NAME} lower-case letters, digits and -; start with a letter; no number after the last -"
        )
        report(problem("SC0701", f"`{name[:MAX_NAME]}` is not a valid service name", rule, position))
    service = replace(
        empty,
        charm=_path(parts.get("charm"), "charm", directory, empty),
        playbook=_path(parts.get("playbook"), "playbook", directory, empty),
        timeout=_timeout(parts.get("timeout"), empty),
        settings=_map(parts.get("settings"), "settings", empty),
    )
    schema = service_options.read(
        _map(parts.get("schema"), "schema", empty), lambda key: empty.location_of(f"schema.{key}")
    )
    return replace(service, schema=MappingProxyType(schema))


def related(ends: Sequence[Any], position: SourceLocation) -> Relation | None:
    """Return the relation between endpoints such as `web:db`; None if an endpoint is invalid, which is reported."""
    endpoints = []
    for text in ends:
        service, _, relation = text.partition(":") if isinstance(text, str) else ("", "", "")
        if NAME.match(service) and RELATION.match(relation):
            endpoints.append(Endpoint(service, relation))
        else:
            hint = "write SERVICE:RELATION, such as web:db"
            report(problem("SC0711", f"{show(text)} is not an end of a relation", hint, position))
    if not 1 <= len(ends) <= 2:
        hint = "write two ends, or one end of a service whose units are peers"
        report(problem("SC0711", f"a relation has {len(ends)} ends", hint, position))
    elif len(endpoints) == len(ends):
        return Relation(tuple(dict.fromkeys(endpoints)), position)
    return None


def of_file(path: str, definitions: Sequence[Any]) -> Playbook:
    """Return the definitions of a file itself. Report and raise like `plays.of_file`.

    :param definitions: everything that was defined while the file was loaded
    """
    relations = [item for item in definitions if isinstance(item, Relation) and item.position.file == path]
    return Playbook(plays.of_file(path, definitions), relations)


def _path(value: Any, part: str, directory: str, service: Service) -> Path | None:
    if value is None:
        return None
    if not isinstance(value, str | os.PathLike) or not os.fspath(value) or "\0" in str(value):
        detail = f"`{part}` of {service.name} is {type_words(value)}: {show(value)}"
        report(problem("SC0716", detail, "write a path, relative to the playbook", service.location_of(part)))
        return None
    return Path(os.path.abspath(os.path.join(directory, os.path.expanduser(value))))


def _timeout(value: Any, service: Service) -> float:
    if value is None:
        return TIMEOUT
    detail = f"`timeout` of {service.name} is {type_words(value)}: {show(value)}"
    if isinstance(value, str):
        try:
            return durations.deadline(value)
        except ValueError as error:
            detail = f"timeout: {error}"
    report(problem("SC0605", detail, durations.HELP, service.location_of("timeout")))
    return TIMEOUT


def _map(value: Any, part: str, service: Service) -> Mapping[str, Any]:
    if value is None:
        return NOTHING
    if not isinstance(value, Mapping):
        detail = f"`{part}` of {service.name} is {type_words(value)}: {show(value)}"
        report(problem("SC0716", detail, f"write a map: {part}: {{title: …}}", service.location_of(part)))
        return NOTHING
    return MappingProxyType({str(getattr(key, "name", key)): value for key, value in value.items()})
