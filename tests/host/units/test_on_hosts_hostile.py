"""Services on real hosts when something goes wrong: hooks that never settle, removed units, printed secrets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.host.units.fabric import Fabric, hooks
from tests.lab import Host

PLAY = """
- service: a
  hosts: light1
  charm: charms/a
- service: b
  hosts: light2
  charm: charms/b
- relations:
    - [a:x, b:x]
"""
LONELY = """
- service: a
  hosts: light1
  charm: charms/a
  timeout: PT1S
  schema: {pw: {type: secret}, size: {type: int}}
  settings: {pw: !secret {env: PW}}
"""
SECRET = "Hunter-22-geheim"


@pytest.fixture
def fabric(tmp_path: Path, bare_pair: list[Host]) -> Fabric:
    made = Fabric(tmp_path, bare_pair)
    made.charm("a", {}, ["x"])
    made.charm("b", {}, ["x"])
    made.play(PLAY)
    return made


def test_removing_a_unit_stops_it_and_the_others_go_on(fabric: Fabric, pair: list[Host]) -> None:
    fabric.apply()
    fabric("service", "add-unit", "b", "--host", "light1")
    said = fabric("service", "remove-unit", "b/0").out
    assert said == "b/0: will be stopped and removed. The next `statecfg apply site.yml` makes this change.\n"
    plan = fabric("plan", "site.yml", "--json").json()["hosts"]
    assert "x-relation-departed b/0" in hooks(plan["light1"], "a/0")
    fabric.forget()
    done = fabric.apply()
    assert [unit["state"] for unit in done["light2"]["units"]] == ["gone"]
    assert fabric.noted(pair[1]) == ["x-relation-departed b/0 a/0 []", "x-relation-broken b/0  []", "stop b/0  []"]
    assert {"x-relation-departed b/0", "x-relation-joined b/1"} < set(hooks(done["light1"], "a/0"))
    assert sorted(fabric.units()) == ["a/0", "b/1"]
    assert not pair[1].path("/var/lib/statecfg/projects/fabric/units/b-0").exists()


def test_units_that_never_settle_are_reported_and_can_be_repaired(fabric: Fabric, pair: list[Host]) -> None:
    for name in "ab":
        fabric.charm(name, {"x-relation-changed": "n=$(relation-get n)\nrelation-set n=$((${n:-0} + 1))\n"}, ["x"])
    done = fabric.apply(code=1)
    wrong = [(host, unit) for host in done.values() for unit in host["units"] if unit.get("error")]
    assert wrong  # one of them, or both at the same time
    for host, unit in wrong:
        assert unit["error"].startswith("stopped an endless loop: x-relation-changed about ") and not unit["settled"]
        assert "react to each change with another change" in host["error"]["hint"]
    names = sorted(unit["unit"] for _, unit in wrong)
    assert f"hooks kept triggering each other: {', '.join(names)}" in fabric("service", "list").out
    assert fabric("service", "list", "--json").json()["services"][0]["relations"][0]["unsettled"] == names
    fabric.charm("a", {"x-relation-changed": "exit 0\n"}, ["x"])
    assert not any(unit.get("error") for host in fabric.apply().values() for unit in host["units"])
    assert not any(unit["hooks"] for host in fabric.apply().values() for unit in host["units"])
    assert "settle" not in fabric("service", "list").out


def test_retrying_a_failed_hook_does_not_apply_the_playbook(fabric: Fabric, pair: list[Host]) -> None:
    fabric.charm("a", {"stop": "test -e /srv/may-stop\n"}, ["x"])
    fabric.apply()
    fabric("destroy", "site.yml", "--yes", code=1)
    fabric.forget()
    fabric("service", "resolved", "a/0", "--retry", code=1)
    assert fabric.noted(pair[0]) == ["stop a/0  []"]
    pair[0].write("/srv/may-stop", "")
    fabric("service", "resolved", "a/0", "--retry")
    assert fabric.units() == {}
    fabric.apply()
    assert sorted(fabric.units()) == ["a/1", "b/1"]


def test_failed_resources_stop_hooks_on_their_host_only(fabric: Fabric, pair: list[Host]) -> None:
    resources = "  resources:\n    - command: fails\n      argv: ['false']\n"
    fabric.play(PLAY.replace("charms/a\n", "charms/a\n" + resources))
    done = fabric.apply(code=1)
    assert fabric.noted(pair[0]) == [] and done["light2"]["units"][0]["state"] == "started"
    fabric.play(PLAY)
    fabric.apply()
    assert "x-relation-changed b/0 a/0 [a/0]" in fabric.noted(pair[1])


def test_relations_settle_when_hosts_are_applied_one_at_a_time(fabric: Fabric, pair: list[Host]) -> None:
    fabric.charm("a", {"x-relation-joined": "relation-set v=1\n"}, ["x"])
    fabric.apply("--limit", "light1")
    assert fabric.noted(pair[1]) == []
    fabric.apply("--limit", "light2")
    fabric.apply("--limit", "light1")
    fabric.forget()
    assert "x-relation-changed a/0" in hooks(fabric.apply("--forks", "1")["light2"], "b/0")


def test_logs_of_hooks_mask_secrets_and_split_floods(fabric: Fabric, pair: list[Host]) -> None:
    say = "config-get pw; config-get --format=json\n"
    flood = "yes 'a line that is said again and again' | head -n 200000; yes | tr -d '\\n' | head -c 20000\n"
    fabric.charm("a", {"config-changed": say + "config-get pw > /srv/pw\n", "start": flood})
    fabric.play(LONELY.replace("PT1S", "PT1M"))
    ran = fabric("apply", "site.yml", "--yes", "-v", PW=SECRET)
    assert pair[0].read("/srv/pw") == f"{SECRET}\n"
    assert SECRET not in ran.out + ran.err and "<secret PW>" in ran.err
    assert not [path for path in fabric.root.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    log = fabric("service", "log", "a/0", "--limit", "10000", "--json").json()["log"]
    assert len(log) == 10_000 and max(len(line["text"]) for line in log) <= 4096
    assert sum(len(line["text"]) for line in log[-8:]) > 20_000 and not any("\n" in line["text"] for line in log)


def test_a_hanging_hook_and_its_children_are_ended(fabric: Fabric, pair: list[Host]) -> None:
    hang = "trap '' TERM\nsetsid sleep 61 &\nsleep 62\n"
    fabric.charm("a", {"config-changed": "config-get --format=json > /srv/seen\n", "start": hang})
    fabric.play(LONELY)
    done = json.loads(fabric("apply", "site.yml", "--yes", "--json", code=1, PW=SECRET).out)["hosts"]["light1"]
    (unit,) = done["units"]
    assert unit["state"] == "start_error" and "still running after 1 s" in unit["error"]
    assert "`statecfg service log a/0`" in done["error"]["hint"]
    assert pair[0].run(["pgrep", "-x", "sleep"], check=False).stdout == ""
    assert json.loads(pair[0].read("/srv/seen")) == {"pw": SECRET, "size": None}
