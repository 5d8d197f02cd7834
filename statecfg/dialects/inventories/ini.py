"""Read Ansible's inventories in the INI format."""

from __future__ import annotations

import ast
import re
import shlex
import warnings
from typing import Any

from statecfg.dialects import scalars, yaml_text
from statecfg.dialects.inventories import foreign_yaml
from statecfg.dialects.inventories.ansible import PASSWORD, UNGROUPED, AnsibleGroup, AnsibleHost, AnsibleInventory
from statecfg.dialects.inventories.ranges import WrongRange, expand
from statecfg.problems import InvalidInput, SourceLocation, problem, report, suggest

SECTIONS = ("hosts", "children", "vars")

_SECTION = re.compile(r"\[([^:\]\s]+)(?::(\w+))?\]\s*(?:#.*)?\Z")
_GROUP = re.compile(r"([^:\]\s]+)\s*(?:#.*)?\Z")


def read(inventory: AnsibleInventory, path: str) -> None:
    """Add the hosts, groups and variables of a file. Report its problems.

    :raises InvalidInput: the file can't be read
    """
    data = yaml_text.content(path)
    if data.startswith(b"#!"):
        detail = f"{path} is a program, and not executable"
        raise InvalidInput([problem("SC0417", detail, f"chmod +x {path}", SourceLocation(path, 1))])
    _IniReader(inventory, path).read(scalars.decode(data, path))


class _IniReader:
    """Reads one file line by line.

    :ivar declared: groups with a section for hosts or children
    :ivar named: groups that only a section for children or variables names → source location
    """

    def __init__(self, inventory: AnsibleInventory, path: str) -> None:
        self.inventory, self.path = inventory, path
        self.group, self.state = inventory.groups[UNGROUPED], "hosts"
        self.declared: set[str] = set(inventory.groups)
        self.named: dict[str, SourceLocation] = {}

    def read(self, text: str) -> None:
        for number, raw in enumerate(text.splitlines(), 1):
            line = raw.strip()
            if not line or line[0] in "#;":
                continue
            location = SourceLocation(self.path, number, len(raw) - len(raw.lstrip()) + 1)
            if line.startswith("[") and self._section(line, location):
                continue
            if self.state == "hosts":
                self._hosts(line, raw, location)
            elif self.state == "children":
                self._child(line, location)
            elif self.state == "vars":
                self._variable(line, raw, location)
        for name, location in self.named.items():
            if name not in self.declared:
                help_text = suggest(name, sorted(self.declared), "available")
                detail = f"unknown group `{name}`; a section [{name}] or [{name}:children] declares it"
                report(problem("SC0404", detail, help_text, location))

    def _section(self, line: str, location: SourceLocation) -> bool:
        """Start a section; return whether the line is one. A host can begin with `[`, too."""
        match = _SECTION.match(line)
        if match is None:
            if not line.endswith("]") and "]" in line:
                return False
            detail = f"`{line}` is not a section"
            self._wrong(detail, "write [NAME], [NAME:children] or [NAME:vars], without spaces", location)
            self.state = "unknown"
            return True
        name, state = match[1], match[2] or "hosts"
        self.group, self.state = self.inventory.group(name, location), state
        if state not in SECTIONS:
            detail = f"unknown kind of section `{state}`"
            self._wrong(detail, suggest(state, SECTIONS, "available"), location)
        elif state == "vars":
            self.named.setdefault(name, location)
        else:
            self.declared.add(name)
        return True

    def _hosts(self, line: str, raw: str, location: SourceLocation) -> None:
        if self._stray(line, location):
            return
        try:
            words = shlex.split(line, comments=True)
            names, port = expand(words[0])
        except WrongRange as error:
            self._wrong(f"`{line.split()[0]}`: {error}", "write a host, or a range such as web[01:10]", location)
            return
        except ValueError as error:
            self._wrong(str(error), "close the quotes; quote a value that contains quotes", location)
            return
        if words[0] == "---":
            self._wrong("`---` starts a file in YAML", "rename the file so that it ends in .yml", location)
            return
        hosts = [self.inventory.host(name, location, self.group, port) for name in names]
        secret = False
        for word in words[1:]:
            name, equals, value = word.partition("=")
            at = location._replace(column=_column(raw, name + equals))
            if not name:  # the word before it may be `password`
                self._wrong("a name is missing before the `=`", "write NAME=VALUE without spaces around the `=`", at)
                continue
            if not equals:
                # The word may be a part of a password.
                what = "the text after a password" if secret else f"`{word}`"
                self._wrong(f"{what} is not a variable", "write NAME=VALUE, and quote a value with spaces", at)
                secret = secret or PASSWORD.match(name) is not None
                continue
            secret = PASSWORD.match(name) is not None
            for host in hosts:
                self._set(host, name, value, at)

    def _stray(self, line: str, location: SourceLocation) -> bool:
        """Report a variable in place of a host or group. Omit its value, which may be a password."""
        name, equals, _ = line.split()[0].partition("=")
        if equals:
            help_text = "write variables behind a host, or in a section [GROUP:vars], such as [all:vars]"
            self._wrong(f"the line sets `{name}` outside of a section for variables", help_text, location)
        return bool(equals)

    def _child(self, line: str, location: SourceLocation) -> None:
        if self._stray(line, location):
            return
        match = _GROUP.match(line)
        if match is None:
            detail = f"the line that begins with `{line.split()[0]}` is not a group"
            self._wrong(detail, "write one name of a group in each line", location)
            return
        self.named.setdefault(match[1], location)
        self.inventory.child(self.group, match[1], location)

    def _variable(self, line: str, raw: str, location: SourceLocation) -> None:
        name, equals, value = line.partition("=")
        if not equals:
            self._wrong(f"`{line.split()[0]}` has no value", "write NAME=VALUE", location)
        else:
            self._set(self.group, name.strip(), value.strip(), location)

    def _set(self, owner: AnsibleGroup | AnsibleHost, name: str, text: str, location: SourceLocation) -> None:
        if foreign_yaml.is_template(text):
            foreign_yaml.template(f"`{name}`", location)
        else:
            self.inventory.assign(owner, name, value(text), location)

    @staticmethod
    def _wrong(detail: str, help_text: str, location: SourceLocation) -> None:
        report(problem("SC0414", detail, help_text, location))


def _column(line: str, text: str) -> int:
    """Return the column of a word that begins with a string; that of the first space if its quotes hide it."""
    found = re.search(rf"(?<=\s){re.escape(text)}", line) or re.search(r"(?<=\s)", line)
    return found.start() + 1 if found is not None else 1


def value(text: str) -> Any:
    """Return the value of a variable in the INI format: a literal of Python, otherwise the text itself."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return _plain(ast.literal_eval(text))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _plain(found: Any) -> Any:
    """Return a literal in JSON's types, as Ansible does."""
    if isinstance(found, dict):
        return {key if isinstance(key, str) else str(key): _plain(item) for key, item in found.items()}
    if isinstance(found, list | tuple | set | frozenset):
        return [_plain(item) for item in found]
    if isinstance(found, bytes):
        return found.decode("utf-8", "replace")
    if found is ...:
        return "..."
    return str(found) if isinstance(found, complex) else found
