"""The entity operations for the commands of `statecfg entity`, and helpers for their input and output."""

from __future__ import annotations

import getpass
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from statecfg.cli import exit_codes
from statecfg.cli.project_store import ProjectStore
from statecfg.cli.values import json_or_text
from statecfg.cli.verbs import VerbResult
from statecfg.entities import shapes
from statecfg.entities.model import ERROR, PROVIDER, ROLES, Entity, EntityType, Page, Principal, Query, Task
from statecfg.problems import InvalidInput, problem, suggest
from statecfg.problems.positions import SourceLocation
from statecfg.remote.wire.strict_json import loads
from statecfg.views import entities as view

VERSION = 39.0  # version of the API; --json writes its JSON
LONGEST = 86_400.0  # maximum time to wait for a task, in seconds
T = TypeVar("T")
Json = Mapping[str, Any]


class LocalEntityCalls(ProjectStore):
    """While entered, the open store and its entity operations, called as the local administrator.

    On exit, an ApiError becomes InvalidInput.

    :param url: the address of the store; None for the project's or the default store
    """

    def __init__(self, url: str | None) -> None:
        super().__init__(url)
        self.me = Principal(getpass.getuser(), PROVIDER, ROLES[0])

    def _read(self) -> None:
        from statecfg.entities.operations import Operations

        self.calls = Operations(self.store, project=self.project)

    def __exit__(self, error_type: object, error: BaseException | None, trace: object) -> None:
        from statecfg.entities.problems import ApiError

        super().__exit__(error_type, error, trace)
        if isinstance(error, ApiError):
            code = {403: "SC0802", 412: "SC0803"}.get(error.status, "SC0801")
            code = "SC0805" if error.minor_code == "RDE_INVALID_BEHAVIOR_EXECUTION" else code
            rights = "`statecfg entity access allow TYPE BEHAVIOR LEVEL` allows users to invoke it"
            hint = rights if "for invoking" in error.message else ""
            raise InvalidInput([problem(code, f"{error.message} ({error.minor_code})", hint)]) from None

    def all(self, ask: Callable[[Any, Query], Page[T]]) -> list[T]:
        """Return all values of a list, from all its pages.

        :param ask: an operation that takes the principal and a query
        """
        values: list[T] = []
        number = 1
        while True:
            page = ask(self.me, Query(page=number, page_size=128))
            values += page.values
            if number >= page.page_count:
                return values
            number += 1

    # Find objects by name

    def interface(self, word: str) -> str:
        """Return the id of an interface.

        :param word: its URN, `vendor/nss/version` or name
        :raises InvalidInput: none or several match
        """
        return _one("interface", word, self.all(self.calls.list_interfaces))

    def type(self, word: str) -> EntityType:
        """Return a type.

        :param word: its URN, `vendor/nss/version` or name
        :raises InvalidInput: none or several match
        """
        return self.calls.get_type(self.me, _one("type", word, self.all(self.calls.list_types)))

    def entity(self, word: str) -> Entity:
        """Return an entity.

        :param word: its URN, UUID or unique name
        :raises InvalidInput: none or several match
        """
        if word.startswith("urn:"):
            return self.calls.get_entity(self.me, word)
        quoted = re.sub(r"([;,()*\\])", r"\\\1", word)
        key = f"id==*{word}" if re.fullmatch(r"[0-9a-f-]{36}", word) else f"name=={quoted}"
        page = self.calls.list_entities(self.me, Query(filter=key, page_size=5))
        if page.total == 1:
            return page.values[0]
        if page.total:
            ids = ", ".join(entity.id for entity in page.values)
            raise _unknown(f"{page.total} entities have the name `{word}`", f"give the id of one: {ids}")
        names = [entity.name for entity in self.calls.list_entities(self.me, Query(page_size=128)).values]
        raise _unknown(f"entity `{word}` does not exist", _suggest(word, names))

    def behavior(self, word: str, candidates: Iterable[Any]) -> str:
        """Return the id of a behavior.

        :param word: its id, ref or name
        :param candidates: the behaviors to search
        :raises InvalidInput: none matches
        """
        behaviors = list(candidates)
        for behavior in behaviors:
            if word in (behavior.id, behavior.ref, behavior.name):
                return str(behavior.id)
        raise _unknown(f"behavior `{word}` does not exist", _suggest(word, [behavior.name for behavior in behaviors]))

    # Tasks

    def finish(self, task: Task, wait: bool) -> Task:
        """Wait until a task ends and return it. The task runs here unless a server runs it.

        :param wait: False returns the task immediately
        """
        from statecfg.entities.worker import Worker

        if not wait or task.is_finished:
            return task
        worker = Worker(self.calls, self.project)
        try:
            return worker.finish(task.id, LONGEST, self.me)
        finally:
            worker.stop()


