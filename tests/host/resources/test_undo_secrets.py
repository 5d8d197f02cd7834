"""Commands whose undo needs a secret: destroy takes it from the playbook, and without it the record stays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from statecfg.graph.graph import Graph
from statecfg.resources import command
from tests.host.command import Ran, statecfg
from tests.host.remote.managed import Machine, Said

SECRET = "s3cret-of-the-database"


@pytest.fixture
def machine(server: Machine, tmp_path: Path) -> Machine:
    (tmp_path / "host").mkdir()
    found = Machine(tmp_path, server.server)
    found.orders["secrets"] = {"dbpw": SECRET}
    return found


def clean(machine: Machine, said: Said) -> None:
    """Check that the host neither stores nor reports the secret."""
    assert SECRET not in str(said.frames)
    for folder, _, names in os.walk(machine.place):
        assert not [name for name in names if SECRET.encode() in Path(folder, name).read_bytes()]


def base(machine: Machine, undo: str, **more: object) -> Graph:
    made = machine.folder / "host/made"
    shell = f"echo {SECRET} > {made}"
    return command("base", shell=shell, creates=str(made), undo=f"{undo}; rm {made}", **more)


def test_an_undo_without_secrets_runs_although_the_command_used_one(machine: Machine) -> None:
    log = machine.folder / "log"
    env = {"PASSWORD": SECRET, "LANG": "C"}
    guards = {"unless": f"test -e {log} {SECRET}", "onlyif": f": {SECRET}"}
    node = base(machine, f"env | grep -c s3cret > {log}; env | grep LANG=C >> {log}", env=env, **guards)
    assert machine.run(node).end["status"] == "ok"
    said = machine.run(mode="destroy", yes=True)
    (removed,) = said.part("removals", "layer")
    assert removed["outcome"] == "changed" and not (machine.folder / "host/made").exists()
    assert "runs without PASSWORD: the playbook no longer contains that secret" in removed["leaves"][0]
    assert log.read_text() == "0\nLANG=C\n" and machine.rows() == {}
    clean(machine, said)


@pytest.mark.parametrize("way", ["text", "variable", "list"])
def test_an_undo_with_a_secret_needs_the_playbook_that_contains_it(machine: Machine, way: str) -> None:
    log, made = machine.folder / "log", machine.folder / "host/made"

    def node(value: str) -> Graph:
        if way == "text":
            return base(machine, f"printf %s {value} > {log}")
        if way == "variable":
            return base(machine, f'printf %s "$PASSWORD" > {log}', env={"PASSWORD": value})
        undo = ["sh", "-c", f'printf %s "$1" > {log}; rm {made}', "sh", value]
        return command("base", argv=["touch", str(made)], creates=str(made), undo=undo)

    assert machine.run(node(SECRET)).end["status"] == "ok"
    # Without the playbook, or with a playbook whose undo has changed, nothing is done and the record stays.
    for graphs in ((), (command("base", argv=["true"], undo=f"true {SECRET} # another"),)):
        said = machine.run(*graphs, mode="destroy", yes=True)
        assert said.end["status"] == "failed" and [each["outcome"] for each in said.part("removals")] == ["skipped"]
        assert "kept: the playbook no longer contains the secret that the undo" in said.part("removals")[0]["reason"]
        assert "kept: the playbook no longer contains" in said.warnings[0]
        assert made.exists() and list(machine.rows()) == ["command:base"] and not log.exists()
        clean(machine, said)
    said = machine.run(node(SECRET), mode="destroy", yes=True)
    assert said.end["status"] == "ok" and not made.exists() and machine.rows() == {}
    assert log.read_text() == SECRET
    clean(machine, said)


def test_an_undo_uses_the_current_value_of_a_secret(machine: Machine) -> None:
    log = machine.folder / "log"
    assert machine.run(base(machine, f"printf %s {SECRET} > {log}")).end["status"] == "ok"
    rotated = base(machine, f"printf %s rotated-value > {log}")
    said = machine.run(rotated, mode="destroy", yes=True, secrets={"dbpw": "rotated-value"})
    assert said.end["status"] == "ok" and log.read_text() == "rotated-value" and machine.rows() == {}


def test_prune_keeps_a_command_whose_undo_needs_a_missing_secret(machine: Machine) -> None:
    """The node that the command requires stays as well, because the undo will need it."""
    needed = command("needed", argv=["true"], effects={}, undo="true")
    other = command("other", argv=["true"], effects={}, undo="true")
    assert machine.run(other, needed, base(machine, f": {SECRET}", requires=[needed])).end["status"] == "ok"
    said = machine.run(other, mode="prune", yes=True)
    assert set(machine.rows()) == {"command:base", "command:needed", "command:other"}
    assert "kept:" in str(said.part("removals"))


def test_a_command_can_run_in_the_root_directory(machine: Machine) -> None:
    log = machine.folder / "log"
    assert machine.run(command("pwd", shell=f"pwd > {log}", cwd="/", effects={})).end["status"] == "ok"
    assert log.read_text() == "/\n"


def test_destroy_takes_the_secret_of_an_undo_from_the_playbook(tmp_path: Path) -> None:
    log, made = tmp_path / "log", tmp_path / "made"
    (tmp_path / "statecfg.toml").write_text('name = "undo"\n')
    (tmp_path / "site.yml").write_text(f"""\
hosts: "@local"
resources:
  - command: database
    argv: [touch, {made}]
    creates: {made}
    undo: 'printf %s "$PASSWORD" > {log}; rm {made}'
    env: {{PASSWORD: !secret {{env: STATECFG_TEST_PASSWORD}}}}
""")
    own = {"STATECFG_STORE": str(tmp_path / "store.db"), "STATECFG_STATE_DIR": str(tmp_path / "state")}

    def run(*words: str, code: int = 0) -> Ran:
        ran = statecfg(*words, "--yes", cwd=tmp_path, code=code, STATECFG_TEST_PASSWORD=SECRET, **own)
        assert SECRET not in ran.out + ran.err
        return ran

    run("apply", "site.yml")
    assert made.exists()
    refused = run("destroy", "site.yml", "--hosts", "@local", code=1)
    assert "the playbook no longer contains the secret that the undo" in " ".join(refused.out.split())
    assert made.exists() and not log.exists()
    run("destroy", "site.yml")
    assert log.read_text() == SECRET and not made.exists()
