"""Load inventories: statecfg's own, Ansible's, those of programs and of Python functions, and several combined."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from statecfg.dialects import yaml_inventory, yaml_text
from statecfg.dialects.inventories import foreign_yaml, variable_files
from statecfg.dialects.inventories.parts import Parts, combined, merged
from statecfg.dialects.yaml_inventory import InventorySource, WrittenInventory
from statecfg.dialects.yaml_tree import Mapping, Scalar, YamlNode
from statecfg.playbook.inventory import ALL, Group
from statecfg.problems import (
    InvalidInput,
    Problem,
    SourceLocation,
    collecting,
    inputs,
    problem,
    report,
    reporting,
    suggest_file,
)

if TYPE_CHECKING:
    from statecfg.dialects.inventories.ansible import AnsibleInventory
    from statecfg.playbook.inventory import Inventory, Vars

YAML = (".yml", ".yaml")
_OURS = re.compile(rb"^[\"']?(?:hosts|groups|sources)[\"']?[ \t]*:", re.MULTILINE)
_PLUGIN = re.compile(rb"^plugin[ \t]*:", re.MULTILINE)
_SECTION = re.compile(rb"\[[^:\]\s,\"']+(?::\w+)?\]\s*(?:#.*)?\Z")
_YAML_LINE = re.compile(rb"---(?:\s|\Z)|\{|[\"']?[\w.-]+[\"']?[ \t]*:(?:\s|\Z)")
# Files that Ansible ignores in a directory of inventories.
IGNORED_ENDINGS = (".pyc", ".pyo", ".swp", ".bak", "~", ".rpm", ".md", ".txt", ".rst", ".orig", ".cfg", ".retry")
IGNORED = ("host_vars", "group_vars", "vars_plugins")


def is_own(path: Path) -> bool:
    """Return whether a file is an inventory in YAML with statecfg's own keys."""
    return path.suffix in YAML and path.is_file() and _OURS.search(yaml_text.content(path)) is not None


def load(path: str | Path) -> Inventory:
    """Return the inventory in a file or directory, with all sources that it names.

    :raises InvalidInput: with all problems
    """
    file = str(path)
    with collecting() as problems:
        sources = _Sources()
        with reporting():
            sources.add(file, SourceLocation(file, 1))
        parts = [*sources.own_parts(), *sources.ansible_parts()]
        inventory = None
        with reporting():
            inventory = combined(parts, file)
    if problems or inventory is None:
        raise InvalidInput(sorted(problems, key=_order))
    return inventory


def _order(item: Problem) -> tuple[str, int, int]:
    file, line, column = item.locations[0] if item.locations else ("", 0, 0)
    return file, line, column or 0