def _one(what: str, word: str, candidates: Sequence[Any]) -> str:
    if word.startswith("urn:"):
        return word
    matches = [item for item in candidates if word in (item.name, str(item.coordinates))]
    if len(matches) == 1:
        return str(matches[0].id)
    if matches:
        full_names = ", ".join(str(item.coordinates) for item in matches)
        raise _unknown(f"{len(matches)} have the name `{word}`", f"write one of {full_names}")
    names = [name for item in candidates for name in (item.name, str(item.coordinates))]
    raise _unknown(f"{what} `{word}` does not exist", _suggest(word, names))


def _suggest(word: str, names: Iterable[str]) -> str:
    return suggest(word, dict.fromkeys(names), "available")


def _unknown(detail: str, hint: str) -> Exception:
    return InvalidInput([problem("SC0802", detail, hint)])


# Input


def read(name: str) -> dict[str, Any]:
    """Return the mapping in a JSON or YAML file.

    :param name: the path; `-` for stdin
    :raises InvalidInput: the file can't be read, or is not such a mapping
    """
    from statecfg.dialects import yaml_text, yaml_tree

    if name == "-":
        data = sys.stdin.buffer.read()
    else:
        try:
            data = Path(name).read_bytes()
        except OSError as error:
            raise InvalidInput([problem("SC0301", f"{name}: {error.strerror}", "check the file")]) from None
    label = "<stdin>" if name == "-" else name
    try:
        value = loads(data.decode("utf-8-sig"), unique=True)
    except (ValueError, RecursionError) as error:
        if name.endswith(".json"):
            position = SourceLocation(label, getattr(error, "lineno", 1))
            raise InvalidInput([problem("SC0804", f"invalid JSON: {error}", "", position)]) from None
        value = yaml_tree.plain(yaml_text.parse(data, label, "a mapping"))
    if not isinstance(value, dict):
        detail = "the content must be a mapping of keys to values"
        raise InvalidInput([problem("SC0804", detail, "", SourceLocation(label, 1))])
    return dict(value)


def content_from(file: str | None, pairs: Sequence[str], base: Mapping[str, Any] | None = None) -> Json:
    """Return the content that `--file` and `--set` define.

    :param file: the value of `--file`; None starts from `base`
    :param pairs: the values of `--set`, which override keys of the file or of `base`
    :raises InvalidInput: the file is wrong
    :raises click.BadParameter: a pair is wrong
    """
    content: dict[str, Any] = json.loads(json.dumps(dict(base or {}))) if file is None else read(file)
    for text in pairs:
        path, sign, value = text.partition("=")
        if not sign or not path:
            raise click.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--set")
        _put(content, path.split("."), json_or_text(value), text)
    return content


def _put(target: dict[str, Any], keys: Sequence[str], value: Any, text: str) -> None:
    for key in keys[:-1]:
        below = target.setdefault(key, {})
        if not isinstance(below, dict):
            raise click.BadParameter(f"{text!r}: {key} is not a mapping", param_hint="--set")
        target = below
    target[keys[-1]] = value


# Output


def ended(task: Task) -> VerbResult:
    """Return the output about a task. The exit code is 1 if it failed."""
    code = exit_codes.FAILED if task.status == ERROR else exit_codes.DONE
    return VerbResult(view.task_lines(task), shapes.task(task, VERSION), code)
