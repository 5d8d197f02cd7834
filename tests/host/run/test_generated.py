"""Secrets that a real host generates: the plan is what the apply does, and the value never leaves the host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.host.command import Ran
from tests.host.run.site import LEDGER, Site
from tests.lab import Host

GENERATED = "/var/lib/statecfg/generated"
PLAYBOOK = """\
hosts: all
vars:
  db: !secret {{generate: password}}
  id: !secret {{generate: uuid, name: app-id}}
  key: !secret {{generate: key, encoding: base64, length: 40}}
resources:
  - {{directory: {place}, mode: "0755"}}
  - file: {place}/app.conf
    content: |
      password = {{{{ db }}}}
      id = {{{{ id }}}}
    mode: "0600"
    requires: ["directory:{place}"]
  - file: {place}/large.conf
    template: large.j2
    mode: "0600"
    requires: ["directory:{place}"]
  - command: register
    shell: 'echo "$KEY" > {place}/key; echo it is $KEY and $URL'
    env: {{KEY: "{{{{ key }}}}", URL: "pg://app:{{{{ db }}}}@db"}}
    creates: {place}/key
    effects: {{}}
    undo: 'echo "$URL" > {place}.undone; rm {place}/key'
    requires: ["directory:{place}"]
"""
LARGE = "{% for number in range(1000) %}line {{ number }}\n{% endfor %}password = {{ db }}\n"


class Secretive(Site):
    """A project whose commands must never show a generated value.

    :ivar outputs: what the commands have printed
    """

    def __init__(self, base: Path, host: Host, name: str) -> None:
        super().__init__(base, host, name)
        self.outputs: list[str] = []
        self.place = f"/srv/{name}"

    def __call__(self, verb: str, *arguments: str, code: int | None = 0, **env: str) -> Ran:
        ran = super().__call__(verb, *arguments, code=code, **env)
        if arguments[:1] != ("reveal",):
            self.outputs.append(ran.out + ran.err)
        return ran

    def values(self) -> dict[str, str]:
        """Return path → value of the values that the host keeps now."""
        listed = self.host.run(["sh", "-c", f"ls {GENERATED}/* 2>/dev/null || true"]).stdout.split()
        return {path: self.host.read(path) for path in listed}

    def value(self, letters: int) -> str:
        """Return the value with this number of characters."""
        (found,) = [value for value in self.values().values() if len(value) == letters]
        return found

    def check(self, values: list[str]) -> None:
        """Check that no output, no record of the controller and nothing but the values' files contain a value."""
        stored = [path.read_bytes() for path in (*self.base.rglob("*"), *self.state.rglob("*")) if path.is_file()]
        for value in values:
            assert not [text for text in self.outputs if value in text]
            assert not [data for data in stored if value.encode() in data]
            found = self.host.run(["sh", "-c", f"grep -rl -- '{value}' /var/lib/statecfg || true"]).stdout.split()
            assert all(path.startswith(GENERATED) for path in found), found


@pytest.fixture
def site(tmp_path: Path, light_host: Host, place: str) -> Secretive:
    made = Secretive(tmp_path, light_host, place.rpartition("/")[2])
    made.place = place
    made.fresh()
    (made.base / "site.yml").write_text(PLAYBOOK.format(place=place))
    (made.base / "large.j2").write_text(LARGE)
    return made


def steps(report: dict[str, Any]) -> dict[str, Any]:
    """Return node → its actions and changes."""
    return {
        node["name"]: ([(action["op"], action["args"]) for action in node["actions"]], node["changes"])
        for layer in report["layers"]
        for node in layer
        if node["outcome"] != "unchanged"
    }


def test_plan_is_what_apply_does_and_the_value_stays(site: Secretive) -> None:
    planned = steps(site.report("plan", "site.yml"))
    applied = site.report("apply", "site.yml", "--yes", "-vv")
    assert planned == steps(applied) and not site.host.run(["sh", "-c", f"ls {site.place}.undone || true"]).stdout
    assert [node["name"] for node in applied["layers"][0]] == ["generate:app-id", "generate:db", "generate:key"]
    db, app_id, key = site.value(32), site.value(36), site.value(56)
    assert site.host.read(f"{site.place}/app.conf") == f"password = {db}\nid = {app_id}\n"
    assert site.host.read(f"{site.place}/large.conf").endswith(f"line 999\npassword = {db}\n")
    assert site.host.read(f"{site.place}/key") == f"{key}\n"
    modes = site.host.run(["stat", "-c", "%a %U", GENERATED, *site.values()]).stdout.splitlines()
    assert modes == ["700 root", "600 root", "600 root", "600 root"]
    assert "it is <secret key> and pg://app:<secret db>@db" in json.dumps(applied)
    again = site.report("plan", "site.yml", "--detailed-exitcode")
    assert again["summary"] == {"unchanged": 7}
    assert site.report("apply", "site.yml", "--yes")["summary"] == {"unchanged": 7}
    assert "No drift" in site("verify", "site.yml").out
    assert (site.value(32), site.value(36), site.value(56)) == (db, app_id, key)
    assert site("secret", "reveal", "site.yml", "db").out == f"{db}\n"
    site.check([db, app_id, key])

    site("destroy", "site.yml", "--yes")
    assert site.values() == {} and not site.host.path(site.place).exists()
    assert site.host.read(f"{site.place}.undone") == f"pg://app:{db}@db\n"
    site.host.run(["rm", f"{site.place}.undone"])
    site.check([db, app_id, key])