class _Sources:
    """Reads sources one after the other.

    :ivar own: the sources in statecfg's own formats: path and content
    """

    def __init__(self) -> None:
        self.own: list[tuple[str, WrittenInventory]] = []
        self._ansible: AnsibleInventory | None = None
        self.seen: dict[str, SourceLocation] = {}

    @property
    def ansible(self) -> AnsibleInventory:
        """What all Ansible-format sources declare. Most inventories have none, so its code is loaded here."""
        if self._ansible is None:
            from statecfg.dialects.inventories.ansible import AnsibleInventory

            self._ansible = AnsibleInventory()
        return self._ansible

    def add(self, path: str, location: SourceLocation, within: str | None = None) -> None:
        """Add a file or directory. Report its problems.

        :param location: where it is named
        :param within: the directory that contains it, if that directory is the source
        """
        real = os.path.realpath(path)
        if real in self.seen:
            detail = f"{path} is a source of the inventory twice"
            report(problem("SC0417", detail, "name it once", location, self.seen[real]))
            return
        self.seen[real] = location
        try:
            with reporting():
                if os.path.isdir(path):
                    self._directory(path, within)
                else:
                    os.stat(path)
                    self._file(path, location, within)
        except OSError as error:
            detail = f"{error.filename or path}: {error.strerror}"
            other = "write the hosts into a file, one in each line" if "," in path else "check the path"
            report(problem("SC0301", detail, suggest_file(path) or other, location))

    def _directory(self, path: str, within: str | None) -> None:
        for name in sorted(os.listdir(path)):
            if not name.startswith(".") and not name.endswith(IGNORED_ENDINGS) and name not in IGNORED:
                inner = os.path.join(path, name)
                self.add(inner, SourceLocation(inner, 0), within or path)

    def _file(self, path: str, location: SourceLocation, within: str | None) -> None:
        if len(self.seen) > 1:
            inputs.note("inventory source", path)
        if _is_program(path):
            self._executable(path, location)
            self._variables_of_ansible(path, within)
            return
        ending, data = os.path.splitext(path)[1].lower(), yaml_text.content(path)
        if ending == ".py":
            from statecfg.dialects.inventories import python_function

            self._written(path, python_function.read(path))
        elif data.startswith(foreign_yaml.VAULT_FILE):
            detail = f"{path}: Ansible Vault encrypted the inventory itself"
            help_text = "decrypt it; encrypt only values and files of variables"
            report(problem("SC0417", detail, help_text, SourceLocation(path, 1)))
        elif _is_yaml(ending, data):
            self._yaml(path, within)
        elif ending == ".toml":
            detail = f"{path}: statecfg can't read inventories in TOML"
            report(problem("SC0417", detail, "write it in YAML or INI", SourceLocation(path, 0)))
        else:
            self._ini(path, within)

    def _ini(self, path: str, within: str | None) -> None:
        from statecfg.dialects.inventories import ini

        ini.read(self.ansible, path)
        self._variables_of_ansible(path, within)

    def _yaml(self, path: str, within: str | None) -> None:
        data = yaml_text.content(path)
        if _OURS.search(data) and not _PLUGIN.search(
            data
        ):  # decides the most frequent case without parsing the file twice
            self._written(path, yaml_inventory.read(yaml_text.load(path, yaml_inventory.SHAPE)))
            return
        from statecfg.dialects.inventories import ansible_json, ansible_yaml

        tree = None
        with collecting() as problems, reporting():
            tree = foreign_yaml.read(path)
        if is_ansible(tree):
            report(*problems)
            assert isinstance(tree, Mapping)
            if "plugin" in tree.items:
                detail = f"{path} configures an inventory plugin of Ansible"
                help_text = "let Ansible run it: sources: [{command: [ansible-inventory, -i, FILE, --list]}]"
                report(problem("SC0417", detail, help_text, tree.keys["plugin"].location))
            elif ansible_json.META in tree.items:
                location = SourceLocation(path, 1)
                reader = ansible_json.AnsibleJsonReader(self.ansible, os.path.basename(path), location, lambda name: {})
                reader.read(ansible_json.parse(data.decode("utf-8", "replace"), os.path.basename(path), location))
            else:
                ansible_yaml.read(self.ansible, tree)
            self._variables_of_ansible(path, within)
        else:
            self._written(path, yaml_inventory.read(yaml_text.load(path, yaml_inventory.SHAPE)))

    def _executable(self, path: str, location: SourceLocation) -> None:
        from statecfg.dialects.inventories import ansible_json, programs

        program = os.path.abspath(path)
        programs.refuse_untrusted(program, location)
        directory, what = os.path.dirname(program), programs.shown([path, "--list"])

        def run(*arguments: str) -> str:
            return programs.output([program, *arguments], directory, yaml_inventory.TIMEOUT, SourceLocation(path, 0))

        def variables_of(host: str) -> dict[str, object]:
            text = run("--host", host)
            with reporting():
                shown = programs.shown([path, "--host", host])
                return dict(ansible_json.parse(text, shown, SourceLocation(path, 0))) if text.strip() else {}
            return {}

        data = ansible_json.parse(run("--list"), what, SourceLocation(path, 0))
        ansible_json.AnsibleJsonReader(self.ansible, what, SourceLocation(path, 0), variables_of).read(data)

    def _command(self, source: InventorySource, file: str) -> None:
        from statecfg.dialects.inventories import ansible_json, programs

        programs.refuse_untrusted(os.path.abspath(file), source.location)
        directory, what = os.path.dirname(os.path.abspath(file)), programs.shown(source.command)
        program = os.path.join(directory, source.command[0])
        if "/" in source.command[0] and os.path.exists(program):  # otherwise it is found in PATH, as on a command line
            programs.refuse_untrusted(program, source.location)
        text = programs.output(source.command, directory, source.timeout, source.location)
        data = ansible_json.parse(text, what, source.location)
        ansible_json.AnsibleJsonReader(self.ansible, what, source.location, lambda name: {}).read(data)
        self.ansible.use_files_in(os.path.dirname(file))

    def _variables_of_ansible(self, path: str, within: str | None) -> None:
        """Let the `group_vars/` and `host_vars/` beside a source apply, or those in a directory that is the source."""
        self.ansible.use_files_in(within or os.path.dirname(path))

    def _written(self, path: str, written: WrittenInventory) -> None:
        self.own.append((path, written))
        for source in written.sources:
            with reporting():
                if source.command:
                    self._command(source, path)
                else:
                    inner = os.path.join(os.path.dirname(path), os.path.expanduser(source.path))
                    self.add(inner, source.location)

    def own_parts(self) -> Iterator[Parts]:
        """Yield what the sources in statecfg's own formats declare, with the variables in files."""
        for path, written in self.own:
            parts = Parts(written.hosts)
            for host, variables in written.own.items():
                files = self._beside(path, "host_vars", host, f"host `{host}`")
                listed = variable_files.listed(path, written.files.hosts[host])
                parts.own[host] = merged({**listed, **variables}, files, f"host `{host}`")
            groups = {ALL: Group(ALL), **{group.name: group for group in written.groups}}
            for name, group in groups.items():
                files = self._beside(path, "group_vars", name, f"group `{name}`")
                listed = variable_files.listed(path, written.files.groups.get(name, []))
                variables = merged({**listed, **group.vars}, files, f"group `{name}`")
                if variables or name != ALL:
                    parts.groups.append(replace(group, vars=variables))
            yield parts

    def ansible_parts(self) -> Iterator[Parts]:
        """Yield what all Ansible-format sources declare, if there are any."""
        if self._ansible is not None:
            yield self._ansible.parts()

    def _beside(self, path: str, folder: str, name: str, what: str) -> Vars:
        """Return the variables in files beside an inventory, unless they are those of an Ansible source beside it."""
        directory, other = os.path.dirname(path), self._ansible
        named = () if other is None else other.hosts if folder == "host_vars" else other.groups
        if other is not None and directory in other.directories and name in named:
            return {}
        return variable_files.beside(directory, folder, name, what)


