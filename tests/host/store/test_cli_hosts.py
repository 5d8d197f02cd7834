"""`statecfg hosts` as users run it: list, show, tag, set and forget, and its error messages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from statecfg.remote.graph.events import HostEvent
from statecfg.store import hosts, opened
from statecfg.store.migrations import SCHEMA
from tests.host.command import Ran, statecfg

Run = Callable[..., Ran]
INVENTORY = "hosts: {web1: , web2: , db1: }\ngroups: {web: {hosts: [web1, web2]}}\n"


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Give the path of an SQLite store. Other tests cover PostgreSQL."""
    return str(tmp_path / "store.db")


@pytest.fixture
def run(url: str, tmp_path: Path) -> Run:
    """Give a function that runs `statecfg hosts` in a project with three hosts and its own store."""
    (tmp_path / "inventory.yml").write_text(INVENTORY)

    def made(*arguments: str, code: int = 0, stdin: str = "") -> Ran:
        return statecfg("hosts", *arguments, cwd=tmp_path, code=code, stdin=stdin, STATECFG_STORE=url)

    return made


@pytest.fixture
def met(url: str) -> None:
    """Store a host on which a playbook was installed."""
    with opened(url=url) as store:
        hosts.check_in(store, "web1", {"hostname": "web1", "os": {"id": "debian"}}, "l1", "b1")
        with store.transaction() as connection:
            hosts.installed_in(connection, store.project, "web1", "playbooks/web.yml")
        hosts.bind(store, "web1", "playbooks/web.yml")


def test_a_new_store_lists_no_hosts(run: Run) -> None:
    assert run().out == "0 hosts\n"
    assert run("--json").json() == {"format": 1, "hosts": {}}


@pytest.mark.usefixtures("met")
def test_list_and_show_print_the_stored_data_of_hosts(run: Run) -> None:
    run("tag", "db1", "blue")
    lines = run().out.splitlines()
    assert lines[0].split() == ["HOST", "LAST", "CHECK-IN", "TAGS", "GROUPS", "PLAYBOOKS", "INSTALLED"]
    assert lines[1].split() == ["db1", "never", "blue"]
    assert lines[2].startswith("web1  20") and lines[2].split()[3:] == ["web", "playbooks/web.yml", "playbooks/web.yml"]
    assert lines[3] == "2 hosts"
    shown = run("show", "web1").out
    for text in (
        "last check-in  20",
        "playbooks      playbooks/web.yml",
        "installed      playbooks/web.yml, 20",
        "debian",
    ):
        assert text in shown
    data = run("show", "web1", "--json").json()
    assert data == {"format": 1, "hosts": {"web1": run("--json").json()["hosts"]["web1"]}}
    host = data["hosts"]["web1"]
    assert (host["groups"], host["playbooks"], host["ledger"]) == (["web"], ["playbooks/web.yml"], "l1")


def test_tag_adds_and_removes_tags_and_refuses_invalid_ones(run: Run) -> None:
    assert run("tag", "web1", "canary", "blue").out == "web1: blue, canary\n"
    assert run("tag", "web1", "blue", "--remove").out == "web1: canary\n"
    assert run("tag", "web1", "canary", "--remove").out == "web1: no tags\n"
    for wrong in ("", "a b", "-x", "\x1b[31m", "x" * 101):
        ran = run("tag", "web1", "--", wrong, code=5)
        assert "is not a valid tag" in ran.err and "\x1b" not in ran.err


def test_set_changes_metadata_and_refuses_wrong_arguments(run: Run) -> None:
    ran = run("set", "web1", "rack=12", "spare=true", "name=a=b", "empty=", 'deep={"a": [1]}', "text=00")
    assert ran.out.startswith("web1: {")
    expected = {"rack": 12, "spare": True, "name": "a=b", "empty": "", "deep": {"a": [1]}, "text": "00"}
    assert run("show", "web1", "--json").json()["hosts"]["web1"]["metadata"] == expected
    assert run("set", "web1", "--remove", "rack", "--remove", "deep", "spare=no").out.count(":") == 5
    assert run("set", "web1", "--clear").out == "web1: {}\n"
    for wrong in (["set", "web1"], ["set", "web1", "rack"], ["set", "web1", "=1"], ["set", "web1", "a=1", "--clear"]):
        run(*wrong, code=5)


@pytest.mark.parametrize("words", [["tag", "wbe1", "x"], ["set", "wbe1", "x=1"]])
def test_changing_an_unknown_host_suggests_a_similar_name(run: Run, words: list[str]) -> None:
    ran = run(*words, code=5)
    assert "SC0404" in ran.err and "did you mean `web1`" in ran.err
    assert run("--json").json()["hosts"] == {}


