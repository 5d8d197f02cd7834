"""The project a playbook belongs to: its directory and its settings."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statecfg.problems import InvalidInput, Problem, inputs, problem, suggest
from statecfg.problems.positions import SourceLocation

if TYPE_CHECKING:
    pass

SETTINGS_FILE = "statecfg.toml"
INVENTORY_FILE = "inventory.yml"
LARGEST = 1 << 20

# Each setting, its type and what it may be in words.
_KINDS: dict[str, tuple[type, str]] = {
    "name": (str, "a name"),
    "inventory": (str, "the path of a file"),
    "forks": (int, "a number from 1 to 1000"),
    "become": (bool, "true or false"),
    "become_user": (str, "the name of a user"),
    "ssh_config": (str, "the path of a file"),
    "accept_new_host_keys": (bool, "true or false"),
    "keep_going": (bool, "true or false"),
    "lock_timeout": (float, "a number of seconds, 0 or more"),
    "store": (str, "the path of a file, or a URL"),
    "hook_path": (str, "directories of hook types, joined by colons"),
    "hook_execution_path": (str, "directories of programs, joined by colons"),
    "store_hook_input": (bool, "true or false"),
    "store_hook_output": (bool, "true or false"),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What `statecfg.toml` says; None where it says nothing. A flag of the command line wins over it.

    :param name: what the project is called in the ledgers of hosts; the name of its directory where not given
    :param inventory: path of the inventory, relative to the project
    :param forks: how many hosts at once, 1 to 1000
    :param become: whether to act as another user
    :param become_user: as which one
    :param ssh_config: path of the ssh configuration
    :param accept_new_host_keys: whether to accept and remember the key of a host never seen before
    :param keep_going: whether to go on with what does not depend on a failed resource
    :param lock_timeout: how many seconds to wait for another run to end
    :param store: where the store is: a path relative to the project, or a URL
    :param hook_path: where hook types are looked for, joined by colons, relative to the project
    :param hook_execution_path: what comes before the plain PATH of hooks' programs, joined by colons
    :param store_hook_input: whether the log of hooks keeps what their programs read
    :param store_hook_output: whether it keeps what they wrote
    """

    name: str | None = None
    inventory: str | None = None
    forks: int | None = None
    become: bool | None = None
    become_user: str | None = None
    ssh_config: str | None = None
    accept_new_host_keys: bool | None = None
    keep_going: bool | None = None
    lock_timeout: float | None = None
    store: str | None = field(default=None, repr=False)
    hook_path: str | None = None
    hook_execution_path: str | None = None
    store_hook_input: bool | None = None
    store_hook_output: bool | None = None


@dataclass(frozen=True, slots=True)
class Project:
    """Where a project is, and its settings.

    :param root: the directory that has `resources/`, `templates/`, `files/` and `playbooks/`
    :param settings: what `statecfg.toml` says
    """

    root: Path
    settings: Settings = field(default_factory=Settings)

    @property
    def name(self) -> str:
        """What hosts and the store call the project: the name in the settings, or that of its directory."""
        return self.settings.name or self.root.name

    @property
    def inventory_file(self) -> Path | None:
        """The inventory: the one that the settings name, or `inventory.yml`; None where there is none."""
        if self.settings.inventory is not None:
            return self.root / os.path.expanduser(self.settings.inventory)
        default = self.root / INVENTORY_FILE
        return default if default.exists() else None

    def relative(self, path: Path) -> str:
        """Return a path as messages and reports show it: relative to the project where it lies inside."""
        absolute = Path(os.path.abspath(path))
        return str(absolute.relative_to(self.root)) if absolute.is_relative_to(self.root) else str(absolute)

    @property
    def resources(self) -> Path | None:
        """The directory of the project's own node types; None where there is none."""
        folder = self.root / "resources"
        return folder if folder.is_dir() else None


def find(start: Path) -> Project:
    """Return the project of a playbook or directory.

    The root is the nearest directory, upward from `start`, that has a `statecfg.toml` or an `inventory.yml`; without
    one, the directory of `start` itself, or the one above where it is called `playbooks`. Raises InvalidInput where
    the settings are wrong.
    """
    absolute = Path(os.path.abspath(start))
    first = absolute if absolute.is_dir() else absolute.parent
    for folder in (first, *first.parents):
        if (folder / SETTINGS_FILE).exists():
            return Project(folder, read_settings(folder / SETTINGS_FILE))
        if (folder / INVENTORY_FILE).exists():
            return Project(folder)
    return Project(first.parent if first.name == "playbooks" else first)


def read_settings(path: Path) -> Settings:
    """Read a `statecfg.toml`. Raises InvalidInput with everything that is wrong in it."""
    text = _text(path)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+), column (\d+)", str(error))
        place = (
            SourceLocation(str(path), int(found[1]), int(found[2]))
            if found
            else SourceLocation(str(path), text.count("\n") + 1)
        )
        detail = str(error).split(" (at ")[0]
        raise InvalidInput([problem("SC0410", detail, "write: name = value, texts in quotes", place)]) from None
    problems = [wrong for key, value in values.items() if (wrong := _wrong(key, value, path, text)) is not None]
    if problems:
        raise InvalidInput(problems)
    checked: dict[str, Any] = {k: float(v) if _KINDS[k][0] is float else v for k, v in values.items()}
    return Settings(**checked)


def _text(path: Path) -> str:
    place = SourceLocation(str(path), 1)
    try:
        with path.open("rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            data = stream.read(LARGEST + 1)
        # Whoever may write it decides where we connect to and as whom. Source: CVE-2018-10875.
        if mode & stat.S_IWOTH:
            detail = f"{path} has mode {stat.S_IMODE(mode):04o}"
            raise InvalidInput([problem("SC0412", detail, f"chmod o-w {path}", place)])
        folder = path.parent.stat().st_mode
        if folder & stat.S_IWOTH and not folder & stat.S_ISVTX:
            detail = f"its directory {path.parent} has mode {stat.S_IMODE(folder):04o}"
            raise InvalidInput([problem("SC0412", detail, f"chmod o-w {path.parent}", place)])
        if len(data) > LARGEST:
            raise InvalidInput([problem("SC0410", f"it is larger than {LARGEST} bytes", "", place)])
        inputs.note("settings", path, data)
        return data.decode("utf-8")
    except OSError as error:
        raise InvalidInput([problem("SC0301", f"{path}: {error.strerror}", "check the file", place)]) from None
    except UnicodeDecodeError as error:
        detail = f"at byte offset {error.start}: byte 0x{data[error.start]:02x}"
        raise InvalidInput([problem("SC0313", detail, "save the file as UTF-8", place)]) from None


def _wrong(key: str, value: Any, path: Path, text: str) -> Problem | None:
    written = re.search(rf"(?m)^[ \t]*[\"'\[]?{re.escape(key)}\b", text)
    place = SourceLocation(str(path), text.count("\n", 0, written.start()) + 1 if written else 1, 1)
    if key not in _KINDS:
        return problem("SC0411", f"there is no setting `{key}`", suggest(key, _KINDS, "there are"), place)
    kind, words = _KINDS[key]
    right = isinstance(value, (int, float) if kind is float else kind) and isinstance(value, bool) == (kind is bool)
    if right and key == "forks":
        right = 1 <= value <= 1000
    if right and key == "lock_timeout":
        right = 0 <= value < float("inf")
    return None if right else problem("SC0410", f"`{key}` is {value!r}", f"it must be {words}", place)
