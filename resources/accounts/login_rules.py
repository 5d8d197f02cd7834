"""What ends the logins of a user besides its keys, its account and the rules of sudo: sshd, its files, and its host."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from statecfg.remote.machine import mount_points
from statecfg.remote.machine.world import World
from statecfg.remote.run.login_guard import UP
from statecfg.remote.run.own_account import PACKAGES, UNITS
from statecfg.resources.shared import sources
from statecfg.resources.ssh import ssh_files

NOLOGIN = ("/etc/nologin", "/run/nologin", "/var/run/nologin")
PAM = ("/etc/pam.d", "/etc/security")  # directories whose files count
# Files that decide on logins, which only a new login can judge.
UNJUDGED = ("/etc/pam.conf", "/etc/nsswitch.conf", "/etc/hosts.allow", "/etc/hosts.deny")
# What shells of logins without a terminal read.
STARTS = ("/etc/bash.bashrc", "/etc/bashrc", "/etc/zsh/zshenv", "/etc/zshenv", "/etc/ssh/sshrc", "/etc/environment")
OWN_STARTS = (".bashrc", ".zshenv", ".cshrc", ".tcshrc", ".ssh/rc", ".ssh/environment")
SUDO, PYTHON = "/usr/bin/sudo", "/usr/bin/python3"
AT_BOOT = ("enabled", "enabled-runtime", "static", "generated")
_KEYS = {"ssh-ed25519": "ed25519", "ssh-rsa": "rsa", "ecdsa-sha2-nistp256": "ecdsa"}


class LoginRules:
    """A login that must stay possible.

    :param user: the user
    :param with_key: whether it uses a key
    :param sudo: whether it needs sudo
    :param host_key: the type of the host key that the controller knows, "" if it is not known
    """

    def __init__(self, user: str, with_key: bool, sudo: bool, host_key: str) -> None:
        self.user, self.with_key, self.sudo, self.host_key = user, with_key, sudo, host_key

    def places(self, world: World, home: str) -> Mapping[str, Sequence[str]]:
        """Return kind of problem → what it depends on: paths, and facets with a key."""
        above = [home, *_above(home)]
        units = [f"units {unit}" for unit in UNITS]
        return {
            "nologin": NOLOGIN,
            "access": (f"users {self.user}", "groups", ssh_files.DIRECTORY),
            "host key": [self._host_key()] if self.host_key in _KEYS else [],
            "sudo program": _way(world, SUDO) if self.sudo else (),
            "python": _way(world, PYTHON),
            "sshd": _way(world, ssh_files.PROGRAM),
            "mounts": [f"mount {path}" for path in (*above, posixpath.join(home, ".ssh"))],
            "server": [*units, *(f"packages {name}" for name in PACKAGES if self.sudo or name != "sudo")],
            "files": (*PAM, *UNJUDGED),
            "starts": (*STARTS, *(posixpath.join(home, name) for name in OWN_STARTS)),
        }

    def checks(self) -> Iterator[tuple[str, Callable[[World, Mapping[str, Any]], str]]]:
        """Yield kind of problem and the function that returns its text, "" if there is none."""
        yield "nologin", self._nologin
        yield "access", self._access
        yield "host key", self._hosts_key
        yield "sudo program", self._sudo_program
        yield "python", self._python
        yield "mounts", self._mounts
        yield "sshd", self._sshd

    def _nologin(self, world: World, entry: Mapping[str, Any]) -> str:
        path = next((path for path in NOLOGIN if world.stat(path) is not None), None)
        return f"{path} lets only root log in" if path is not None and str(entry.get("uid")) != "0" else ""

    def _access(self, world: World, entry: Mapping[str, Any]) -> str:
        if world.stat(ssh_files.MAIN) is None:
            return ""
        why = ssh_files.denied(world, self.user)
        if why:
            return f"sshd would refuse {self.user}: {why}"
        for name, default, refuses in _REFUSING:
            value, place = ssh_files.setting(world, self.user, name, default)
            if refuses(value.strip().lower(), self, entry):
                return f"sshd would refuse this login: {place or name}, {name} {value}"
        return ""

    def _host_key(self) -> str:
        return f"{ssh_files.DIRECTORY}/ssh_host_{_KEYS[self.host_key]}_key"

    def _hosts_key(self, world: World, entry: Mapping[str, Any]) -> str:
        if self.host_key not in _KEYS:
            return ""
        path = self._host_key()
        stat = world.stat(sources.target(world, path))
        if stat is None:
            return f"sshd would not have the host key {path}, by which the controller knows this host"
        loose = stat.mode & (0o037 if stat.group == "ssh_keys" else 0o077)
        return f"sshd refuses to use the host key {path} with mode {stat.mode:04o}" if loose else ""

    def _sudo_program(self, world: World, entry: Mapping[str, Any]) -> str:
        stat = world.stat(sources.target(world, SUDO)) if self.sudo else None
        if not self.sudo or (stat is not None and stat.mode & 0o4000 and stat.owner in ("root", "0")):
            return "" if not self.sudo else _entered(world, SUDO, entry)
        return f"{SUDO} would not exist" if stat is None else f"{SUDO} would not be a set-user-ID program of root"

    def _sshd(self, world: World, entry: Mapping[str, Any]) -> str:
        stat = world.stat(sources.target(world, ssh_files.PROGRAM))
        return "" if stat is not None and stat.mode & 0o111 else f"{ssh_files.PROGRAM} could not be started"

    def _python(self, world: World, entry: Mapping[str, Any]) -> str:
        stat = world.stat(sources.target(world, PYTHON))
        if stat is None or not stat.mode & 0o111:
            return f"{PYTHON} would not {'exist' if stat is None else 'be executable'}"
        return _entered(world, PYTHON, entry)

    def _mounts(self, world: World, entry: Mapping[str, Any]) -> str:
        home = str(entry.get("home") or "/")
        points = mount_points.of(world)
        over = [path for path in (posixpath.join(home, ".ssh"), home, *_above(home)) if path in points and path != "/"]
        return f"what is mounted on {', '.join(over)} hides its keys, unless it contains them" if over else ""


def _above(path: str) -> list[str]:
    """Return the directories above a path, without the root directory."""
    found = []
    while path.count("/") > 1:
        path = posixpath.dirname(path)
        found.append(path)
    return found


def _way(world: World, path: str) -> list[str]:
    """Return a program, the file to which it leads, and the directories above it."""
    return [path, sources.target(world, path), *_above(path)]


def _entered(world: World, path: str, entry: Mapping[str, Any]) -> str:
    """Return the message about a directory above a path that the user can't enter, "" if it can enter all."""
    if str(entry.get("uid")) == "0":
        return ""
    for above in ("/", *_above(path)):
        stat = world.stat(sources.target(world, above))
        if stat is not None and stat.owner in ("root", "0") and not stat.mode & 0o011:
            return f"users could not enter {above}, mode {stat.mode:04o}"
    return ""


