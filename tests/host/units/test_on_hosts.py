"""Services on real hosts over real SSH: a first apply with relations, changes, errors and destroy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.host.units.fabric import WEB_AND_DB, Fabric, hooks
from tests.lab import Host

DB = {
    "db-relation-joined": """
relation-set host="$(unit-get private-address)" user=web password="secret-$(config-get length)" && open-port 5432
""",
}
WEB = {
    "db-relation-changed": """
host=$(relation-get host) user=$(relation-get user) password=$(relation-get password)
[ -n "$host" ] || exit 0
printf '%s %s %s\\n' "$host" "$user" "$password" > /srv/web.conf
relation-set ready=yes
""",
}


@pytest.fixture
def fabric(tmp_path: Path, bare_pair: list[Host]) -> Fabric:
    made = Fabric(tmp_path, bare_pair)
    made.charm("db", DB, ["db"])
    made.charm("web", WEB, ["db"])
    made.play(WEB_AND_DB.format(*(host.name for host in bare_pair)))
    return made


def test_one_apply_installs_and_relates_two_services(fabric: Fabric, pair: list[Host]) -> None:
    db, web = pair
    plan = fabric("plan", "site.yml", "--json").json()["hosts"]
    assert hooks(plan[db.name], "db/0")[:3] == ["install", "config-changed", "start"]
    assert "db-relation-changed db/0" in hooks(plan[web.name], "web/0")
    assert not fabric.store.exists()
    done = fabric.apply()
    assert web.path("/srv/web.conf").read_text() == f"{db.address} web secret-8\n"
    ran = hooks(done[web.name], "web/0")
    assert ran[:3] == ["install", "config-changed", "start"]
    assert ran[3:5] == ["db-relation-joined db/0", "db-relation-changed db/0"]
    assert hooks(done[db.name], "db/0")[-1] == "db-relation-changed web/0"
    again = fabric.apply()
    assert not any(unit["hooks"] for host in again.values() for unit in host.get("units", ()))


def test_a_failed_hook_runs_again_at_the_next_apply(fabric: Fabric, pair: list[Host]) -> None:
    web = pair[1]
    fabric.charm("web", {**WEB, "start": "relation-ids db >/dev/null; test -e /srv/go\n"}, ["db"])
    done = fabric.apply(code=1)
    (unit,) = done[web.name]["units"]
    assert unit["state"] == "start_error" and "exit code 1" in unit["error"]
    assert not web.path("/srv/web.conf").exists()
    web.path("/srv/go").write_text("")
    fabric.forget()
    try:
        fabric.apply()
    finally:
        web.path("/srv/go").unlink()
    assert fabric.noted(web)[0].startswith("start web/0")
    assert web.path("/srv/web.conf").exists()


def test_destroy_ends_relations_and_units_before_resources(fabric: Fabric, pair: list[Host]) -> None:
    fabric.apply()
    fabric.forget()
    fabric("destroy", "site.yml", "--yes")
    for host, unit, other in ((pair[0], "db/0", "web/0"), (pair[1], "web/0", "db/0")):
        assert [line.split(" [")[0] for line in fabric.noted(host)] == [
            f"db-relation-departed {unit} {other}",
            f"db-relation-broken {unit} ",
            f"stop {unit} ",
        ]
    assert not pair[0].path("/srv/db").exists()
    for name in ("db", "db/0"):  # the log of removed units is kept
        assert fabric("service", "log", name, "--limit", "1", "--json").json()["log"][0]["hook"] == "stop"
    fabric.apply()
    assert sorted(fabric.units()) == ["db/1", "web/1"]


def test_the_next_apply_passes_a_changed_setting_to_the_unit(fabric: Fabric, pair: list[Host]) -> None:
    fabric.apply()
    fabric.forget()
    fabric("service", "set", "db", "length=12")
    fabric.apply()
    assert [line.split(" [")[0].strip() for line in fabric.noted(pair[0])] == ["config-changed db/0"]
    assert json.loads(fabric("service", "get", "db", "length", "--json").out)


def test_the_history_of_a_host_contains_failed_hooks(fabric: Fabric, pair: list[Host]) -> None:
    """Its runs last as long as their hooks, also if nothing but a hook was due."""
    web = pair[1]

    def newest() -> dict[str, Any]:
        found = fabric("run-history", web.name, "--json").json()["hosts"][web.name]["history"]
        assert sum(run["status"] == "running" for run in found) == 0
        return {**found[0], "seconds": found[0]["ended"] - found[0]["started"]}

    fabric.charm("web", {**WEB, "start": "sleep 0.5; test -e /srv/go\n"}, ["db"])
    for _ in range(2):  # the second run changes no resource
        fabric.apply(code=1)
        run = newest()
        assert (run["status"], run["mode"], run["playbook"]) == ("failed", "apply", "fabric/site.yml")
        assert run["seconds"] > 0.5
    web.path("/srv/go").write_text("")
    fabric.apply()
    assert newest()["status"] == "ok"
    fabric.charm("web", {**WEB, "stop": "exit 3\n"}, ["db"])
    fabric("service", "refresh", "web", code=None)
    fabric.apply()
    fabric("destroy", "site.yml", "--yes", code=1)
    assert (newest()["status"], newest()["mode"]) == ("failed", "destroy")


def test_plans_and_reports_list_units_that_are_removed_or_upgraded(fabric: Fabric, pair: list[Host]) -> None:
    """The charm has no hooks for either, and the directory of a removed unit may contain its data."""
    db, _ = pair
    (fabric.root / "charms/app/hooks").mkdir(parents=True)
    start = fabric.root / "charms/app/hooks/start"
    start.write_text("#!/bin/sh\n")
    start.chmod(0o755)
    fabric.play(f"- service: app\n  hosts: {db.name}\n  charm: charms/app\n  resources:\n    - directory: /srv/app\n")

    def changes(verb: str, *words: str, code: int | None = 0) -> dict[str, str]:
        host = fabric(verb, "site.yml", "--json", *words, code=code).json()["hosts"][db.name]
        return {unit["unit"]: unit["change"] for unit in host.get("units", ()) if "change" in unit}

    fabric.apply()
    assert fabric("plan", "site.yml", "--detailed-exitcode").out.endswith("0 to change, 0 to destroy.\n")
    assert fabric("verify", "site.yml").out.endswith(
        "Drift: 0 changed on the host, 0 in the definition, 1 as defined.\n"
    )
    (fabric.root / "charms/app/config").write_text("new\n")
    planned = fabric("plan", "site.yml", "--detailed-exitcode", code=2).out
    assert "  ~ app/0  its charm is upgraded: changes of the charm's files on the host are lost\n" in planned
    assert "Plan: 0 to add, 1 to change, 0 to destroy" in planned
    assert changes("plan") == {"app/0": "upgrade"} == changes("verify", code=2)
    fabric("plan", "site.yml", "--out", "it.plan")
    done = fabric("apply", "it.plan").out
    assert "  ~ app/0  its charm was upgraded\n" in done and "0 added, 1 changed, 0 destroyed" in done
    assert fabric("plan", "site.yml", "--detailed-exitcode").code == 0

    fabric("plan", "site.yml", "--out", "it.plan")
    fabric("service", "remove-unit", "app/0")
    planned = fabric("plan", "site.yml", "--detailed-exitcode", code=2).out
    assert "  - app/0  removed, with its directory and all data in it\n" in planned
    assert "Plan: 0 to add, 0 to change, 1 to destroy" in planned
    assert changes("plan") == {"app/0": "remove"} == changes("verify", code=2)
    assert ", 1 in the definition, 1 as defined.\n" in fabric("verify", "site.yml", code=2).out
    assert fabric("apply", "it.plan", code=6).code == 6
    done = fabric("apply", "site.yml", "--yes", "--markdown-into", "report.md").out
    assert "  - app/0  removed, with its directory\n" in done and "0 changed, 1 destroyed" in done
    assert "1 destroyed" in (fabric.root / "report.md").read_text()
