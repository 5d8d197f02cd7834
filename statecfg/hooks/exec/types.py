"""Types of exec hooks: directories `NAME.hook`, each with programs for events and a schema of the configuration."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statecfg.hooks.registration.model import EVENTS
from statecfg.playbook.trust import others_could_change, together
from statecfg.problems import InvalidInput, did_you_mean, problem, suggest
from statecfg.problems.frozen import dataclass
from statecfg.problems.positions import SourceLocation
from statecfg.remote.hooks import run as hook_run
from statecfg.remote.hooks.configuration import complete
from statecfg.remote.machine import process

if TYPE_CHECKING:
    from statecfg.playbook.project import Project

SUFFIX = ".hook"
SCHEMA = "configuration.yaml"
SHIPPED = Path(__file__).parents[1] / "shipped"
Schema = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class HookType:
    """A type of exec hooks.

    :param name: its directory's name without `.hook`
    :param folder: the directory, absolute
    :param schema: key of the configuration → description, default, required
    """

    name: str
    folder: Path
    schema: Schema

    def handler(self, event: str) -> str:
        """Return the path of the program for an event; "" if there is none."""
        return hook_run.handler(str(self.folder), event)

    def events(self) -> list[str]:
        """Return the events for which the directory has programs, sorted."""
        return sorted(path.name for path in self.folder.iterdir() if path.name in EVENTS and path.is_file())

    def doubtful(self, before: Sequence[str] = ()) -> list[str]:
        """Return why programs in the directory can't run, one text for each problem.

        :param before: directories before the plain PATH
        """
        reasons = []
        for path in sorted(path for path in self.folder.iterdir() if path.name != SCHEMA):
            if path.name in EVENTS and not path.is_file():
                reasons.append(f"{path} is not a file, so it can't be started")
            elif path.is_file():
                reasons += self._doubts(path, before)
        return reasons

    def _doubts(self, path: Path, before: Sequence[str]) -> list[str]:
        if path.name not in EVENTS:
            hint = did_you_mean(path.name, EVENTS)
            return [f"{path} is not named after an event: {hint}"] if hint else []
        if not hook_run.executable(str(path)):
            return [f"{path} is not executable, so it can't be started: chmod +x {path}"]
        why = hook_run.missing_interpreter(str(path)) or _unusable(path, before)
        return [f"{path} can't be started{why}"] if why else []

    def configured(self, configuration: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a hook's configuration with the defaults.

        :raises InvalidInput: all errors in the configuration
        """
        whole, problems = complete(self.schema, dict(configuration))
        if problems:
            unknown = [key for key in configuration if key not in self.schema]
            described = f"{self.folder / SCHEMA} describes it"
            hint = suggest(unknown[0], self.schema, "it has") if unknown else described
            raise InvalidInput([problem("SC0622", ", ".join(problems), hint)])
        return whole


@dataclass(frozen=True)
class HookTypes:
    """The available types.

    :param path: directories; the first one that has a type wins
    """

    path: tuple[Path, ...]

    def names(self) -> list[str]:
        """Return the names of all types, sorted."""
        return sorted({folder.name.removesuffix(SUFFIX) for parent in self.path for folder in _types_in(parent)})

    def find(self, name: str, before: Path | None = None) -> HookType:
        """Return a type.

        :param before: its directory when its hook was created; used if the type is not on the path
        :raises InvalidInput: the type does not exist, others could change it, or its configuration.yaml is wrong
        """
        for parent in self.path:
            folder = parent / f"{name}{SUFFIX}"
            if "/" not in name and folder.is_dir():
                return _read(name, folder)
        if before is not None and before.is_dir():
            return _read(name, before)
        detail = f"hook_type must be the name of an existing hook type, but is '{name}'"
        looked = f"looked for {name}{SUFFIX} in {', '.join(map(str, self.path)) or 'no directory'}"
        raise InvalidInput([problem("SC0620", detail, suggest(name, self.names(), "available") or looked)])


def of_project(project: Project) -> HookTypes:
    """Return the types of a project: those on its `hook_path`, or those in its `hooks/` and the shipped ones."""
    written = project.settings.hooks.hook_path
    if written is None:
        return HookTypes((project.root / "hooks", SHIPPED))
    parts = [Path(os.path.expanduser(part)) for part in written.split(":") if part]
    return HookTypes(tuple(project.root / part for part in parts))


def execution_path(project: Project) -> tuple[str, ...]:
    """Return the directories before the plain PATH of the programs of hooks."""
    written = project.settings.hooks.hook_execution_path or ""
    return tuple(str(project.root / os.path.expanduser(part)) for part in written.split(":") if part)


def _unusable(program: Path, before: Sequence[str]) -> str:
    """Return why a program cannot start although its interpreter exists; "" if no reason is known."""
    with program.open("rb") as stream:
        start = stream.read(256)
    if not start:
        return " (it is empty)"
    if not start.startswith(b"#!"):
        return ""
    # The kernel passes everything after the interpreter as one argument.
    interpreter, *rest = os.fsdecode(start[2:].split(b"\n")[0]).strip(" \t").split(maxsplit=1) or [""]
    if not os.access(interpreter, os.X_OK):
        return f" (its interpreter {interpreter} is not executable)"
    if os.path.basename(interpreter) != "env" or not rest or rest[0].startswith("-") or "=" in rest[0]:
        return ""
    if rest[0].endswith("\r"):
        return " (its lines end in CR LF, and must end in LF)"
    program_path = shutil.which(rest[0], path=os.pathsep.join([*before, process.PATH]))
    return "" if program_path else f" (env finds no program `{rest[0]}` in PATH)"


def _types_in(parent: Path) -> Iterator[Path]:
    if parent.is_dir():
        yield from (path for path in parent.iterdir() if path.name.endswith(SUFFIX) and path.is_dir())


def _read(name: str, folder: Path) -> HookType:
    whole = Path(os.path.abspath(folder))
    paths = [whole.parent, whole, *(path for path in whole.iterdir() if path.is_file())]
    changeable = [problem for path in paths if (problem := others_could_change(path)) is not None]
    if changeable:
        raise InvalidInput([together(changeable)])
    file = whole / SCHEMA
    return HookType(name, whole, _schema(file) if file.exists() else {})


def _schema(file: Path) -> Schema:
    """Return the keys that a configuration.yaml describes.

    :raises InvalidInput: the file is wrong
    """
    from statecfg.dialects import yaml_text

    content = yaml_text.foreign(file)
    location = SourceLocation(str(file), 1)
    example = 'write: count: {description: "how many", default: 0}'
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise InvalidInput([problem("SC0621", "it is not a map of the configuration's keys", example, location)])
    problems = [
        problem("SC0621", f"the value of `{key}` is not a map", example, location)
        for key, described in content.items()
        if not isinstance(described, dict | None)
    ]
    if problems:
        raise InvalidInput(problems)
    try:
        # Through JSON: dates and keys that are not strings become strings, as in the original.
        text = json.dumps({str(key): described or {} for key, described in content.items()}, default=str)
    except (ValueError, RecursionError):
        detail = "a value contains itself or is nested too deeply"
        raise InvalidInput([problem("SC0621", detail, example, location)]) from None
    schema: Schema = json.loads(text)
    return schema
