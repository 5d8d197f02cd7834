"""Inventories of Ansible and of programs: a run over sshd, saved plans, and programs that fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from statecfg.dialects import inventories
from statecfg.dialects.inventories import programs
from statecfg.problems import InvalidInput
from tests.host.command import Ran, reach, statecfg
from tests.lab import PlainSshd, processes

PLAYBOOK = """\
hosts: web
resources:
  - directory: {{ place }}
  - file: {{ place }}/motd
    content: "{{ greeting }} from {{ host.name }} in {{ host.groups | join(',') }}, size {{ size }}\\n"
    requires: ["directory:{{ place }}"]
"""


@pytest.fixture
def project(sshd: PlainSshd, tmp_path: Path) -> Path:
    """Give a project with an inventory in Ansible's INI format, whose only host is the sshd."""
    reach(tmp_path, [sshd])
    (tmp_path / "inventory.yml").unlink()
    (tmp_path / "statecfg.toml").write_text('inventory = "ansible/hosts.ini"\nssh_config = "ssh_config"\n')
    folder = tmp_path / "ansible"
    (folder / "group_vars").mkdir(parents=True)
    (folder / "host_vars").mkdir()
    (folder / "hosts.ini").write_text(
        "# one machine\n"
        f"web[1:1] ansible_host={sshd.address} ansible_port={sshd.port}\n"
        "[web]\nweb1\n"
        "[site:children]\nweb\n"
        f"[site:vars]\nansible_user={sshd.user}\nansible_ssh_private_key_file={sshd.identity}\nsize=1\n"
        "ansible_ssh_common_args='-o StrictHostKeyChecking=no -o ControlPersist=60s'\n"
        "ansible_become_password=never-shown\n"
    )
    (folder / "group_vars/all.yml").write_text("greeting: hello\nsize: 2\n")
    (folder / "host_vars/web1.yml").write_text("size: 3\n")
    (tmp_path / "site.yml").write_text(PLAYBOOK.replace("{{ place }}", str(tmp_path / "made")))
    return tmp_path


def run(project: Path, *words: str, code: int = 0) -> Ran:
    return statecfg(*words, cwd=project, code=code, XDG_STATE_HOME=str(project / "state"))


def program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def refused(path: Path) -> str:
    with pytest.raises(InvalidInput) as caught:
        inventories.load(path)
    (found,) = caught.value.problems
    return f"{found.code} {found.locations[0]} {found.detail} ({found.help})"


def test_a_playbook_runs_through_an_inventory_of_ansible(project: Path) -> None:
    made = project / "made/motd"
    run(project, "validate", "site.yml")
    planned = run(project, "plan", "site.yml", "--json").json()["hosts"]["web1"]
    assert planned["summary"] == {"changed": 2} and not made.exists()
    applied = run(project, "apply", "site.yml", "--yes", "--json").json()["hosts"]["web1"]
    assert applied["summary"] == planned["summary"]
    assert made.read_text() == "hello from web1 in site,web, size 3\n"
    assert run(project, "plan", "site.yml", "--json").json()["hosts"]["web1"]["summary"] == {"unchanged": 2}
    made.write_text("drift\n")
    drifted = run(project, "plan", "site.yml", "--json").json()["hosts"]["web1"]
    assert drifted["summary"] == {"changed": 1, "unchanged": 1}
    run(project, "apply", "site.yml", "--yes")
    assert made.read_text().startswith("hello")
    run(project, "destroy", "site.yml", "--yes")
    assert not made.parent.exists()


def test_inventory_shows_where_variables_come_from_and_no_password(project: Path) -> None:
    shown = run(project, "inventory", "--vars")
    assert "ansible/host_vars/web1.yml:1" in shown.out and "ansible/group_vars/all.yml:1" in shown.out
    assert "never-shown" not in shown.out and "<secret ansible_become_password>" in shown.out
    found = run(project, "inventory", "-i", "ansible", "--json").json()["hosts"]["web1"]
    assert found["vars"]["size"] == {"value": 3, "from": "ansible/host_vars/web1.yml:1:7"}


def test_a_saved_plan_names_a_file_of_variables_that_changed(project: Path) -> None:
    run(project, "plan", "site.yml", "--out", "a.plan")
    (project / "ansible/group_vars/all.yml").write_text("greeting: bye\nsize: 2\n")
    refusal = run(project, "apply", "a.plan", "--yes", code=6)
    assert "ansible/group_vars/all.yml" in refusal.err
    assert not (project / "made").exists()


def test_mistakes_end_with_code_5_and_hide_passwords(project: Path) -> None:
    hosts = project / "ansible/hosts.ini"
    hosts.write_text(hosts.read_text() + "[web:vars]\nx={{ y }}\n[more]\nweb2 db_password=topsecret oops\n")
    refusal = run(project, "plan", "site.yml", code=5)
    assert "hosts.ini:14:1" in refusal.err and "SC0415" in refusal.err and "SC0414" in refusal.err
    assert "topsecret" not in refusal.err + refusal.out and "db_password=*******" in refusal.err


