"""Compare what statecfg and Ansible make of an inventory. The cases are the directories beside this file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from statecfg.dialects import inventories
from statecfg.graph.value import Value
from statecfg.playbook.inventory import Inventory

HERE = Path(__file__).parent
_UNSAFE = "__ansible_unsafe"
_MISSING = object()


def cases() -> list[Path]:
    """Return the directories of all cases."""
    return sorted(path for path in HERE.iterdir() if path.name[:2].isdigit())


def sources(case: Path) -> list[Path]:
    """Return the sources of a case: those in its file `sources`, or the only file or directory `inventory` in it."""
    listed = case / "sources"
    if listed.exists():
        return [case / line for line in listed.read_text().split()]
    found = [path for path in sorted(case.rglob("*")) if path.name.split(".")[0] in ("hosts", "inventory")]
    return [next(path for path in found if path.is_file() or path.parent == case)]


def recorded(case: Path) -> dict[str, Any]:
    """Return the recorded output of Ansible."""
    found: dict[str, Any] = json.loads((case / "recorded.json").read_text())
    return found


def load(paths: Sequence[Path], directory: Path) -> Inventory:
    """Return the inventory that statecfg reads.

    :param paths: the sources
    :param directory: has the inventory `both.yml`, which names the sources, if there are several
    """
    return inventories.load(paths[0] if len(paths) == 1 else directory / "both.yml")


def differences(expected: dict[str, Any], found: Inventory) -> Iterator[str]:
    """Yield each difference between the output of `ansible-inventory --list` and an inventory of statecfg."""
    yield from _sets("hosts", _members(expected, "all"), found.hosts)
    groups = {name: set(found.members(name)) for name in found.groups if found.members(name)}
    wanted = {name: _members(expected, name) for name in expected if name not in ("all", "_meta")}
    wanted = {name: hosts for name, hosts in wanted.items() if hosts}
    yield from _sets("groups", wanted, groups)
    for name in sorted(groups.keys() & wanted.keys()):
        yield from _sets(f"hosts of group {name}", wanted[name], groups[name])
    for name, host in found.hosts.items():
        values, other = expected["_meta"]["hostvars"].get(name, {}), dict(host.vars)
        for key in sorted(values.keys() | other.keys()):
            one, two = _text(values.get(key, _MISSING)), _text(other.get(key, _MISSING))
            if one != two:
                yield f"{name}: {key} is {one} in Ansible, {two} in statecfg"


def _sets(what: str, expected: Iterable[str], found: Iterable[str]) -> Iterator[str]:
    one, two = set(expected), set(found)
    if one - two:
        yield f"{what} only in Ansible: {', '.join(sorted(one - two))}"
    if two - one:
        yield f"{what} only in statecfg: {', '.join(sorted(two - one))}"


def _members(listed: dict[str, Any], group: str) -> set[str]:
    """Return the hosts of a group and of the groups in it."""
    content = listed.get(group, {})
    return set(content.get("hosts", ())).union(*(_members(listed, name) for name in content.get("children", ())))


def _text(value: Any) -> str:
    return "not set" if value is _MISSING else json.dumps(_plain(value), sort_keys=True, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """Return a value without secrets and without the marks of Ansible."""
    if isinstance(value, Value):
        return value.reveal()
    if isinstance(value, dict):
        return value[_UNSAFE] if _UNSAFE in value else {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
