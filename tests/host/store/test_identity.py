"""Each store has an identity, even if an earlier version created the store."""

from __future__ import annotations

from pathlib import Path

from statecfg.playbook.project import Project
from statecfg.store import identity, migrations, opened
from tests.host import upgrades


def test_each_store_keeps_its_own_unique_identity(tmp_path: Path) -> None:
    project = Project(tmp_path)
    one = identity.of(project, str(tmp_path / "one.db"))
    assert one == identity.of(project, str(tmp_path / "one.db"))
    assert one != identity.of(project, str(tmp_path / "two.db"))


def test_a_store_of_an_earlier_version_gets_an_identity(tmp_path: Path) -> None:
    upgrades.store(tmp_path / "old.db")
    assert len(identity.of(Project(tmp_path), str(tmp_path / "old.db"))) == 32
    with opened(url=str(tmp_path / "old.db")) as store:
        assert store.schema() == migrations.SCHEMA