def _is_program(path: str) -> bool:
    """Return whether a file is a script or binary, and executable. Some file systems call all files executable."""
    if not os.access(path, os.X_OK | os.R_OK) or not os.path.isfile(path):
        return False
    with open(path, "rb") as stream:
        return stream.read(4).startswith((b"#!", b"\x7fELF"))


def _is_yaml(ending: str, data: bytes) -> bool:
    """Return whether a file is YAML or JSON. If its ending does not fit, its first line other than comments decides."""
    lines = (line for line in data.splitlines() if line.strip() and not line.startswith(b"#"))
    first = next(lines, b"")
    if ending in (*YAML, ".json"):
        return _SECTION.match(first) is None
    return ending != ".ini" and _YAML_LINE.match(first) is not None


def is_ansible(root: YamlNode | None) -> bool:
    """Return whether a YAML tree is an inventory of Ansible: its keys are groups, not `hosts` and `groups`."""
    if not isinstance(root, Mapping):
        return False
    if isinstance(root.items.get("plugin"), Scalar):  # beside which there can be `groups:`
        return True
    if any(key in root.items for key in yaml_inventory.KEYS):
        return False
    if any(key in root.items for key in ("all", "ungrouped", "_meta")):
        return True
    groups = [node for node in root.items.values() if isinstance(node, Mapping)]
    return any(key in node.items for node in groups for key in ("hosts", "children", "vars"))
