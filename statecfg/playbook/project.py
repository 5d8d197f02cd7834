"""Find the project of a playbook and read its settings."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Sequence
from dataclasses import field, fields
from pathlib import Path
from typing import Any

from statecfg.problems import InvalidInput, Problem, inputs, problem, suggest
from statecfg.problems.frozen import dataclass
from statecfg.problems.positions import SourceLocation

SETTINGS_FILE = "statecfg.toml"
INVENTORY_FILE = "inventory.yml"
LARGEST = 1 << 20

# Setting → its type, and a description of valid values.
SETTINGS: dict[str, tuple[type, str]] = {
    "name": (str, "a name"),
    "inventory": (str, "the path of a file"),
    "forks": (int, "a number from 1 to 1000"),
    "become": (bool, "true or false"),
    "become_user": (str, "the name of a user"),
    "ssh_config": (str, "the path of a file"),
    "accept_new_host_keys": (bool, "true or false"),
    "keep_going": (bool, "true or false"),
    "lock_timeout": (float, "a number of seconds, 0 or more"),
    "engine": (str, 'an engine, such as "processes"'),
    "store": (str, "the path of a file, or a URL"),
    "roles_path": (str, "directories of roles, joined by colons"),
    "hook_path": (str, "directories of hook types, joined by colons"),
    "hook_execution_path": (str, "directories of programs, joined by colons"),
    "store_hook_input": (bool, "true or false"),
    "store_hook_output": (bool, "true or false"),
    "vault_ids": (list, "a list of PATH, LABEL@PATH or LABEL@prompt"),
    "age_identities": (list, "a list of paths"),
}


@dataclass(frozen=True, slots=True)
class HookSettings:
    """The settings for hooks in `statecfg.toml`; None for a missing one.

    :param hook_path: directories of hook types, joined by colons, relative to the project
    :param hook_execution_path: directories before the default PATH of hooks' programs, joined by colons
    :param store_hook_input: whether the log of hooks contains the input of their programs
    :param store_hook_output: whether the log of hooks contains the output of their programs
    """

    hook_path: str | None = None
    hook_execution_path: str | None = None
    store_hook_input: bool | None = None
    store_hook_output: bool | None = None


@dataclass(frozen=True, slots=True)
class KeySettings:
    """The keys of encrypted secrets in `statecfg.toml`. Paths are relative to the project.

    :param vault_ids: passwords of Ansible Vault: `LABEL@SOURCE` or `SOURCE`
    :param age_identities: files with identities of age, or with private keys of SSH
    """

    vault_ids: Sequence[str] = ()
    age_identities: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """How to reach the hosts, in `statecfg.toml`; None for a missing setting.

    :param ssh_config: path of the ssh configuration
    :param accept_new_host_keys: whether to accept and store the key of a new host
    :param engine: which processes hold the connections to hosts
    """

    ssh_config: str | None = None
    accept_new_host_keys: bool | None = None
    engine: str | None = None


@dataclass(frozen=True, slots=True)
class PathSettings:
    """The paths in `statecfg.toml`. They are relative to the project.

    :param inventory: the inventory
    :param roles_path: directories of roles in addition to `roles/`, joined by colons
    """

    inventory: str | None = None
    roles_path: str | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in `statecfg.toml`; None for a missing one. Options of the command line override them.

    :param name: the project's name in the ledgers of hosts; default: the name of its directory
    :param forks: number of parallel hosts, 1 to 1000
    :param become: whether to act as another user
    :param become_user: the user to act as
    :param keep_going: whether to continue with resources that don't depend on a failed resource
    :param lock_timeout: seconds to wait for another run to end
    :param store: the store: a path relative to the project, or a URL
    :param paths: where to find the inventory and roles
    :param connections: how to reach the hosts
    :param hooks: the settings for hooks
    :param keys: the keys of encrypted secrets
    """

    name: str | None = None
    forks: int | None = None
    become: bool | None = None
    become_user: str | None = None
    keep_going: bool | None = None
    lock_timeout: float | None = None
    store: str | None = field(default=None, repr=False)
    paths: PathSettings = PathSettings()
    connections: ConnectionSettings = ConnectionSettings()
    hooks: HookSettings = HookSettings()
    keys: KeySettings = KeySettings()