def server_problem(world: World, touched: Sequence[str]) -> str:
    """Return the message about the end of sshd, or about a removed program of the login; "" if both stay.

    :param touched: facets with a key, such as `packages sudo`
    """
    for name in PACKAGES:
        if f"packages {name}" in touched and world.entry("packages", name) is None:
            return f"the package {name} would not be installed"
    if not any(each.startswith("units ") for each in touched):
        return ""
    states = [entry for entry in (world.entry("units", unit) for unit in UNITS) if entry and "alias" not in entry]
    if not any(entry.get("active") in UP for entry in states):
        return "sshd would not run"
    return "" if any(entry.get("enabled") in AT_BOOT for entry in states) else "sshd would not start at the next boot"


def _alone(value: str) -> bool:
    """Return whether a key alone is enough, by the value of AuthenticationMethods."""
    lists = [words.split(",") for words in value.split()]
    return any(words in (["any"], ["publickey"]) for words in lists)


# Setting, its default, and when its value refuses a login.
_REFUSING: Sequence[tuple[str, str, Callable[[str, LoginRules, Mapping[str, Any]], bool]]] = (
    ("pubkeyauthentication", "yes", lambda value, login, entry: login.with_key and value == "no"),
    ("authenticationmethods", "any", lambda value, login, entry: login.with_key and not _alone(value)),
    (
        "permitrootlogin",
        "prohibit-password",
        lambda value, login, entry: str(entry.get("uid")) == "0" and value in ("no", "forced-commands-only"),
    ),
    ("forcecommand", "none", lambda value, login, entry: value != "none"),
    ("chrootdirectory", "none", lambda value, login, entry: value != "none"),
)