@pytest.mark.usefixtures("met")
@pytest.mark.parametrize("words", [["show"], ["forget", "--yes"]])
def test_showing_or_forgetting_an_unmet_host_fails(run: Run, words: list[str]) -> None:
    assert "did you mean `web1`" in run(*words, "wbe1", code=5).err
    assert "never contacted" in " ".join(run(*words, "db1", code=5).err.split())


def test_the_local_machine_can_be_tagged(run: Run) -> None:
    assert run("tag", "@local", "desk").out == "@local: desk\n"


@pytest.mark.usefixtures("met")
def test_forget_without_yes_fails_and_keeps_the_host(run: Run) -> None:
    assert "--yes" in run("forget", "web1", code=5).err
    assert list(run("--json").json()["hosts"]) == ["web1"]


@pytest.mark.parametrize("words", [["show"], ["tag"], ["forget", "--yes"], ["unbind", "web1"]])
def test_a_host_name_that_is_not_utf8_is_refused(run: Run, words: list[str]) -> None:
    assert "it is not UTF-8" in run(*words, "\udcff", *(["x"] if words == ["tag"] else []), code=5).err


def test_an_unknown_verb_suggests_existing_verbs(run: Run) -> None:
    assert "Did you mean `forget`?" in run("forgte", "web1", code=5).err
    assert "show, tag, set" in run("xyzzy", code=5).err


def test_commands_use_the_store_named_in_the_project_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STATECFG_STORE", raising=False)
    (tmp_path / "inventory.yml").write_text(INVENTORY)
    (tmp_path / "statecfg.toml").write_text('store = "state/team.db"\n')
    ran = statecfg("hosts", cwd=tmp_path, code=8)
    assert " does not exist" in ran.err
    (tmp_path / "state").mkdir()
    statecfg("hosts", "tag", "web1", "a", cwd=tmp_path)
    assert statecfg("store", "url", cwd=tmp_path).out == f"{tmp_path}/state/team.db\n"
    assert "sound, schema" in statecfg("store", "check", cwd=tmp_path).out
    assert statecfg("store", "migrate", cwd=tmp_path).out == f"{tmp_path}/state/team.db: schema {SCHEMA}\n"


@pytest.mark.parametrize("flag", [["--store", "mysql://ann:s3cr3t@db/x"], ["--store", "postgresql://ann:s3cr3t@db"]])
def test_an_invalid_store_address_is_refused_without_showing_its_password(tmp_path: Path, flag: list[str]) -> None:
    ran = statecfg("hosts", *flag, cwd=tmp_path, code=5)
    assert "SC0413" in ran.err and "s3cr3t" not in ran.err


def test_json_output_reports_store_problems(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("broken")
    ran = statecfg("hosts", "--store", "store.db", "--json", cwd=tmp_path, code=8)
    (problem,) = ran.json()["problems"]
    assert (ran.json()["error"], problem["code"]) == ("store", "store")
    assert str(tmp_path / "store.db") in problem["detail"] and "backup" in problem["help"]


def test_bind_unbind_and_forget_run_their_hooks_once(run: Run, tmp_path: Path) -> None:
    """Binding twice runs the hook once. Unbind and forget run theirs after the playbook's file is gone."""
    playbook, seen = tmp_path / "playbooks/web.yml", tmp_path / "seen"
    whose = f"{tmp_path.name}/playbooks/web.yml"
    playbook.parent.mkdir()
    playbook.write_text("resources: []\n")
    folder = tmp_path / "hooks/note.hook"
    folder.mkdir(parents=True)
    for event in (HostEvent.BOUND, HostEvent.UNBOUND, HostEvent.DELETED):
        (folder / event).write_text(f"#!/bin/sh\ncat >> '{seen}'\necho >> '{seen}'\n")
        (folder / event).chmod(0o700)
    statecfg("hook", "create", "note", "note", cwd=tmp_path, STATECFG_STORE=str(tmp_path / "store.db"))
    assert run("bind", "web1", "playbooks/web.yml").out == f"web1: bound to {whose}\n"
    assert run("bind", "web1", str(playbook)).out == f"web1: it was bound to {whose} before\n"
    assert f"it is bound to: {whose}" in run("unbind", "web1", "playbooks/wbe.yml").out
    playbook.unlink()
    assert run("unbind", "web1", "playbooks/web.yml").out == f"web1: no longer bound to {whose}\n"
    assert run("forget", "web1", "--yes").out == "web1: forgotten\n"
    told = [json.loads(line) for line in seen.read_text().splitlines()]
    assert [(each["hook"]["cause"], (each["policy"] or {}).get("name"), each["node"]["name"]) for each in told] == [
        (HostEvent.BOUND, whose, "web1"),
        (HostEvent.UNBOUND, whose, "web1"),
        (HostEvent.DELETED, None, "web1"),
    ]
    assert "SC0118" in run("bind", "web1", "playbooks/none.yml", code=5).err
