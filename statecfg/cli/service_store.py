"""The store and the project for the commands of `statecfg service`, and checks of their arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statecfg.cli.project_store import ProjectStore
from statecfg.problems import InvalidInput, collecting, problem, suggest

if TYPE_CHECKING:
    from statecfg.store.service_changes import ServicesSnapshot
    from statecfg.store.units.records import End, ServiceRow, UnitRow


class ServiceStore(ProjectStore):
    """While entered, the open store and the services of the current project, as read on entry."""

    def _read(self) -> None:
        from statecfg.store import services

        self.name = self.project.name
        self.snapshot: ServicesSnapshot = services.show(self.store, self.name)

    def service(self, name: str) -> ServiceRow:
        """Return a service.

        :raises InvalidInput: there is no such service
        """
        row = self.snapshot.services.get(name)
        if row is None:
            raise InvalidInput([self._no_service(name)])
        return row

    def unit(self, name: str) -> UnitRow:
        """Return a unit by its name SERVICE/NUMBER.

        :raises InvalidInput: there is no such unit
        """
        row = self.snapshot.units.get(name)
        if row is None:
            help = suggest(name, self.snapshot.units, "available") or "`statecfg service list` shows all"
            raise InvalidInput([problem("SC0752", f"unit `{name}` does not exist", help)])
        return row

    def playbook(self, service: ServiceRow) -> Path:
        """Return the path of the playbook that declares a service."""
        return self.project.root / self.file(service)

    def file(self, service: ServiceRow) -> str:
        """Return the path of that playbook, relative to the project."""
        return service.playbook.removeprefix(f"{self.name}/")

    def ends(self, texts: Sequence[str]) -> list[End]:
        """Parse the ends of a relation, written as `web:db`.

        :raises InvalidInput: with all mistakes
        """
        from statecfg.playbook.services import RELATION

        wrong, ends = [], []
        for text in texts:
            name, colon, relation = text.partition(":")
            if not colon or not RELATION.fullmatch(relation):
                wrong.append(
                    problem("SC0711", f"`{text}` is not an end of a relation", "write SERVICE:RELATION, such as web:db")
                )
            elif name not in self.snapshot.services:
                wrong.append(self._no_service(name))
            ends.append((name, relation))
        if not wrong and len(ends) == 2 and ends[0][0] == ends[1][0]:
            detail = f"`{texts[0]}` and `{texts[1]}` belong to the same service"
            wrong.append(problem("SC0711", detail, f"to make its units peers of each other, write one end: {texts[0]}"))
        if wrong:
            raise InvalidInput(wrong)
        return ends

    def fit(self, ends: Sequence[End]) -> None:
        """Check that two services can be related at these ends, by the rules for playbooks.

        :param ends: one end for peers, or two
        :raises InvalidInput: the ends don't fit
        """
        from statecfg.playbook.services import Endpoint, Relation
        from statecfg.run import declared

        endpoints = {name: service.charm.endpoints for name, service in self.snapshot.services.items()}
        with collecting() as problems:
            declared.check(Relation(tuple(Endpoint(*end) for end in ends)), endpoints)
        if problems:
            raise InvalidInput([replace(problem, locations=()) for problem in problems])

    def _no_service(self, name: str) -> Any:
        help = suggest(name, self.snapshot.services, "available") or "apply a playbook that declares services"
        return problem("SC0750", f"service `{name}` does not exist", help)

    def no_relation(self, ends: Sequence[End]) -> Exception:
        """Return the error for ends that have no relation."""
        there = [" ".join(f"{name}:{called}" for name, called in relation.ends) for relation in self.snapshot.relations]
        wanted = " ".join(f"{name}:{called}" for name, called in sorted(ends))
        help = suggest(wanted, there, "available") or "`statecfg service list` shows all"
        return InvalidInput([problem("SC0753", f"relation `{wanted}` does not exist", help)])


def settings(service: ServiceRow, texts: Sequence[str]) -> tuple[Mapping[str, Any], list[str]]:
    """Parse KEY=VALUE arguments of a service's options.

    :returns: option → value, and the options to reset (`KEY=`)
    :raises InvalidInput: with all mistakes
    """
    values: dict[str, Any] = {}
    reset, wrong = [], []
    for text in texts:
        key, equals, value = text.partition("=")
        if key not in service.charm.schema:
            help = suggest(key, sorted(service.charm.schema), "it has") or "it has no options"
            wrong.append(problem("SC0708", f"the service `{service.name}` has no option `{key}`", help))
        elif not equals:
            wrong.append(problem("SC0709", f"`{text}` gives no value", f"write {key}=VALUE, or {key}= to reset it"))
        elif not value:
            reset.append(key)
        else:
            try:
                values[key] = _value(key, service.charm.schema[key], value)
            except ValueError as error:
                wrong.append(problem("SC0709", f"option `{key}` can't be `{value}`", str(error)))
    if wrong:
        raise InvalidInput(wrong)
    return values, reset


def _value(key: str, entry: Mapping[str, Any], text: str) -> Any:
    """Convert an argument to the type of its option.

    Secrets are refused: other users can see arguments, and the store would contain the secret.

    :raises ValueError: the value is wrong; the text says what to write
    """
    from statecfg.playbook.service_options import ServiceOption

    option = ServiceOption(key, entry["type"])
    if option.type == "secret":
        raise ValueError("set secrets in the playbook, with !secret or secret(…)")
    reads: Mapping[str, Any] = {"int": int, "float": float, "boolean": {"true": True, "false": False}.get}
    # Replace bytes that are not UTF-8, because hooks can't read them.
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    try:
        value = reads.get(option.type, str)(text)
    except ValueError:
        value = None
    return option.check(value)