def test_rotation_updates_what_contains_the_value(site: Secretive) -> None:
    more = f"""\
  - generate: db
  - command: changed
    shell: echo changed >> {site.place}/log
    restart_on: ["generate:db"]
    effects: {{}}
    requires: ["directory:{site.place}"]
"""
    (site.base / "site.yml").write_text(PLAYBOOK.format(place=site.place) + more)
    site("apply", "site.yml", "--yes")
    assert site.host.read(f"{site.place}/log") == "changed\n"
    old, other = site.value(32), site.value(36)
    planned = steps(site.report("secret", "rotate", "site.yml", "db", "--dry-run"))
    changing = {"generate:db", f"file:{site.place}/app.conf", f"file:{site.place}/large.conf", "command:changed"}
    assert set(planned) == changing and site.value(32) == old
    assert steps(site.report("secret", "rotate", "site.yml", "db", "--yes")) == planned
    new = site.value(32)
    assert new != old and site.value(36) == other
    assert site.host.read(f"{site.place}/app.conf") == f"password = {new}\nid = {other}\n"
    assert site.host.read(f"{site.place}/log") == "changed\nchanged\n"
    assert site.report("plan", "site.yml")["summary"] == {"unchanged": 8}
    wrong = site("secret", "rotate", "site.yml", "dbb", "--yes", code=5)
    assert "generates no secret `dbb`: did you mean `db`?" in wrong.err
    site.check([old, new, other])
    site("destroy", "site.yml", "--yes")


def test_rotation_that_stops_halfway_shows_no_former_value(site: Secretive) -> None:
    shared = f"{site.place}.shared"
    text = f"""\
hosts: all
vars:
  db: !secret {{generate: password}}
resources:
  - line_in_file: {shared}
    provides: first
    line: port = 1
    match: ^port
  - command: gate
    shell: "test ! -e {shared}.closed"
    unless: "test ! -e {shared}.closed"
    effects: {{}}
    requires: [first]
  - line_in_file: {shared}
    provides: second
    line: "password = {{{{ db }}}}"
    match: ^password
    requires: ["command:gate"]
"""
    (site.base / "site.yml").write_text(text)
    site.host.write(shared, "port = 0\npassword = none\n")
    site("apply", "site.yml", "--yes", "-vv")
    old = site.value(32)
    assert site.host.read(shared) == f"port = 1\npassword = {old}\n"
    site.host.write(f"{shared}.closed", "")
    site("secret", "rotate", "site.yml", "db", "--yes", code=1)
    new = site.value(32)
    assert new != old and old in site.host.read(shared)
    site.host.run(["rm", f"{shared}.closed"])
    site.host.write(shared, f"port = 2\npassword = {old}\n")
    for verb in (["plan", "--diff"], ["verify"], ["apply", "--yes", "-vv"]):
        site(verb[0], "site.yml", *verb[1:], code=None)
    assert site.host.read(shared) == f"port = 1\npassword = {new}\n"
    site.host.write(shared, f"port = 2\npassword = {new}\n")
    shown = site("plan", "site.yml", "--diff").out  # once the host has the new value, its mask is enough
    assert "password = <secret db>" in shown and "may contain a secret" not in shown
    site.check([old, new])
    site("apply", "site.yml", "--yes")
    site("destroy", "site.yml", "--yes")


