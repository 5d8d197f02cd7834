"""The connection settings of a host in Ansible's variables."""

from __future__ import annotations

import re
from typing import Any

from statecfg.dialects.inventories import ssh_options
from statecfg.dialects.inventories.ssh_options import SshRoute, WrongOption
from statecfg.dialects.yaml_inventory import ADDRESS, BECOME, JUMP, USER
from statecfg.graph.opaque import SHORTEST, Secret
from statecfg.graph.value import Value
from statecfg.playbook.inventory import Host, Login, Vars
from statecfg.problems import SourceLocation, problem, report, suggest

# Setting → Ansible's variables for it. If a host has several, Ansible uses the last one of these. `{}` is the method.
NAMES = {
    "address": ("ansible_host", "ansible_ssh_host"),
    "port": ("ansible_port", "ansible_ssh_port"),
    "user": ("ansible_user", "ansible_ssh_user"),
    "key": ("ansible_private_key_file", "ansible_ssh_private_key_file"),
    "become": ("ansible_become",),
    "become_user": ("ansible_become_user", "ansible_{}_user"),
    "become_method": ("ansible_become_method",),
    "become_password": ("ansible_become_password", "ansible_become_pass", "ansible_{}_pass"),
    "connection": ("ansible_connection",),
    "python": ("ansible_python_interpreter",),
}
ARGUMENTS = ("ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args")
TRANSPORTS = {"ssh": "ssh", "smart": "ssh", "paramiko": "ssh", "paramiko_ssh": "ssh", "local": "local"}

_TRUE = ("true", "yes", "on", "1", "y", "t", "1.0")
_FALSE = ("false", "no", "off", "0", "n", "f", "0.0", "")
_NO_SHELL = "it must not contain white space and shell characters, nor begin with `-`"


def host(name: str, variables: Vars, position: SourceLocation) -> Host:
    """Return a host with the connection settings in its variables. Report wrong ones.

    :param variables: all its variables: those of its groups and its own
    :param position: the source location of the host
    """
    settings = _Settings(variables)
    way = settings.way()
    user, port = settings.text("user", USER), settings.port("port")
    if way.user is not None and user is None:
        user = way.user
    if port is None and way.port is not None:
        port = int(way.port)
    keys = [key for key in (settings.text("key", re.compile(r"[^-\0][^\0]*\Z")),) if key]
    return Host(
        name,
        address=settings.text("address", ADDRESS) or "",
        port=port,
        proxy_jump=way.jump,
        login=Login(
            user=user,
            identity_files=tuple(dict.fromkeys([*keys, *way.keys])),
            become=settings.method() if settings.flag("become") else None,
            become_user=settings.text("become_user", USER) or "root",
            become_password=settings.password(),
        ),
        python=settings.python(),
        transport=settings.transport(),
        position=position,
    )


class _Settings:
    """The settings in the variables of one host."""

    def __init__(self, variables: Vars) -> None:
        self.variables = variables

    def _found(self, setting: str) -> tuple[str, Any, SourceLocation] | None:
        """Return name, value and source location of the variable that sets something; None if none does."""
        for pattern in reversed(NAMES[setting]):
            name = pattern.format(self.method_name) if "{}" in pattern else pattern
            if name in self.variables and self.variables[name][0] not in (None, ""):
                return (name, *self.variables[name])
        return None

    @staticmethod
    def _refuse(name: str, value: Any, location: SourceLocation, expected: str) -> None:
        report(problem("SC0405", f"`{name}` is {value!r}", expected, location))

    def text(self, setting: str, pattern: re.Pattern[str]) -> str | None:
        found = self._found(setting)
        if found is None:
            return None
        name, value, location = found
        written = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        if isinstance(written, str) and pattern.match(written):
            return written
        self._refuse(name, value, location, _NO_SHELL)
        return None

    def port(self, setting: str) -> int | None:
        found = self._found(setting)
        if found is None:
            return None
        name, value, location = found
        if not isinstance(value, bool) and str(value).isdecimal() and 1 <= int(value) <= 65535:
            return int(value)
        self._refuse(name, value, location, "it must be a number from 1 to 65535")
        return None

    def flag(self, setting: str) -> bool:
        found = self._found(setting)
        if found is None:
            return False
        name, value, location = found
        written = str(value).lower()
        if written not in (*_TRUE, *_FALSE):
            self._refuse(name, value, location, "it must be true or false")
        return written in _TRUE

    @property
    def method_name(self) -> str:
        """The method of becoming, without the name of its collection. It may be unknown."""
        found = self._found("become_method")
        written = str(found[1]) if found is not None else BECOME[0]
        return written.removeprefix("ansible.builtin.").removeprefix("community.general.")

    def method(self) -> str:
        found, method = self._found("become_method"), self.method_name
        if found is None or method in BECOME:
            return method
        self._refuse(*found, f"statecfg can use {', '.join(BECOME)}")
        return BECOME[0]

    def password(self) -> Secret | None:
        found = self._found("become_password")
        if found is None or isinstance(found[1], Secret):
            return found[1] if found is not None else None
        name, _, location = found
        detail = f"`{name}` is not a string of at least {SHORTEST} characters"
        help_text = "use a longer password: statecfg can't mask a shorter one in output"
        report(problem("SC0421", detail, help_text, location))
        return None

    def transport(self) -> str:
        found = self._found("connection")
        if found is None:
            return "ssh"
        name, value, location = found
        transport = str(value).removeprefix("ansible.builtin.").removeprefix("ansible.netcommon.")
        if transport not in TRANSPORTS:
            self._refuse(name, value, location, suggest(transport, TRANSPORTS, "statecfg can use"))
        return TRANSPORTS.get(transport, "ssh")

    def python(self) -> str | None:
        """Return the path of the host's Python; None if statecfg should search for one, as for `auto`."""
        found = self._found("python")
        if found is None:
            return None
        name, value, location = found
        written = str(value).strip()
        if re.match(r"/[^\s\0]*\Z", written):
            return written
        if not re.match(r"auto(_legacy)?(_silent)?\Z|(/usr/bin/env )?python[0-9.]*\Z", written):
            self._refuse(name, value, location, "it must be the absolute path of a Python, or `auto`")
        return None

    def way(self) -> SshRoute:
        """Return the connection options in the arguments for ssh. Later variables override earlier ones."""
        total = SshRoute()
        for name in ARGUMENTS:
            value, location = self.variables.get(name, ("", None))
            if value in (None, "") or location is None:
                continue
            if isinstance(value, Value) or not isinstance(value, str):
                self._refuse(name, value, location, "it must be a string")
                continue
            try:
                way = ssh_options.read(value)
                self._check(way)
            except WrongOption as error:
                report(problem("SC0405", f"`{name}`: {error.args[0]}", error.args[1], location))
                continue
            total.jump, total.user = way.jump or total.jump, way.user or total.user
            total.port, total.keys = way.port or total.port, [*total.keys, *way.keys]
        return total

    @staticmethod
    def _check(way: SshRoute) -> None:
        for what, value, pattern in (("jump host", way.jump, JUMP), ("user", way.user, USER)):
            if value is not None and not pattern.match(value):
                raise WrongOption(f"{value!r} is not a {what}", _NO_SHELL)
        if way.port is not None and not (way.port.isdecimal() and 1 <= int(way.port) <= 65535):
            raise WrongOption(f"{way.port!r} is not a port", "use a number from 1 to 65535")
