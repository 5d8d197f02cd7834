"""The command against real hosts over SSH: becoming other users, mixed fleets, saved plans and outside failures."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from statecfg.cli.main import VERSION
from statecfg.run.saved import plan_file
from tests import ROOT, lab
from tests.host.command import Ran, reach, statecfg
from tests.lab import Host, add_user, processes

PASSWORD = "correct horse"
UNTIL = "for n in $(seq 600); do [ -e /srv/qa/go ] && break; sleep 0.05; done"  # waits for the file, for at most 30 s
Cli = Callable[..., Ran]


@pytest.fixture(scope="module")
def fleet() -> Iterator[list[Host]]:
    try:
        started = lab.light_hosts(5)
    except lab.Unavailable as reason:
        pytest.skip(f"not run on this machine: {reason}")
    for user, sudo in (("free", "nopasswd"), ("asked", "password"), ("nobodys", None)):
        add_user(started[0], user, sudo=sudo, password=PASSWORD)
    yield started
    for host in started:
        host.stop()


@pytest.fixture
def project(fleet: list[Host], tmp_path: Path) -> Path:
    """Give a project with a small playbook for all hosts; the hosts do not have its resources yet."""
    for host in fleet:
        host.run(["rm", "-rf", "/srv/qa"])
    reach(tmp_path, fleet)
    (tmp_path / "statecfg.toml").write_text("")
    write(tmp_path, "")
    return tmp_path


def write(project: Path, more: str) -> None:
    (project / "site.py").write_text(
        "from statecfg import play, secret\nfrom statecfg.resources import command, directory, file\n\n"
        "@play(hosts='all')\ndef site(host):\n"
        "    top = directory('/srv/qa', mode='0755')\n"
        "    nodes = [top, file('/srv/qa/motd', content='hello\\n', requires=[top])]\n"
        f"{more}    return nodes\n"
    )


@pytest.fixture
def cli(project: Path) -> Cli:
    def run(verb: str, *arguments: str, **more: object) -> Ran:
        return statecfg(verb, *arguments, "--ssh-config", str(project / "ssh_config"), cwd=project, **more)

    return run


def inventory(project: Path, old: str, new: str) -> None:
    file = project / "inventory.yml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "said"),
    [
        (["-u", "free", "-b"], "", 0, "2 to add"),
        (["-u", "asked", "-b", "-K"], PASSWORD + "\n", 0, "2 to add"),
        (["-u", "asked", "-b"], "", 4, "statecfg then asks you for it"),
        (["-u", "asked", "-b", "-K"], "wrong\n", 4, "sudo rejected the password"),
        (["-u", "nobodys", "-b", "-K"], PASSWORD + "\n", 4, "Allow it in the host's sudoers"),
        (["-u", "asked", "-b", "-K"], "", 5, ""),
        (["-u", "asked", "-K"], PASSWORD + "\n", 1, "is root needed (-b)?"),
    ],
)
def test_only_users_who_can_become_root_may_plan(
    cli: Cli, arguments: list[str], stdin: str, code: int, said: str
) -> None:
    ran = cli("plan", "site.py", "-l", "light1", *arguments, stdin=stdin, code=code)
    assert said in ran.out
    assert PASSWORD not in ran.out + ran.err


def test_inventory_sets_the_become_user_and_k_gives_the_password(project: Path, cli: Cli) -> None:
    inventory(project, "light1: {", "light1: {become: true, become_user: free, ")
    ran = cli("facts", "light1", "-u", "asked", "-K", "--json", stdin=PASSWORD + "\n")
    assert ran.json()["hosts"]["light1"]["facts"]["user"] == "free"
    ran = cli("facts", "light1", "-u", "asked", "-K", "--become-user", "root", "--json", stdin=PASSWORD + "\n")
    assert ran.json()["hosts"]["light1"]["facts"]["user"] == "root"


def test_k_alone_does_not_change_the_user(cli: Cli) -> None:
    ran = cli("facts", "light1", "-u", "asked", "-K", "--json", stdin=PASSWORD + "\n")
    assert ran.json()["hosts"]["light1"]["facts"]["user"] == "asked"
    assert "-K has no effect" in ran.err


def test_plan_suggests_an_apply_command_with_the_same_options(cli: Cli, project: Path) -> None:
    ran = cli("plan", "site.py", "-l", "light1", "-u", "free", "-b")
    assert f"To apply it: statecfg apply site.py -l light1 -u free --ssh-config {project}/ssh_config -b\n" in ran.out


def test_one_run_reports_each_hosts_own_outcome(fleet: list[Host], project: Path, cli: Cli) -> None:
    write(
        project,
        "    if host.name == 'light2':\n"
        "        broken = command('migrate', shell='echo reading; echo no such table >&2; exit 3', requires=[top])\n"
        "        nodes += [broken, file('/srv/qa/after', content='x', requires=[broken])]\n"
        "    if host.name == 'light3':\n"
        "        nodes.append(command('long', shell='sleep 300', requires=[top]))\n",
    )
    inventory(project, "hosts:\n", "hosts:\n  gone: {address: 127.0.0.1, port: 9, user: root}\n")
    argv = [sys.executable, "-m", "statecfg", "apply", "site.py", "-l", "light3", "--yes"]
    argv += ["--ssh-config", str(project / "ssh_config")]
    holding = subprocess.Popen(
        argv, cwd=project, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL
    )
    try:
        processes.wait_until(lambda: fleet[2].path("/srv/qa/motd").exists(), 60, "the first run to create a file")
        ran = cli("apply", "site.py", "--yes", "-l", "gone,light[1-4]", code=1, STATECFG_LOCK_TIMEOUT="0")
        report = cli(
            "apply", "site.py", "--yes", "-l", "gone,light3", "--json", code=4, STATECFG_LOCK_TIMEOUT="0"
        ).json()
        assert cli("apply", "site.py", "--yes", "-l", "light3", code=7, STATECFG_LOCK_TIMEOUT="0").code == 7
    finally:
        holding.kill()
        holding.wait()
    assert {name: host["status"] for name, host in report["hosts"].items()} == {
        "gone": "unreachable",
        "light3": "locked",
    }
    assert "── light1, light4  (2 hosts)" in ran.out
    for text in ("no such table", "│ reading", "site.py:9:", "not attempted: 1 resource: file:/srv/qa/after"):
        assert text in ran.out
    assert "locked by another run" in ran.out and "could not be reached" in ran.out
    last = ran.out.splitlines()[-1]
    assert last.startswith(
        "Applied: 6 added, 0 changed, 0 destroyed, 0 unchanged, 1 failed, 1 skipped on 3 of 5 hosts in"
    )
    assert "Next: Fix the cause and run apply again" in ran.out
    assert ran.out.count("exit status 3") == 1


def test_hosts_with_the_same_plan_are_shown_once(cli: Cli) -> None:
    ran = cli("plan", "site.py", "--forks", "1", "-l", "light[1245]")
    assert "── light1, light2, light4, light5  (4 hosts)" in ran.out
    assert ran.out.count("+ directory:/srv/qa") == 1
    assert "Plan: 8 to add, 0 to change, 0 to destroy." in ran.out


def test_a_saved_plan_skips_changed_hosts_and_applies_the_others(fleet: list[Host], project: Path, cli: Cli) -> None:
    write(
        project,
        "    nodes.append(file('/srv/qa/big', content='BIGCANARY' * 100_000, requires=[top]))\n"
        "    nodes.append(file('/srv/qa/secret', content=secret('db', env='CANARY'), requires=[top]))\n",
    )
    env = {"CANARY": "SECRETCANARY"}
    inventory(project, "hosts:\n", "hosts:\n  gone: {address: 127.0.0.1, port: 9, user: root}\n")
    cli("plan", "site.py", "-l", "light1,light2,gone", "--out", "x.plan", code=4, **env)
    saved = project / "x.plan"
    assert saved.stat().st_mode & 0o777 == 0o600
    assert "CANARY" not in saved.read_text().replace('"secret"', "")
    fleet[1].run(["mkdir", "/srv/qa"])
    ran = statecfg("apply", saved, cwd=project, code=6, **env)
    assert "directory:/srv/qa: planned: mkdir (it does not exist); now: nothing to do" in ran.out
    assert "── gone  refused" in ran.out and "the saved plan has no usable plan for this host" in ran.out
    assert "    It could not be reached when the plan was made." in ran.out
    assert "Applied: 4 added" in ran.out
    assert fleet[0].read("/srv/qa/motd") == "hello\n"
    write(project, "    nodes.append(file('/srv/qa/new', content='n'))\n")
    ran = statecfg("apply", saved, cwd=project, code=6, **env)
    assert "≠ playbook site.py: has changed since the plan was made" in ran.err


def test_another_user_can_apply_a_plan_on_another_machine(fleet: list[Host], tmp_path: Path) -> None:
    light = fleet[3]
    light.run(["rm", "-rf", "/srv/qa"])
    where = f"hosts: {{web: {{address: {light.address}, port: {light.port}, user: root}}}}\n"
    machines = {"ann": tmp_path / "one/site", "ci": tmp_path / "other/place/site"}
    for root in machines.values():
        root.mkdir(parents=True)
        write(root, "")
        (root / "inventory.yml").write_text(where)
        (root.parent / "key").write_text(Path(light.identity).read_text())
        (root.parent / "key").chmod(0o600)
        (root.parent / "known_hosts").write_text(Path(light.known_hosts).read_text())
        options = f"UserKnownHostsFile {root.parent}/known_hosts\n  IdentityFile {root.parent}/key\n"
        (root.parent / "ssh_config").write_text(f"Host *\n  {options}")

    def run(user: str, *arguments: str) -> str:
        home = str(machines[user].parent)
        env = {
            "HOME": home,
            "LOGNAME": user,
            "STATECFG_STORE": f"{home}/db",
            "STATECFG_SSH_CONFIG": f"{home}/ssh_config",
        }
        return statecfg(*arguments, cwd=machines[user], **env).out

    run("ann", "plan", "site.py", "--out", "../site.plan")
    shutil.copy(machines["ann"].parent / "site.plan", machines["ci"])
    shutil.rmtree(machines["ann"].parent)
    assert "by ann@" in run("ci", "show", "site.plan")
    assert "Applied: 2 added" in run("ci", "apply", "site.plan")
    assert light.read("/srv/qa/motd") == "hello\n"


def test_apply_refuses_a_host_with_a_changed_key(project: Path, cli: Cli, fleet: list[Host]) -> None:
    cli("plan", "site.py", "-l", "light1,light2", "--out", "x.plan")
    plan = json.loads((project / "x.plan").read_text())
    for key in ("format", "version", "statecfg", "sha256"):
        del plan[key]
    kind = plan["hosts"]["light1"]["report"]["peer"].partition(" ")[0]
    plan["hosts"]["light1"]["report"]["peer"] = f"{kind} SHA256:{'A' * 43}"
    (project / "x.plan").write_bytes(plan_file.text(plan, VERSION))
    ran = cli("apply", "x.plan", code=6)
    assert f"≠ host key: planned {kind} SHA256:{'A' * 43}; now {kind} SHA256:" in ran.out
    assert "this is not the host of the plan; nothing was changed" in ran.out
    assert not fleet[0].path("/srv/qa").exists()
    assert fleet[1].read("/srv/qa/motd") == "hello\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_lets_the_running_command_finish(fleet: list[Host], project: Path, number: signal.Signals) -> None:
    write(
        project,
        f"    slow = command('slow', shell='touch /srv/qa/begun; {UNTIL}; touch /srv/qa/ended', requires=[top])\n"
        "    nodes += [slow, file('/srv/qa/after', content='x', requires=[slow])]\n",
    )
    argv = [sys.executable, "-m", "statecfg", "apply", "site.py", "-l", "light4", "--yes"]
    argv += ["--ssh-config", str(project / "ssh_config")]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "STATECFG_LOCK_TIMEOUT": "30"}
    run = subprocess.Popen(argv, cwd=project, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        processes.wait_until(lambda: fleet[3].path("/srv/qa/begun").exists(), 60, "the command to begin")
        run.send_signal(number)
        assert run.stderr is not None and any("Stopping" in line for line in run.stderr)
        time.sleep(1.5)  # until the host has received the stop, too
        fleet[3].path("/srv/qa/go").touch()
        out, _ = run.communicate(timeout=60)
    finally:
        run.kill()
        run.wait()
    assert run.returncode == 128 + number
    assert "light4  stopped early" in out
    assert "Next: Run apply again to continue" in out
    assert fleet[3].path("/srv/qa/ended").exists()
    assert not fleet[3].path("/srv/qa/after").exists()


def test_a_second_ctrl_c_ends_the_run_at_once(fleet: list[Host], project: Path) -> None:
    write(project, "    nodes.append(command('slow', shell='touch /srv/qa/begun; sleep 60', requires=[top]))\n")
    argv = [sys.executable, "-m", "statecfg", "apply", "site.py", "-l", "light5", "--yes"]
    argv += ["--ssh-config", str(project / "ssh_config")]
    run = subprocess.Popen(
        argv,
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    try:
        processes.wait_until(lambda: fleet[4].path("/srv/qa/begun").exists(), 60, "the command to begin")
        run.send_signal(signal.SIGINT)
        assert run.stderr is not None and any(b"Stopping" in line for line in run.stderr)
        begun = time.monotonic()
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=90)
    finally:
        run.kill()
        run.wait()
    assert run.returncode == 130
    assert time.monotonic() - begun < 20
    assert b"quit immediately" in err


@pytest.mark.parametrize("verb", [["plan"], ["plan", "--json"], ["apply", "--yes"], ["graph"], ["facts"]])
def test_a_full_disk_behind_stdout_is_reported(project: Path, verb: list[str]) -> None:
    what = "light1" if verb == ["facts"] else "site.py"
    argv = [sys.executable, "-m", "statecfg", *verb, what, *([] if verb == ["facts"] else ["-l", "light1"])]
    argv += [] if verb == ["graph"] else ["--ssh-config", str(project / "ssh_config")]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "STATECFG_LOCK_TIMEOUT": "30"}
    with open("/dev/full", "w") as full:
        done = subprocess.run(argv, cwd=project, env=env, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        74,
        "error: can't write standard output: No space left on device",
    )


def test_a_run_continues_when_nobody_reads_its_progress(fleet: list[Host], project: Path) -> None:
    argv = [sys.executable, "-m", "statecfg", "apply", "site.py", "-l", "light1", "--yes", "-vv"]
    argv += ["--ssh-config", str(project / "ssh_config")]
    reader, writer = os.pipe()
    os.close(reader)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "STATECFG_LOCK_TIMEOUT": "30"}
    done = subprocess.run(argv, cwd=project, env=env, stdout=subprocess.PIPE, stderr=writer, text=True, timeout=60)
    os.close(writer)
    assert done.returncode == 0
    assert "Applied: 2 added" in done.stdout
    assert fleet[0].read("/srv/qa/motd") == "hello\n"


def test_json_option_prints_problems_as_json(project: Path) -> None:
    (project / "bad.yml").write_text("hosts: light1\nresources:\n  - fil: /etc/motd\n")
    ran = statecfg("plan", "bad.yml", "--json", cwd=project, code=5)
    found = ran.json()
    assert (found["format"], found["error"]) == (1, "bad-input")
    assert found["problems"][0]["places"][0]["line"] == 3
    assert set(found["problems"][0]) == {"code", "summary", "detail", "help", "places"}
    assert "error[" in ran.err
    assert statecfg("plan", "none.yml", "--json", cwd=project, code=5).json()["problems"][0]["code"] == "SC0118"