def test_a_program_prints_the_inventory_once_in_a_run(sshd: PlainSshd, project: Path) -> None:
    hostvars = {
        "web1": {
            "ansible_host": sshd.address,
            "ansible_port": sshd.port,
            "ansible_user": sshd.user,
            "ansible_private_key_file": str(sshd.identity),
            "greeting": "hey",
            "size": 4,
        }
    }
    data = {"web": {"hosts": ["web1"]}, "_meta": {"hostvars": hostvars}}
    program(project / "cloud", f"#!/bin/sh\necho ran >> runs\ncat <<'END'\n{json.dumps(data)}\nEND\n")
    (project / "all.yml").write_text("sources:\n  - command: [./cloud, --list]\n    timeout: 20\n")
    run(project, "apply", "site.yml", "-i", "all.yml", "--yes")
    assert (project / "made/motd").read_text() == "hey from web1 in web, size 4\n"
    assert (project / "runs").read_text() == "ran\n"
    run(project, "destroy", "site.yml", "-i", "cloud", "--yes")
    assert not (project / "made").exists()


def test_an_executable_without_meta_is_asked_for_each_host(tmp_path: Path) -> None:
    script = program(
        tmp_path / "old.py",
        "#!/usr/bin/env python3\nimport json, sys\n"
        "groups = {'web': ['w1', 'w2'], 'db': {'hosts': ['d1'], 'vars': {'x': 1}}}\n"
        "print(json.dumps(groups if sys.argv[1] == '--list' else {'me': sys.argv[2]}))\n",
    )
    (tmp_path / "host_vars").mkdir()
    (tmp_path / "host_vars/w2.yml").write_text("more: yes\n")
    found = {name: dict(host.vars) for name, host in inventories.load(script).hosts.items()}
    assert found == {"w1": {"me": "w1"}, "w2": {"me": "w2", "more": True}, "d1": {"x": 1, "me": "d1"}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#!/bin/sh\necho 'no credentials' >&2\nexit 3\n", "ended with status 3; it printed:\n  no credentials"),
        ("#!/bin/sh\nkill -TERM $$\n", "was ended by signal 15"),
        ("#!/bin/sh\necho hello\n", "printed something else than JSON in line 1, column 1"),
        ("#!/bin/sh\n", "printed something else than JSON in line 1, column 1: Expecting value: nothing"),
        (
            '#!/bin/sh\necho \'{"a": {"vars": {"key": 123456}}\'\n',
            "in line 2, column 1: Expecting ',' delimiter (it must",
        ),
        ("#!/bin/sh\necho '[1]'\n", "printed a list instead of a map of groups"),
        ("#!/nonexistent/interpreter\n", "can't be started: No such file or directory"),
    ],
)
def test_programs_that_fail_are_errors_with_their_output(tmp_path: Path, text: str, expected: str) -> None:
    found = refused(program(tmp_path / "hosts", text))
    assert found.startswith(f"SC0416 {tmp_path}/hosts:0") and expected in found


def test_a_program_that_takes_too_long_is_ended_with_its_children(tmp_path: Path) -> None:
    program(tmp_path / "slow", "#!/bin/sh\necho waiting >&2\nsleep 300 &\necho $! > child\nwait\n")
    (tmp_path / "inventory.yml").write_text("sources:\n  - {command: [./slow], timeout: 1}\n")
    found = refused(tmp_path / "inventory.yml")
    assert "inventory.yml:2:5" in found and "took longer than 1 seconds; it printed:\n  waiting" in found
    child = int((tmp_path / "child").read_text())
    processes.wait_until(lambda: not processes.alive(child), 20, "the end of the program's child")


def test_programs_get_a_small_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "not for programs")
    monkeypatch.setenv("AWS_PROFILE", "shop")
    monkeypatch.setenv("ANSIBLE_FORKS", "5")
    monkeypatch.setenv(programs.PASSED, "AWS_PROFILE, OTHER")
    program(tmp_path / "hosts", "#!/bin/sh\nenv > seen\necho '{\"_meta\": {}}'\n")
    inventories.load(tmp_path / "hosts")
    seen = dict(line.partition("=")[::2] for line in (tmp_path / "seen").read_text().splitlines())
    assert (seen["AWS_PROFILE"], seen["ANSIBLE_FORKS"], "PATH" in seen) == ("shop", "5", True)
    assert "DEPLOY_TOKEN" not in seen


def test_programs_that_others_can_change_are_not_run(tmp_path: Path) -> None:
    script = program(tmp_path / "hosts", "#!/bin/sh\ntouch ran\n")
    script.chmod(0o777)
    assert refused(script).startswith("SC0601")
    (tmp_path / "inventory.yml").write_text("sources: [{command: [./hosts]}]\n")
    assert refused(tmp_path / "inventory.yml").startswith(f"SC0601 {tmp_path}/inventory.yml:1:11")
    script.chmod(0o755)
    (tmp_path / "inventory.yml").chmod(0o666)
    assert refused(tmp_path / "inventory.yml").startswith(f"SC0601 {tmp_path}/inventory.yml:1:11")
    assert not (tmp_path / "ran").exists()


def test_output_is_reused_for_a_short_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = program(tmp_path / "hosts", "#!/bin/sh\necho ran >> runs\necho '{\"_meta\": {}}'\n")
    inventories.load(script)
    inventories.load(script)
    assert (tmp_path / "runs").read_text() == "ran\n"
    monkeypatch.setattr(programs, "REUSED", -1.0)
    inventories.load(script)
    assert (tmp_path / "runs").read_text() == "ran\nran\n"