@dataclass(frozen=True, slots=True)
class Project:
    """A project's directory and settings.

    :param root: the directory that contains `resources/`, `roles/`, `templates/`, `files/` and `playbooks/`
    :param settings: the settings in `statecfg.toml`
    """

    root: Path
    settings: Settings = field(default_factory=Settings)

    @property
    def name(self) -> str:
        """The project's name on hosts and in the store: the name in the settings, or that of its directory."""
        return self.settings.name or self.root.name

    @property
    def inventory_file(self) -> Path | None:
        """The inventory: the file in the settings, or `inventory.yml`; None if there is none."""
        if self.settings.paths.inventory is not None:
            return self.root / os.path.expanduser(self.settings.paths.inventory)
        default = self.root / INVENTORY_FILE
        return default if default.exists() else None

    def relative(self, path: Path) -> str:
        """Return a path for messages and reports: relative to the project if it is inside."""
        absolute = Path(os.path.abspath(path))
        return str(absolute.relative_to(self.root)) if absolute.is_relative_to(self.root) else str(absolute)

    @property
    def resources(self) -> Path | None:
        """The directory of the project's own node types; None if there is none."""
        folder = self.root / "resources"
        return folder if folder.is_dir() else None


def find(start: Path) -> Project:
    """Return the project of a playbook or directory.

    The root is the nearest directory, from `start` upward, that contains `statecfg.toml` or `inventory.yml`. If there
    is none, it is the directory of `start`, or its parent if that directory is named `playbooks`.

    :param start: the playbook or directory
    :raises InvalidInput: the settings are invalid
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
    """Read a `statecfg.toml`.

    :raises InvalidInput: with all problems in the file
    """
    text = _text(path)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"at line (\d+), column (\d+)", str(error))
        location = (
            SourceLocation(str(path), int(match[1]), int(match[2]))
            if match
            else SourceLocation(str(path), text.count("\n") + 1)
        )
        detail = str(error).split(" (at ")[0]
        raise InvalidInput(
            [problem("SC0410", detail, 'write name = value, and quote text: name = "text"', location)]
        ) from None
    checked = [_check(key, value, path, text) for key, value in values.items()]
    problems = [wrong for wrong in checked if wrong is not None]
    if problems:
        raise InvalidInput(problems)
    if "lock_timeout" in values:
        values["lock_timeout"] = float(values["lock_timeout"])
    hooks = {item.name: values.pop(item.name) for item in fields(HookSettings) if item.name in values}
    keys = {item.name: tuple(values.pop(item.name)) for item in fields(KeySettings) if item.name in values}
    paths = {item.name: values.pop(item.name) for item in fields(PathSettings) if item.name in values}
    reach = {item.name: values.pop(item.name) for item in fields(ConnectionSettings) if item.name in values}
    connections, inner = ConnectionSettings(**reach), HookSettings(**hooks)
    return Settings(
        **values, paths=PathSettings(**paths), connections=connections, hooks=inner, keys=KeySettings(**keys)
    )


def _text(path: Path) -> str:
    location = SourceLocation(str(path), 1)
    try:
        with path.open("rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            data = stream.read(LARGEST + 1)
        # A user who can write this file controls which hosts we connect to, and as which user. Source: CVE-2018-10875.
        if mode & stat.S_IWOTH:
            detail = f"{path} has mode {stat.S_IMODE(mode):04o}"
            raise InvalidInput([problem("SC0412", detail, f"chmod o-w {path}", location)])
        folder = path.parent.stat().st_mode
        if folder & stat.S_IWOTH and not folder & stat.S_ISVTX:
            detail = f"its directory {path.parent} has mode {stat.S_IMODE(folder):04o}"
            raise InvalidInput([problem("SC0412", detail, f"chmod o-w {path.parent}", location)])
        if len(data) > LARGEST:
            raise InvalidInput([problem("SC0410", f"the file is larger than {LARGEST} bytes", "shorten it", location)])
        inputs.note("settings", path, data)
        return data.decode("utf-8")
    except OSError as error:
        raise InvalidInput([problem("SC0301", f"{path}: {error.strerror}", "check the file", location)]) from None
    except UnicodeDecodeError as error:
        detail = f"at byte offset {error.start}: byte 0x{data[error.start]:02x}"
        raise InvalidInput([problem("SC0313", detail, "save the file as UTF-8", location)]) from None


def _check(key: str, value: Any, path: Path, text: str) -> Problem | None:
    """Return the problem with a setting, None if it is valid."""
    match = re.search(rf"(?m)^[ \t]*[\"'\[]?{re.escape(key)}\b", text)
    location = SourceLocation(str(path), text.count("\n", 0, match.start()) + 1 if match else 1, 1)
    if key not in SETTINGS:
        return problem("SC0411", f"unknown setting `{key}`", suggest(key, SETTINGS, "available"), location)
    value_type, expected = SETTINGS[key]
    valid = isinstance(value, (int, float) if value_type is float else value_type) and isinstance(value, bool) == (
        value_type is bool
    )
    if valid and key == "forks":
        valid = 1 <= value <= 1000
    if valid and key == "lock_timeout":
        valid = 0 <= value < float("inf")
    if valid and value_type is list:
        valid = all(isinstance(item, str) and item and not item.endswith("@") for item in value)
    return None if valid else problem("SC0410", f"`{key}` is {value!r}", f"it must be {expected}", location)
