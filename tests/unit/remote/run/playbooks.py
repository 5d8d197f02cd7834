"""Playbooks that tests plan on imagined hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from statecfg.testing import Definitions, HostPlan, ImaginedHost


@pytest.fixture
def definitions(tmp_path: Path) -> Definitions:
    """Give a project with one host."""
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "inventory.yml").write_text("hosts: {web1: {}}\n")
    return Definitions(tmp_path)


def planned(definitions: Definitions, entries: str, on: Any = None, **host: Any) -> HostPlan:
    """Return the plan of a playbook with these entries on an imagined host."""
    (definitions.root / "playbooks/one.yml").write_text(f"hosts: web1\nresources:\n{entries}")
    return definitions.plan("playbooks/one.yml", on=on or ImaginedHost(**host))