def test_lost_value_is_an_error_and_never_a_new_value(site: Secretive) -> None:
    site("apply", "site.yml", "--yes")
    (path,) = [path for path, value in site.values().items() if len(value) == 32]
    before = site.host.read(f"{site.place}/app.conf")
    site.host.run(["rm", path])
    for verb in (["plan", "site.yml"], ["verify", "site.yml"], ["apply", "site.yml", "--yes"]):
        nodes = {node["name"]: node for layer in site.report(*verb, code=1)["layers"] for node in layer}
        assert nodes["generate:db"]["outcome"] == "failed"
        assert f"the value is lost: {path} does not exist" in nodes["generate:db"]["reason"]
        assert nodes[f"file:{site.place}/app.conf"]["outcome"] == "skipped"
    assert site.host.read(f"{site.place}/app.conf") == before and path not in site.values()
    revealed = site("secret", "reveal", "site.yml", "db", code=1)
    assert "this host has no value of db" in revealed.out + revealed.err
    site("secret", "rotate", "site.yml", "db", "--yes")
    assert site.host.read(f"{site.place}/app.conf") != before
    site.host.write(path, "changed by hand")
    (failed,) = [
        node
        for layer in site.report("plan", "site.yml", code=1)["layers"]
        for node in layer
        if node["name"] == "generate:db"
    ]
    assert "does not contain a password as defined" in failed["reason"]
    site.host.run(["rm", path])
    kept = site("destroy", "site.yml", "--yes", code=1)
    assert "the playbook no longer contains the secret" in kept.out + kept.err
    assert site.host.path(f"{site.place}/key").exists()  # its undo needs the value
    site("secret", "rotate", "site.yml", "db", "--yes")
    site("destroy", "site.yml", "--yes")
    assert not site.host.path(site.place).exists()


def test_readable_file_is_protected_again(site: Secretive) -> None:
    site("apply", "site.yml", "--yes")
    path = next(iter(site.values()))
    site.host.run(["chmod", "644", path])
    assert [args["mode"] for ops, _ in steps(site.report("plan", "site.yml")).values() for _, args in ops] == [0o600]
    site("apply", "site.yml", "--yes")
    assert site.host.run(["stat", "-c", "%a", path]).stdout == "600\n"
    site("destroy", "site.yml", "--yes")


def test_failed_run_keeps_the_value_for_the_next_one(site: Secretive) -> None:
    site.host.write(f"{site.place}", "in the way")
    site("apply", "site.yml", "--yes", code=1)
    kept = site.values()
    site.host.run(["rm", site.place])
    planned = steps(site.report("plan", "site.yml"))
    assert steps(site.report("apply", "site.yml", "--yes")) == planned
    assert {**site.values(), **kept} == site.values()
    site.check(list(site.values().values()))
    site("destroy", "site.yml", "--yes")


def test_saved_plan_generates_the_value(site: Secretive) -> None:
    site("plan", "site.yml", "--out", "it.plan")
    assert site.values() == {}
    site("apply", "it.plan", "--yes")
    assert site.host.read(f"{site.place}/app.conf").startswith(f"password = {site.value(32)}\n")
    assert site("apply", "it.plan", "--yes", code=6)
    site.check(list(site.values().values()))
    site("destroy", "site.yml", "--yes")


def test_unused_value_is_removed_by_a_prune(site: Secretive) -> None:
    site("apply", "site.yml", "--yes")
    values = site.values()
    whole = PLAYBOOK.format(place=site.place)
    (site.base / "site.yml").write_text(whole.replace("      id = {{ id }}\n", ""))
    report = site.report("apply", "site.yml", "--yes", "--prune")
    assert [node["name"] for layer in report["removals"] for node in layer] == ["generate:app-id"]
    assert [len(value) for value in site.values().values()] and site.value(32) in values.values()
    assert not [value for value in site.values().values() if len(value) == 36]
    site.check(list(values.values()))
    site("destroy", "site.yml", "--yes")


def test_python_and_playbooks_have_their_own_values(site: Secretive) -> None:
    head = "from statecfg import play, secret\nfrom statecfg.resources import file\n\n"
    body = "@play(hosts='all')\ndef site(host):\n    password = secret('db', generate='password', length=20)\n"
    for name in ("one", "two"):
        text = f"    return file('{site.place}-{name}', content=f'it is {{password}}', mode='0600')\n"
        (site.base / f"{name}.py").write_text(head + body + text)
        site("apply", f"{name}.py", "--yes")
    one, two = (site.host.read(f"{site.place}-{name}").removeprefix("it is ") for name in ("one", "two"))
    assert one != two and len(one) == 20 and set(site.values().values()) == {one, two}
    code = f"import sqlite3; print(sqlite3.connect('{LEDGER}').execute('select * from resource').fetchall())"
    ledger = site.host.run(["python3", "-c", code]).stdout
    assert one not in ledger and all(path.rpartition("/")[2] in ledger for path in site.values())
    site.check([one, two])
    for name in ("one", "two"):
        site("destroy", f"{name}.py", "--yes")
    assert site.values() == {}
