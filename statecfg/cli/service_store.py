"""The open store and the project here, as the verbs of `statecfg service` use them; and what is checked of words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statecfg.playbook.project import Project
    from statecfg.store.database import Store
    from statecfg.store.service_changes import Shown
    from statecfg.store.units.records import End, ServiceRow, UnitRow


class ServiceStore:
    """The open store, and the services of the project here as they are at first."""

    def __init__(self, url: str | None) -> None:
        from statecfg.playbook import project

        self.project: Project = project.find(Path.cwd())
        self.name = self.project.name
        self._url = url

    def __enter__(self) -> ServiceStore:
        from statecfg.store import opened, services

        self.store: Store = opened(self.project, self._url)
        try:
            self.shown: Shown = services.show(self.store, self.name)
        except BaseException:
            self.store.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    def service(self, name: str) -> ServiceRow:
        """Return a service. Raises InvalidInput where there is none."""
        from statecfg.problems import InvalidInput

        found = self.shown.services.get(name)
        if found is None:
            raise InvalidInput([self._no_service(name)])
        return found

    def unit(self, name: str) -> UnitRow:
        """Return a unit by its name SERVICE/NUMBER. Raises InvalidInput where there is none."""
        from statecfg.problems import InvalidInput, problem, suggest

        found = self.shown.units.get(name)
        if found is None:
            help = suggest(name, self.shown.units, "there are") or "`statecfg service list` shows all"
            raise InvalidInput([problem("SC0752", f"there is no unit `{name}`", help)])
        return found

    def playbook(self, service: ServiceRow) -> Path:
        """Return the file that declares a service."""
        return self.project.root / self.file(service)

    def file(self, service: ServiceRow) -> str:
        """Return that file as it is called in the project's directory."""
        return service.playbook.removeprefix(f"{self.name}/")

    def ends(self, texts: Sequence[str]) -> list[End]:
        """Return the ends of a relation, written `web:db`. Raises InvalidInput, with all that is wrong with them."""
        from statecfg.playbook.services import RELATION
        from statecfg.problems import InvalidInput, problem

        wrong, ends = [], []
        for text in texts:
            name, colon, relation = text.partition(":")
            if not colon or not RELATION.fullmatch(relation):
                wrong.append(
                    problem("SC0711", f"`{text}` is no end of a relation", "write SERVICE:RELATION, as web:db")
                )
            elif name not in self.shown.services:
                wrong.append(self._no_service(name))
            ends.append((name, relation))
        if not wrong and len(ends) == 2 and ends[0][0] == ends[1][0]:
            detail = f"`{texts[0]}` and `{texts[1]}` are of the same service"
            wrong.append(problem("SC0711", detail, f"its units are peers of each other by one end: {texts[0]}"))
        if wrong:
            raise InvalidInput(wrong)
        return ends

    def fit(self, ends: Sequence[End]) -> None:
        """Check ends of a relation that is to be, as those that a playbook declares. Raises InvalidInput."""
        from dataclasses import replace

        from statecfg.playbook.services import Endpoint, Relation
        from statecfg.problems import InvalidInput, collecting
        from statecfg.run import declared

        known = {name: each.endpoints for name, each in self.shown.services.items()}
        with collecting() as found:
            declared.check(Relation(tuple(Endpoint(*end) for end in ends)), known)
        if found:
            raise InvalidInput([replace(each, places=()) for each in found])

    def _no_service(self, name: str) -> Any:
        from statecfg.problems import problem, suggest

        help = suggest(name, self.shown.services, "there are") or "an apply of a playbook with services makes them"
        return problem("SC0750", f"there is no service `{name}`", help)

    def no_relation(self, ends: Sequence[End]) -> Exception:
        """Return what says that there is no relation with these ends."""
        from statecfg.problems import InvalidInput, problem, suggest

        there = [" ".join(f"{name}:{called}" for name, called in each.ends) for each in self.shown.relations]
        asked = " ".join(f"{name}:{called}" for name, called in sorted(ends))
        help = suggest(asked, there, "there are") or "`statecfg service list` shows all"
        return InvalidInput([problem("SC0753", f"there is no relation `{asked}`", help)])


def settings(service: ServiceRow, texts: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Return what KEY=VALUE words set: option → value, and the options to reset.

    :raises InvalidInput: with all that is wrong with them
    """
    from statecfg.problems import InvalidInput, problem, suggest

    values: dict[str, Any] = {}
    reset, wrong = [], []
    for text in texts:
        key, equals, value = text.partition("=")
        if key not in service.schema:
            help = suggest(key, sorted(service.schema), "it has") or "it has no options"
            wrong.append(problem("SC0708", f"the service `{service.name}` has no option `{key}`", help))
        elif not equals:
            wrong.append(problem("SC0709", f"`{text}` gives no value", f"write {key}=VALUE, or {key}= to reset it"))
        elif not value:
            reset.append(key)
        else:
            try:
                values[key] = _value(key, service.schema[key], value)
            except ValueError as error:
                wrong.append(problem("SC0709", f"option `{key}` can't be `{value}`", str(error)))
    if wrong:
        raise InvalidInput(wrong)
    return values, reset


def _value(key: str, entry: Mapping[str, Any], text: str) -> Any:
    """Return the value that a word stands for, by the type of its option. Raises ValueError, which says what to write.

    A secret is refused: words are seen by others, and the store would keep it.
    """
    from statecfg.playbook.service_options import Option

    option = Option(key, entry["type"])
    if option.type == "secret":
        raise ValueError("a secret is set in the playbook, from !secret or secret(…)")
    reads: Mapping[str, Any] = {"int": int, "float": float, "boolean": {"true": True, "false": False}.get}
    # What the command line could not decode is no text that a hook could read.
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    try:
        value = reads.get(option.type, str)(text)
    except ValueError:
        value = None
    return option.check(value)
