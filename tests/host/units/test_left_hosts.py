"""Hosts that left a playbook are listed, and removed only on request. Hosts of added units need no play."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.host.units.fabric import Fabric, hooks
from tests.lab import Host

PLAY = """
- service: web
  hosts: {0}
  charm: charms/web
  resources: [{{directory: /srv/web}}]
"""


@pytest.fixture
def fabric(tmp_path: Path, bare_pair: list[Host]) -> Fabric:
    made = Fabric(tmp_path, bare_pair)
    made.charm("web", {})
    made.play(PLAY.format("light*"))
    return made


def test_a_host_that_left_is_removed_only_by_prune_hosts(fabric: Fabric, pair: list[Host]) -> None:
    fabric.apply()
    fabric.play(PLAY.format("light1"))
    left = {"host": "light2", "address": True, "units": ["web/1"], "resources": ["directory:/srv/web"]}
    command = "statecfg destroy --hosts light2 site.yml"
    for words in (
        ["plan", "site.yml"],
        ["plan", "site.yml", "-l", "light1"],
        ["apply", "site.yml", "--yes", "--prune"],
    ):
        ran = fabric(*words)
        assert "light2  1 unit: web/1; 1 resource: directory:/srv/web" in ran.out and command in ran.out, ran.out
    assert fabric("plan", "site.yml", "--json").json()["left_hosts"] == [{**left, "command": command}]
    assert pair[1].path("/srv/web").is_dir()
    assert "statecfg apply site.yml --prune-hosts --yes" in fabric("plan", "site.yml", "--prune-hosts").out
    planned = fabric("plan", "site.yml", "--prune-hosts", "--json").json()
    assert "left_hosts" not in planned and planned["hosts"]["light2"]["summary"]
    assert "also pass --yes" in fabric("apply", "site.yml", "--prune-hosts", code=5, STATECFG_YES="1").err
    for more in (["-l", "light1"], ["-t", "x"]):
        refused = fabric("apply", "site.yml", "--yes", "--prune-hosts", *more, code=5).err
        assert "can't be combined with -l or -t" in refused
    fabric.forget()
    report = fabric("apply", "site.yml", "--yes", "--prune-hosts", "--json").json()
    assert sorted(report["hosts"]) == ["light1", "light2"] and "left_hosts" not in report
    assert fabric.noted(pair[1]) == ["stop web/1  []"]
    assert not pair[1].path("/srv/web").exists() and pair[0].path("/srv/web").is_dir()
    assert sorted(fabric.units()) == ["web/0"]
    assert "left" not in fabric("plan", "site.yml").out


def test_the_printed_command_empties_a_host_that_left_a_plain_play(fabric: Fabric, pair: list[Host]) -> None:
    play = "hosts: {0}\nresources: [{{directory: /srv/plain}}]\n"
    fabric.play(play.format("light*"))
    fabric.apply()
    assert "left" not in fabric("plan", "site.yml").out
    fabric.play(play.format("light1"))
    applied = fabric("apply", "site.yml", "--yes").out
    assert "light2  1 resource: directory:/srv/plain" in applied, applied
    assert pair[1].path("/srv/plain").is_dir()
    (left,) = fabric("plan", "site.yml", "--json").json()["left_hosts"]
    assert (left["host"], left["units"], left["resources"]) == ("light2", [], ["directory:/srv/plain"])
    (printed,) = re.findall(r"statecfg destroy --hosts .*?\.yml", applied)
    assert printed == left["command"]
    fabric(*shlex.split(printed)[1:], "--yes")
    assert not pair[1].path("/srv/plain").exists() and pair[0].path("/srv/plain").is_dir()
    assert "left" not in fabric("plan", "site.yml").out


def test_the_resources_of_a_left_host_come_from_all_its_newest_runs(fabric: Fabric, pair: list[Host]) -> None:
    """Runs of some tags, failed applies and removals are counted together; plans are not."""
    entries = (
        "{directory: /srv/web}, {directory: /srv/tagged, tags: [t]}, {directory: /srv/gone}, "
        "{command: fails, argv: ['false'], unless: 'test -e /srv/fine', effects: {}}"
    )
    play = PLAY.replace("{{directory: /srv/web}}", entries.replace("{", "{{").replace("}", "}}"))
    fabric.play(play.format("light*"))
    fabric.apply(code=1)
    fabric.play(play.format("light*").replace(", {directory: /srv/gone}", ""))
    fabric("apply", "site.yml", "--yes", "--prune", code=1)
    fabric("apply", "site.yml", "--yes", "-t", "t")
    fabric.play(PLAY.format("light1"))
    for _ in range(2):
        (left,) = fabric("plan", "site.yml", "--json").json()["left_hosts"]
        assert left["resources"] == ["directory:/srv/tagged", "directory:/srv/web"]


def test_a_host_gone_from_the_inventory_is_listed_and_kept(fabric: Fabric, pair: list[Host]) -> None:
    fabric.apply()
    fabric.play(PLAY.format("light1"))
    inventory = fabric.root / "inventory.yml"
    inventory.write_text("\n".join(line for line in inventory.read_text().splitlines() if "light2" not in line) + "\n")
    ran = fabric("apply", "site.yml", "--yes", "--prune-hosts")
    assert "light2  1 unit: web/1" in ran.out and "not in the inventory" in ran.out and "--hosts light2" not in ran.out
    assert pair[1].path("/srv/web").is_dir() and sorted(fabric.units()) == ["web/0", "web/1"]
    fabric("hosts", "forget", "light2", "--yes")
    assert "left" not in fabric("plan", "site.yml").out and sorted(fabric.units()) == ["web/0"]


def test_forgetting_a_host_makes_its_units_depart(fabric: Fabric, pair: list[Host]) -> None:
    fabric.charm("web", {}, ["ring"])
    fabric.play(PLAY.format("light*") + "- relations: [[web:ring]]\n")
    fabric.apply()
    fabric("service", "remove-unit", "web/1")  # this unit never stops, as its host is forgotten first
    fabric("hosts", "forget", "light2", "--yes")
    assert hooks(fabric.apply("-l", "light1")["light1"], "web/0") == ["ring-relation-departed web/1"]


def test_a_host_without_a_play_can_get_a_unit(fabric: Fabric, pair: list[Host]) -> None:
    fabric.play(PLAY.format("light1"))
    fabric.apply()
    fabric("service", "add-unit", "web", "--host", "light2")
    planned = fabric("plan", "site.yml", "--json").json()
    assert hooks(planned["hosts"]["light2"], "web/1") == ["install", "config-changed", "start"]
    done = fabric.apply("-l", "light2")
    assert hooks(done["light2"], "web/1") == ["install", "config-changed", "start"]
    assert pair[1].path("/srv/web").is_dir() and "light1" not in done
    assert "left" not in fabric("plan", "site.yml").out
    fabric("service", "remove-unit", "web/1")
    assert hooks(fabric.apply()["light2"], "web/1") == ["stop"]
    assert sorted(fabric.units()) == ["web/0"]
    assert "statecfg destroy --hosts light2 site.yml" in fabric("plan", "site.yml").out
