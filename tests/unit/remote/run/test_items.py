"""Nodes that a host repeats for the items of a list: planned on imagined hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from statecfg.problems import InvalidInput
from statecfg.testing import Definitions, HostPlan, ImaginedHost

FILES = {"/etc/app/b.conf": "b", "/etc/app/a.conf": "a", "/etc/app/.hidden.conf": "", "/etc/app/c.txt": "c"}
USERS: dict[str, Any] = {"ann": {"uid": 1500}, "bob": {"uid": 1501, "groups": ["staff"]}, "daemon": {"uid": 1}}


@pytest.fixture
def definitions(tmp_path: Path) -> Definitions:
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "inventory.yml").write_text("hosts: {web1: {}}\n")
    return Definitions(tmp_path)


def planned(definitions: Definitions, entries: str, on: Any = None, **host: Any) -> HostPlan:
    (definitions.root / "playbooks/one.yml").write_text(f"hosts: web1\nresources:\n{entries}")
    return definitions.plan("playbooks/one.yml", on=on or ImaginedHost(**host))


def refused(definitions: Definitions, entries: str) -> str:
    with pytest.raises(InvalidInput) as raised:
        planned(definitions, entries)
    return "; ".join(f"{problem.code} {problem.detail}" for problem in raised.value.problems)


MODES = """\
  - file: "{{ host_item }}"
    mode: "0600"
    for_each_host: {glob: /etc/app/*.conf}
"""


def test_paths_become_nodes_in_a_fixed_order(definitions: Definitions) -> None:
    plan = planned(definitions, MODES, files=FILES)
    assert plan.layers == [["file:{host_item}", "file:/etc/app/a.conf", "file:/etc/app/b.conf"]]
    assert plan["file:{host_item}"].excluded == "its items: 2: file:/etc/app/a.conf, file:/etc/app/b.conf"
    assert plan.changed == ["file:/etc/app/a.conf", "file:/etc/app/b.conf"]
    assert plan.mode("/etc/app/a.conf") == "0600" and plan.mode("/etc/app/c.txt") == "0644"
