"""Hooks select hosts by the inventory of the run, even if it is not the project's own inventory."""

from __future__ import annotations

from pathlib import Path

from tests.host.command import statecfg

PLAY = """
hosts: racks
resources:
  - file: {place}
    content: x
"""


def test_hooks_select_hosts_by_the_given_inventory(tmp_path: Path) -> None:
    (tmp_path / "statecfg.toml").touch()
    (tmp_path / "play.yml").write_text(PLAY.format(place=tmp_path / "made"))
    (tmp_path / "other.yml").write_text("hosts:\n  box: {transport: local}\ngroups:\n  racks: {hosts: [box]}\n")
    kind = tmp_path / "hooks/tell.hook"
    kind.mkdir(parents=True)
    (kind / "post-create").write_text("#!/bin/sh\ntouch ../../told\n")
    (kind / "post-create").chmod(0o755)
    (tmp_path / "hooks/tell.yml").write_text(
        "metadata: {name: tell}\nspec:\n  exec: {type: tell}\n  events: [post-create]\n  select: {hosts: racks}\n"
    )
    store = str(tmp_path / "store.db")
    arguments = ("play.yml", "-i", "other.yml", "--store", store)
    planned = statecfg("plan", *arguments, "--json", cwd=tmp_path).json()
    assert [each["hook"] for each in planned["hosts"]["box"]["hooks"]] == ["tell"]
    assert not (tmp_path / "told").exists()
    statecfg("apply", *arguments, "--yes", cwd=tmp_path)
    assert (tmp_path / "told").exists()
    registration = tmp_path / "hooks/tell.yml"
    registration.write_text(registration.read_text().replace("racks", "'racks,!box'"))
    planned = statecfg("plan", *arguments, "--json", cwd=tmp_path).json()
    assert "hooks" not in planned["hosts"]["box"]
