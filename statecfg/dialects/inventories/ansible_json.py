"""Read what programs print for Ansible's `--list`: groups in JSON, and the variables of hosts below `_meta`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from statecfg.dialects import scalars
from statecfg.dialects.inventories import foreign_yaml
from statecfg.dialects.inventories.ansible import AnsibleGroup, AnsibleHost, AnsibleInventory
from statecfg.problems import InvalidInput, SourceLocation, problem, report, suggest

KEYS = ("hosts", "children", "vars")
META = "_meta"
# How `ansible-inventory` marks values that are not templates, and values that Ansible Vault encrypted.
UNSAFE, VAULT = "__ansible_unsafe", "__ansible_vault"

_EXAMPLE = '{"web": {"hosts": ["web1"]}, "_meta": {"hostvars": {"web1": {"port": 80}}}}'


def parse(text: str, what: str, location: SourceLocation) -> Mapping[str, Any]:
    """Return the JSON object in a string.

    :param what: the program, for messages
    :raises InvalidInput: the text is not a JSON object
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        position = f" in line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "it is nested too deeply"
        words = " ".join(text.split()) or "nothing"
        shown = "" if words.startswith(("{", "[")) else f": {scalars.shorten(words)}"  # broken JSON can contain secrets
        detail = f"{what} printed something else than JSON{position}: {reason}{shown}"
        raise InvalidInput([problem("SC0416", detail, f"it must print {_EXAMPLE}", location)]) from None
    if not isinstance(found, dict):
        detail = f"{what} printed {scalars.describe(found)} instead of a map of groups"
        raise InvalidInput([problem("SC0416", detail, f"it must print {_EXAMPLE}", location)])
    return found


class AnsibleJsonReader:
    """Adds the hosts, groups and variables of one program.

    :param what: the program, for messages
    :param location: the source location of its values
    :param variables_of: returns the variables of a host if the program does not print `_meta`
    """

    def __init__(
        self,
        inventory: AnsibleInventory,
        what: str,
        location: SourceLocation,
        variables_of: Callable[[str], Mapping[str, Any]],
    ) -> None:
        self.inventory, self.what, self.location, self.variables_of = inventory, what, location, variables_of
        self.hosts: dict[str, AnsibleHost] = {}

    def read(self, data: Mapping[str, Any]) -> None:
        """Add what a program printed. Report what is wrong in it."""
        for name, content in data.items():
            if name != META:
                self._group(name, content)
        meta = data.get(META, {})
        hostvars = meta.get("hostvars") if isinstance(meta, dict) else meta
        if META in data and hostvars is not None and not isinstance(hostvars, dict):
            self._wrong(f"{META}.hostvars", hostvars, "a map of hosts")
            return
        for name, host in self.hosts.items():
            found = self.variables_of(name) if hostvars is None else hostvars.get(name) or {}
            self._set(host, found, f"the variables of {name}")

    def _group(self, name: str, content: Any) -> None:
        group = self.inventory.group(name, self.location)
        if isinstance(content, list):
            content = {"hosts": content}
        if not isinstance(content, dict):
            self._wrong(name, content, "a map with hosts, children and vars, or a list of hosts")
            return
        for key in content:
            if key not in KEYS:
                help_text = suggest(key, KEYS)
                detail = f"group `{name}`, which {self.what} printed, has no key `{key}`"
                report(problem("SC0311", detail, help_text, self.location))
        for host in self._names(content, "hosts", name):
            self.hosts[host] = self.inventory.host(host, self.location, group)
        for child in self._names(content, "children", name):
            self.inventory.child(group, child, self.location)
        self._set(group, content.get("vars") or {}, f"{name}.vars")

    def _names(self, content: Mapping[str, Any], key: str, group: str) -> list[str]:
        names = content.get(key) or []
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            return names
        self._wrong(f"{group}.{key}", names, "a list of names")
        return []

    def _set(self, owner: AnsibleGroup | AnsibleHost, values: Any, where: str) -> None:
        if not isinstance(values, dict):
            self._wrong(where, values, "a map of variables")
            return
        for name, value in values.items():
            self.inventory.assign(owner, name, self._value(value, name, where), self.location)

    def _value(self, value: Any, name: str, where: str) -> Any:
        if isinstance(value, dict):
            if value.keys() == {UNSAFE}:
                return value[UNSAFE]
            if value.keys() == {VAULT}:
                return foreign_yaml.vaulted(value[VAULT], name, self.location)
            return {key: self._value(item, name, where) for key, item in value.items()}
        if isinstance(value, list):
            return [self._value(item, name, where) for item in value]
        if isinstance(value, str) and foreign_yaml.is_template(value):
            foreign_yaml.template(f"`{name}` in {where}, which {self.what} printed,", self.location)
        return value

    def _wrong(self, where: str, found: Any, expected: str) -> None:
        detail = f"{self.what} printed {scalars.describe(found)} as {where}"
        report(problem("SC0416", detail, f"it must be {expected}", self.location))
