"""Services: what runs as units on hosts, with settings that have a schema, and the relations between services."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from statecfg.playbook import plays, service_options
from statecfg.playbook.plays import Play
from statecfg.playbook.service_options import Option
from statecfg.problems import durations, positions, problem, report
from statecfg.problems.positions import SourceLocation
from statecfg.remote.graph.values import kind_of, show

__all__ = ["Endpoint", "Option", "Playbook", "Relation", "Service", "deploy", "relate"]

TIMEOUT = 600.0  # seconds that a hook of a charm may take where the service says nothing
# As juju has them: a part without a letter would look like the number of a unit.
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]*[a-z][a-z0-9]*)*\Z")
RELATION = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*\Z")
MAX_NAME = 100  # characters; a unit's name is part of the name of a directory on its host
OPTIONS = ("hosts", "charm", "schema", "settings", "timeout", "playbook", "vars", "prune", "name")
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Service:
    """A service of a playbook, which has a unit on each of its hosts.

    :param name: letters, digits and `-`, as juju has them
    :param hosts: pattern of the hosts
    :param charm: absolute path of the directory with the hooks; None for a service that has none
    :param schema: its options by name: what the declaration gives; with the charm's own in `ServiceWork`
    :param settings: values by the name of an option; may hold templates until they are settled (`settled`)
    :param timeout: seconds that each hook may take
    :param playbook: absolute path of another playbook, whose plays' graphs its hosts get; None for none
    :param position: where it is declared
    :param places: where its parts are: `charm`, `playbook`, `settings.NAME`, `schema.NAME`
    """

    name: str
    hosts: str
    charm: Path | None = None
    schema: Mapping[str, Option] = field(default_factory=lambda: NOTHING)
    settings: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    timeout: float = TIMEOUT
    playbook: Path | None = None
    position: SourceLocation = positions.NOWHERE
    places: Mapping[str, SourceLocation] = field(default_factory=lambda: NOTHING)

    def place(self, part: str) -> SourceLocation:
        """Return where a part of it is written; where it is itself for one whose place is not known."""
        return self.places.get(part, self.position)


@dataclass(frozen=True, order=True)
class Endpoint:
    """One end of a relation: a service, and what the relation is called there; written `web:db`."""

    service: str
    relation: str

    def __str__(self) -> str:
        return f"{self.service}:{self.relation}"


@dataclass(frozen=True)
class Relation:
    """A relation.

    :param ends: two endpoints, of two services, or the one of a service whose units are peers
    :param position: where it is declared
    """

    ends: tuple[Endpoint, ...]
    position: SourceLocation = positions.NOWHERE

    def __str__(self) -> str:
        return " – ".join(map(str, self.ends))


@dataclass(frozen=True)
class Playbook:
    """What a playbook defines: its plays, services among them, and the relations of the services."""

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
    """Make a function a service: `@deploy(hosts="db1", charm="../charms/db")`.

    The function is one of a play: it takes the host (`HostContext`), or nothing, and returns the graph that the hosts
    of the units get before hooks run, or None.

    :param hosts: pattern, or several; each host has one unit
    :param charm: directory with the hooks, relative to the playbook
    :param schema: the options: name to type (string, int, float, boolean or secret), default and description
    :param settings: values of options
    :param timeout: what each hook may take, as ISO 8601 has it; ten minutes where not given
    :param playbook: another playbook, relative to this one, whose plays' graphs the hosts get as well
    :param vars: variables, as of a play
    :param prune: every apply removes what left the definition
    :param name: the service's name; the function's where not given
    """
    place = positions.of_frame(sys._getframe(1))
    define = plays.defining(hosts, vars, name, prune)
    given = {"charm": charm, "schema": schema, "settings": settings, "timeout": timeout, "playbook": playbook}

    def make(function: Callable[..., Any]) -> Play:
        made = define(function)
        service = declared(made.name, made.hosts, given, os.path.dirname(made.file), place)
        return plays.gathered(replace(made, service=service))

    return make


def relate(*ends: str) -> Relation | None:
    """Relate two services: `relate("web:db", "db:db")`; or the units of one: `relate("db:cluster")`.

    :param ends: one endpoint or two, each a service and what it calls the relation
    :returns: the relation; None for none, which was reported
    """
    made = related(ends, positions.of_frame(sys._getframe(1)))
    return None if made is None else plays.gathered(made)


def declared(
    name: str,
    hosts: str,
    given: Mapping[str, Any],
    directory: str,
    position: SourceLocation,
    places: Mapping[str, SourceLocation] = NOTHING,
) -> Service:
    """Return a service as a dialect gives it; report what is wrong with it.

    :param given: its parts: `charm`, `schema`, `settings`, `timeout`, `playbook`; None for one that is not there
    :param directory: what paths are relative to
    :param places: of the parts, as in `Service`
    """
    empty = Service(name, hosts, position=position, places=places)
    if not NAME.match(name) or len(name) > MAX_NAME:
        rule = f"at most {MAX_NAME} small letters, digits and -, a letter first, and no number after the last -"
        report(problem("SC0701", f"a service is called `{name[:MAX_NAME]}`", rule, position))
    made = replace(
        empty,
        charm=_path(given.get("charm"), "charm", directory, empty),
        playbook=_path(given.get("playbook"), "playbook", directory, empty),
        timeout=_timeout(given.get("timeout"), empty),
        settings=_map(given.get("settings"), "settings", empty),
    )
    schema = service_options.read(_map(given.get("schema"), "schema", empty), lambda key: empty.place(f"schema.{key}"))
    return replace(made, schema=MappingProxyType(schema))


def related(ends: Sequence[Any], position: SourceLocation) -> Relation | None:
    """Return a relation between what texts such as `web:db` name; None for none, which is reported."""
    found = []
    for text in ends:
        service, _, relation = text.partition(":") if isinstance(text, str) else ("", "", "")
        if NAME.match(service) and RELATION.match(relation):
            found.append(Endpoint(service, relation))
        else:
            hint = "write SERVICE:RELATION, such as web:db"
            report(problem("SC0711", f"{show(text)} is no end of a relation", hint, position))
    if not 1 <= len(ends) <= 2:
        hint = "write two, or the one of a service whose units are peers"
        report(problem("SC0711", f"a relation has {len(ends)} ends", hint, position))
    elif len(found) == len(ends):
        return Relation(tuple(dict.fromkeys(found)), position)
    return None


def of_file(path: str, found: Sequence[Any]) -> Playbook:
    """Return what stands in the file itself, of all that was defined. Reports and raises as `plays.of_file` does."""
    relations = [each for each in found if isinstance(each, Relation) and each.position.file == path]
    return Playbook(plays.of_file(path, found), relations)


def _path(given: Any, part: str, directory: str, service: Service) -> Path | None:
    if given is None:
        return None
    if not isinstance(given, str | os.PathLike) or not os.fspath(given) or "\0" in str(given):
        detail = f"`{part}` of {service.name} is {kind_of(given)}: {show(given)}"
        report(problem("SC0716", detail, "write a path, relative to the playbook", service.place(part)))
        return None
    return Path(os.path.abspath(os.path.join(directory, os.path.expanduser(given))))


def _timeout(given: Any, service: Service) -> float:
    if given is None:
        return TIMEOUT
    wrong = f"`timeout` of {service.name} is {kind_of(given)}: {show(given)}"
    if isinstance(given, str):
        try:
            return durations.deadline(given)
        except ValueError as error:
            wrong = f"timeout: {error}"
    report(problem("SC0605", wrong, durations.HELP, service.place("timeout")))
    return TIMEOUT


def _map(given: Any, part: str, service: Service) -> Mapping[str, Any]:
    if given is None:
        return NOTHING
    if not isinstance(given, Mapping):
        detail = f"`{part}` of {service.name} is {kind_of(given)}: {show(given)}"
        report(problem("SC0716", detail, f"write a map: {part}: {{title: …}}", service.place(part)))
        return NOTHING
    return MappingProxyType({str(getattr(key, "name", key)): value for key, value in given.items()})
