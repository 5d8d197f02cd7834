"""Reports go to standard output, and everything else to standard error. Stopped runs report their hosts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from statecfg.run.saved.plan_file import is_plan
from tests import ROOT
from tests.host.command import statecfg
from tests.lab import processes

CHATTY = """\
import os, subprocess, sys
subprocess.run(["echo", "from a child at load"])
from statecfg import play
from statecfg.resources import file
print("from the playbook")

@play(hosts="@local")
def chatty(host):
    os.system("echo from a shell")
    os.write(1, b"from a write\\n")
    print("past sys.stdout", file=sys.__stdout__)
    subprocess.Popen(["sh", "-c", "sleep 0.2; echo from one that goes on"])
    return file("{place}", content="x")
"""


def test_standard_output_contains_only_the_json_report(tmp_path: Path) -> None:
    (tmp_path / "chatty.py").write_text(CHATTY.format(place=tmp_path / "made"))
    ran = statecfg("plan", "chatty.py", "--json", "--out", "chatty.plan", cwd=tmp_path)
    assert ran.json()["mode"] == "plan"
    for said in ("a child at load", "the playbook", "a shell", "a write", "one that goes on"):
        assert f"from {said}" in ran.err
    assert "past sys.stdout" in ran.err
    unsaved = statecfg("facts", "@local", "--json", "--record", "/dev/full", cwd=tmp_path, code=74).json()
    assert (unsaved["error"], *unsaved["hosts"]) == ("unwritten", "@local")
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", "pipe"], cwd=tmp_path, stdout=subprocess.PIPE) as reader:
        statecfg("plan", "chatty.py", "--out", "pipe", cwd=tmp_path)
        assert reader.stdout is not None
        assert is_plan(reader.stdout.read())
    assert (tmp_path / "pipe").is_fifo()
    applied = statecfg("apply", "chatty.plan", "--json", "--json-into", "/dev/stdout", cwd=tmp_path)
    whole, end = json.JSONDecoder().raw_decode(applied.out)
    assert whole == json.loads(applied.out[end:])


@pytest.mark.parametrize(
    ("arguments", "said", "about"),
    [
        (["aply"], "Unknown command `aply`. Did you mean `apply`?", "statecfg"),
        (["show", "nothing.plan"], "does not exist", "statecfg show"),
        (["plan", "--forks", "0", "x"], "is not in the range", "statecfg plan"),
        (["hook", "lst"], "Did you mean `list`?", "statecfg hook"),
    ],
)
def test_a_wrong_command_line_gives_a_helpful_error(
    tmp_path: Path, arguments: list[str], said: str, about: str
) -> None:
    ran = statecfg(*arguments, cwd=tmp_path, code=5)
    lines = ran.err.splitlines()
    assert lines[0] == "error: wrong command line; no host was changed"
    assert said in ran.err
    assert lines[-1] == f"  help: `{about} --help` shows what the command takes"
    found = statecfg(*arguments, cwd=tmp_path, code=5, STATECFG_JSON="1").json()
    assert found["problems"][0]["help"] == f"`{about} --help` shows what the command takes"


@pytest.mark.parametrize("verb", ["apply", "graph", "plan", "prune", "validate", "verify"])
def test_a_missing_playbook_is_an_error_with_a_suggestion(tmp_path: Path, verb: str) -> None:
    (tmp_path / "web.yml").write_text("hosts: all\n")
    found = statecfg(verb, "wbe.yml", cwd=tmp_path, code=5, STATECFG_JSON="1").json()["problems"]
    assert [(each["code"], each["help"]) for each in found] == [("SC0118", "did you mean `web.yml`?")]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_cancels_hosts_that_have_not_started(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "inventory.yml").write_text("hosts:\n  one: {transport: local}\n  two: {transport: local}\n")
    (tmp_path / "slow.yml").write_text(
        f"hosts: all\nresources:\n  - command: slow\n    shell: 'touch {tmp_path}/begun; "
        f"for n in $(seq 600); do [ -e {tmp_path}/go ] && break; sleep 0.05; done'\n"
    )
    argv = [sys.executable, "-m", "statecfg", "apply", "slow.yml", "--yes", "--forks", "1", "--json"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "STATECFG_STATE_DIR": str(tmp_path / "ledger")}
    run = subprocess.Popen(argv, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        processes.wait_until((tmp_path / "begun").exists, 60, "the command to begin")
        run.send_signal(number)
        assert run.stderr is not None and any("Stopping" in line for line in run.stderr)
        (tmp_path / "go").touch()
        out, _ = run.communicate(timeout=60)
    finally:
        run.kill()
        run.wait()
    assert run.returncode == 128 + number
    found = json.loads(out)["hosts"]
    assert sorted(host["status"] for host in found.values())[0] == "cancelled"
    (waiting,) = [host for host in found.values() if host["status"] == "cancelled"]
    assert waiting["error"]["summary"] == "not started: the run was stopped first"


def test_the_report_of_a_plan_reaches_its_file_as_hosts_finish(tmp_path: Path) -> None:
    """A run that is killed leaves the reports of the hosts that had finished."""
    slow = f'#!/bin/sh\nfor n in $(seq 1200); do [ -e {tmp_path}/go ] && break; sleep 0.05; done\nexec python3 "$@"\n'
    (tmp_path / "slow").write_text(slow)
    (tmp_path / "slow").chmod(0o755)
    (tmp_path / "inventory.yml").write_text(
        f"hosts:\n  one: {{transport: local}}\n  two: {{transport: local, python: {tmp_path}/slow}}\n"
    )
    (tmp_path / "site.yml").write_text(f"hosts: all\nresources:\n  - file: {tmp_path}/made\n    content: x\n")
    argv = [sys.executable, "-m", "statecfg", "plan", "site.yml", "--json-into", "report.json"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "STATECFG_STATE_DIR": str(tmp_path / "ledger")}

    def parts() -> list[Path]:
        return [path for path in tmp_path.glob("report.json.*.part") if '"one"' in path.read_text()]

    for ending in ("killed", "stopped", "finished"):
        with subprocess.Popen(argv, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
            try:
                processes.wait_until(lambda: bool(parts()), 60, "the first host to be in the file")
                assert not (tmp_path / "report.json").exists()
                if ending == "stopped":
                    run.send_signal(signal.SIGINT)
                if ending != "killed":
                    (tmp_path / "go").touch()
                    run.communicate(timeout=60)
            finally:
                run.kill()
        for part in parts():  # only a killed run leaves one
            assert ending == "killed" and '"status": "ok"' in part.read_text()
            part.unlink()
        (tmp_path / "go").unlink(missing_ok=True)
        if ending != "killed":
            assert list(json.loads((tmp_path / "report.json").read_text())["hosts"]) == ["one", "two"]
            assert (tmp_path / "report.json").stat().st_mode & 0o777 == 0o644
            (tmp_path / "report.json").unlink()


def test_a_report_follows_what_standard_output_contains(tmp_path: Path) -> None:
    """/dev/stdout may be a regular file, which other programs write to as well."""
    (tmp_path / "site.yml").write_text(f"hosts: '@local'\nresources:\n  - file: {tmp_path}/made\n    content: x\n")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "STATECFG_STATE_DIR": str(tmp_path / "ledger")}
    for redirection in (">", ">>"):
        start = f"{sys.executable} -m statecfg plan site.yml --json-into /dev/stdout"
        script = f"{{ echo before; {start}; echo after; }} {redirection} log"
        subprocess.run(["sh", "-c", script], cwd=tmp_path, env=env, check=True, timeout=60, stderr=subprocess.PIPE)
    text = (tmp_path / "log").read_text()
    assert [text.count(part) for part in ("before\n", "after\n", '"format": 1')] == [2, 2, 2], text


def test_files_that_can_not_be_written_are_refused_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "site.yml").write_text(f"hosts: '@local'\nresources:\n  - file: {tmp_path}/made\n    content: x\n")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "lost").symlink_to(tmp_path / "nowhere/report.json")
    (tmp_path / "folder").mkdir()
    for name, why in (
        ("loop", "Too many levels of symbolic links"),
        ("lost", f"directory {tmp_path}/nowhere does not exist"),
        ("site.yml/report.json", "Not a directory"),
        ("folder", "is a directory"),
        ("x" * 300, "File name too long"),
    ):
        ran = statecfg("apply", "site.yml", "--yes", "--json-into", name, cwd=tmp_path, code=5)
        assert why in ran.err, ran.err
        assert not (tmp_path / "made").exists()
