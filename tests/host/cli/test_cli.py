"""The command line from end to end, as a process, against this machine."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from tests import ROOT
from tests.host.command import run
from tests.host.preloaded import CACHE

PLAYBOOK = """\
from statecfg import play
from statecfg.resources import directory, file

@play(hosts="@local", vars={{"text": "Hello."}})
def hello(host):
    scratch = directory("{scratch}", mode="0755")
    text = file("{scratch}/hello.txt", content=host.vars.text + "\\n", mode="0644", requires=[scratch], tags=["text"])
    return [text, file("{scratch}/other.txt", content="Other.\\n", requires=[scratch])]
"""


class Run:
    """Runs the command in a project in a separate directory."""

    def __init__(self, base: Path) -> None:
        self.base, self.scratch = base / f"project-{uuid.uuid4().hex[:12]}", base / "scratch"
        self.base.mkdir()
        (self.base / "statecfg.toml").write_text("")
        (self.base / "hello.py").write_text(PLAYBOOK.format(scratch=self.scratch))
        keep = {key: value for key, value in os.environ.items() if not key.startswith("STATECFG_") and key != "CI"}
        self.environ = {**keep, "PYTHONPATH": str(ROOT), "HOME": str(base), "XDG_CACHE_HOME": CACHE}
        self.environ["STATECFG_STATE_DIR"] = str(base / "state")

    def start(self, *arguments: str, **more) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-m", "statecfg", *arguments], cwd=self.base, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**self.environ, **more},
        )  # fmt: skip

    def __call__(self, *arguments: str, **more) -> subprocess.CompletedProcess:
        return run(arguments, self.base, {**self.environ, **more})


@pytest.fixture
def statecfg(tmp_path):
    return Run(tmp_path)


def test_plan_changes_nothing_and_apply_does_what_was_planned(statecfg):
    planned = statecfg("plan", "hello.py", "--detailed-exitcode")
    assert planned.returncode == 2, planned.stderr
    assert planned.stdout.endswith("Plan: 3 to add, 0 to change, 0 to destroy.\n")
    assert "+ Hello." in planned.stdout
    assert "To apply it: statecfg apply hello.py\n" in planned.stdout
    assert not statecfg.scratch.exists()
    applied = statecfg("apply", "hello.py", "--yes")
    assert applied.returncode == 0, applied.stderr
    assert "Applied: 3 added, 0 changed, 0 destroyed, 0 unchanged on 1 host" in applied.stdout
    assert (statecfg.scratch / "hello.txt").read_text() == "Hello.\n"
    again = statecfg("apply", "hello.py", "--yes")
    assert "Nothing to do: 3 resources as defined." in again.stdout
    assert statecfg("check", "hello.py", "--detailed-exitcode").returncode == 0


def test_plan_shows_the_difference_of_a_changed_file(statecfg):
    statecfg("apply", "hello.py", "--yes")
    (statecfg.scratch / "hello.txt").write_text("Hand-made.\n")
    planned = statecfg("plan", "hello.py")
    assert "- Hand-made.\n" in planned.stdout
    assert "+ Hello.\n" in planned.stdout
    assert planned.stdout.endswith("Plan: 0 to add, 1 to change, 0 to destroy.\n")


def test_apply_without_a_terminal_needs_yes(statecfg):
    refused = statecfg("apply", "hello.py")
    assert refused.returncode == 5
    assert "--yes" in refused.stderr
    assert not statecfg.scratch.exists()


def test_json_output_contains_only_the_report(statecfg):
    given = statecfg("plan", "hello.py", "--json", "--json-into", "r.json")
    report = json.loads(given.stdout)
    assert report["format"] == 1
    assert report["hosts"]["@local"]["status"] == "ok"
    assert json.loads((statecfg.base / "r.json").read_text()) == report
    assert "\x1b" not in given.stdout


def test_an_unwritable_output_file_is_reported_before_any_change(statecfg):
    for flag in ("--json-into", "--markdown-into"):
        refused = statecfg("apply", "hello.py", "--yes", flag, "nowhere/report")
        assert refused.returncode == 5
        assert "nowhere/report" in refused.stderr
    assert not statecfg.scratch.exists()
    assert statecfg("plan", "hello.py", "--out", "nowhere/x.plan").returncode == 5


def test_the_same_plan_gives_the_same_markdown(statecfg):
    texts = []
    for _ in range(2):
        assert statecfg("plan", "hello.py", "--markdown-into", "plan.md").returncode == 0
        texts.append((statecfg.base / "plan.md").read_bytes())
    assert texts[0] == texts[1]
    assert texts[0].startswith(b"### Plan: 3 to add")


def test_variables_tags_and_limits_select_what_is_planned(statecfg):
    told = statecfg("plan", "hello.py", "-e", "text=Moin.", "-l", "@local", "-t", "text").stdout
    assert "+ Moin." in told
    assert "To apply it: statecfg apply hello.py -l @local -t text -e '…'\n" in told
    assert "+ Moin." in statecfg("plan", "hello.py", "-e", '{"text": "Moin."}').stdout
    (statecfg.base / "vars.json").write_text('{"text": "Moin."}')
    (statecfg.base / "vars.yml").write_text("text: Servus.\n")
    assert "+ Servus." in statecfg("plan", "hello.py", "-e", "@vars.json", "-e", "@vars.yml").stdout
    wrong = statecfg("plan", "hello.py", "-e", "nonsense")
    assert wrong.returncode == 5
    assert "key=value" in wrong.stderr
    tagged = statecfg("plan", "hello.py", "-t", "text").stdout
    assert tagged.endswith("Plan: 2 to add, 0 to change, 0 to destroy.\n")
    for arguments, code in ((("-l", "nosuch"), "SC0406"), (("-l", ","), "SC0407"), (("-t", "nosuch"), "SC0431")):
        nothing = statecfg("plan", "hello.py", *arguments)
        assert nothing.returncode == 5
        assert f"error[{code}]" in nothing.stderr


def test_options_come_from_the_environment_and_the_settings(statecfg):
    assert statecfg("plan", "hello.py", STATECFG_LIMIT="nosuch").returncode == 5
    assert json.loads(statecfg("plan", "hello.py", STATECFG_JSON="1").stdout)["mode"] == "plan"
    (statecfg.base / "statecfg.toml").write_text("forks = 0\n")
    wrong = statecfg("plan", "hello.py")
    assert wrong.returncode == 5
    assert "statecfg.toml:1" in wrong.stderr


def test_a_saved_plan_can_be_applied_only_once(statecfg):
    assert statecfg("plan", "hello.py", "--out", "x.plan").returncode == 0
    path = statecfg.base / "x.plan"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in statecfg.base.iterdir() if entry.name.startswith(".x.plan")] == []
    applied = statecfg("apply", "x.plan")
    assert applied.returncode == 0, applied.stderr + applied.stdout
    assert "3 added" in applied.stdout
    stale = statecfg("apply", "x.plan")
    assert stale.returncode == 6
    assert "refused" in stale.stdout


def test_a_saved_plan_is_refused_after_host_or_playbook_changes(statecfg):
    statecfg("plan", "hello.py", "--out", "x.plan")
    playbook = statecfg.base / "hello.py"
    before = playbook.read_text()
    playbook.write_text(before.replace("Other.", "Another."))
    changed = statecfg("apply", "x.plan")
    assert changed.returncode == 6
    assert "≠ playbook hello.py: has changed since the plan was made" in changed.stderr
    assert not statecfg.scratch.exists()
    playbook.write_text(before)
    statecfg.scratch.mkdir()
    (statecfg.scratch / "hello.txt").write_text("Somebody else was here.\n")
    moved = statecfg("apply", "x.plan")
    assert moved.returncode == 6
    assert "hello.txt" in moved.stdout
    assert (statecfg.scratch / "hello.txt").read_text() == "Somebody else was here.\n"


def test_a_saved_plan_keeps_its_variables_and_refuses_others(statecfg):
    statecfg("plan", "hello.py", "-e", "text=Moin.", "--out", "x.plan")
    assert statecfg("apply", "x.plan", "-e", "text=x").returncode == 5
    assert statecfg("apply", "x.plan").returncode == 0
    assert (statecfg.scratch / "hello.txt").read_text() == "Moin.\n"


def test_a_damaged_plan_is_refused(statecfg):
    statecfg("plan", "hello.py", "--out", "x.plan")
    path = statecfg.base / "x.plan"
    text = path.read_text()
    for damaged in (
        text[: len(text) // 2],
        text.replace('"sha256": "', '"sha256": "x'),
        text.replace('"hosts"', '"guests"'),
    ):
        path.write_text(damaged)
        refused = statecfg("apply", "x.plan")
        assert refused.returncode == 5
        assert "error[SC0430]" in refused.stderr


def test_validate_shows_all_problems_at_once(statecfg):
    playbook = statecfg.base / "bad.py"
    playbook.write_text(PLAYBOOK.format(scratch=statecfg.scratch).replace("mode=", "moed="))
    wrong = statecfg("validate", "bad.py", "hello.py")
    assert wrong.returncode == 5
    assert wrong.stderr.count("error[SC0101]") == 2
    assert "--> bad.py:6" in wrong.stderr
    assert "did you mean `mode`" in wrong.stderr
    assert "hello.py: 3 resources on 1 host, no problems found" in wrong.stdout
    assert statecfg("validate", "hello.py").returncode == 0


def test_a_failing_resource_is_shown_with_its_cause(statecfg):
    (statecfg.base / "fail.py").write_text(
        "from statecfg import play\nfrom statecfg.resources import command\n\n@play(hosts='@local')\ndef p(host):\n"
        "    one = command('one', shell='echo words of one; exit 3')\n"
        "    return command('two', argv=['true'], requires=[one])\n"
    )
    failed = statecfg("apply", "fail.py", "--yes")
    assert failed.returncode == 1, failed.stderr
    assert "✗ command:one" in failed.stdout
    assert "words of one" in failed.stdout
    assert "not attempted: 1 resource: command:two" in failed.stdout
    assert re.search(r"Applied: .*1 failed, 1 skipped on 1 host", failed.stdout)


# A command that runs until a file appears, for at most about 30 seconds.
UNTIL = "touch {scratch}; for n in $(seq 600); do [ -e {scratch}.go ] && exit; sleep 0.05; done"


def slow(statecfg):
    (statecfg.base / "slow.py").write_text(
        "from statecfg import play\nfrom statecfg.resources import command\n\n@play(hosts='@local')\ndef p(host):\n"
        f"    one = command('one', shell='{UNTIL.format(scratch=statecfg.scratch)}')\n"
        "    return command('two', argv=['true'], requires=[one])\n"
    )


def until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not hold in time"
        time.sleep(0.02)


def is_stopping(process):
    """Wait until the command prints that it is stopping; return False if it ends without doing so."""
    return any("Stopping" in line for line in process.stderr)


def test_one_interrupt_starts_no_further_resource(statecfg):
    slow(statecfg)
    process = statecfg.start("apply", "slow.py", "--yes")
    try:
        until(statecfg.scratch.exists)
        process.send_signal(signal.SIGINT)
        assert is_stopping(process)
        time.sleep(1.5)  # until the executor has received the stop, too
        Path(f"{statecfg.scratch}.go").touch()
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, err
    assert "command:two" not in out or "not attempted" in out
    assert "Traceback" not in err


def test_a_second_interrupt_ends_the_command_at_once(statecfg):
    slow(statecfg)
    process = statecfg.start("apply", "slow.py", "--yes")
    try:
        until(statecfg.scratch.exists)
        process.send_signal(signal.SIGINT)
        assert is_stopping(process)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert time.monotonic() - began < 15
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def test_a_closed_output_pipe_causes_no_error_message(statecfg):
    command = f"{sys.executable} -m statecfg plan hello.py --json; echo $? >&2"
    process = subprocess.run(
        ["/bin/sh", "-c", f"({command}) | true"], cwd=statecfg.base, env=statecfg.environ, capture_output=True,
        text=True, timeout=60, stdin=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    assert process.stderr.strip() in ("0", "141")


def test_an_ascii_locale_gets_ascii_output(statecfg):
    given = statecfg("plan", "hello.py", PYTHONIOENCODING="ascii", LC_ALL="C", PYTHONCOERCECLOCALE="0")
    assert given.returncode == 0, given.stderr
    assert given.stdout.isascii()


def test_init_creates_a_working_project_and_overwrites_nothing(statecfg, tmp_path):
    made = statecfg("init", str(tmp_path / "new"))
    assert made.returncode == 0, made.stderr
    statecfg.base = tmp_path / "new"
    planned = statecfg("plan", "playbooks/hello.yml", "-e", f"directory={tmp_path}/there")
    assert planned.returncode == 0, planned.stderr
    assert planned.stdout.endswith("Plan: 2 to add, 0 to change, 0 to destroy.\n")
    assert statecfg("validate", "playbooks/hello.yml").returncode == 0
    (statecfg.base / "inventory.yml").write_text("mine")
    (statecfg.base / "statecfg.toml").unlink()
    again = statecfg("init")
    assert again.returncode == 5
    assert "nothing was written" in again.stderr
    assert (statecfg.base / "inventory.yml").read_text() == "mine"
    assert not (statecfg.base / "statecfg.toml").exists()


def test_facts_inventory_and_graph_print_their_formats(statecfg):
    facts = json.loads(statecfg("facts", "@local", "--json").stdout)
    assert facts["hosts"]["@local"]["facts"]["os"]["id"]
    (statecfg.base / "inventory.yml").write_text(
        "hosts:\n  web1:\n    address: 192.0.2.1\n    vars: {port: 1}\n"
        "groups:\n  web:\n    hosts: [web1]\n    vars: {port: 2, tier: front}\n"
    )
    assert "web1  192.0.2.1  web" in statecfg("inventory").stdout
    shown = statecfg("inventory", "web", "--vars").stdout
    assert re.search(r"port\s+1  \(inventory.yml:4", shown)
    assert re.search(r"tier\s+front  \(inventory.yml:8", shown)
    data = json.loads(statecfg("inventory", "--json").stdout)
    assert data["hosts"]["web1"]["vars"]["port"]["value"] == 1
    assert "layer 2" in statecfg("graph", "hello.py").stdout
    assert statecfg("graph", "hello.py", "-o", "g.svg").returncode == 0
    assert (statecfg.base / "g.svg").read_text().startswith("<svg ")
    assert statecfg("graph", "hello.py", "--format", "mermaid").stdout.startswith("flowchart LR\n")


def test_secrets_appear_in_no_output(statecfg):
    (statecfg.base / "secret.py").write_text(
        "from statecfg import play, secret\nfrom statecfg.resources import file\n\n"
        "@play(hosts='@local')\ndef p(host):\n"
        f"    return file('{statecfg.scratch}', content=secret('db', env='DB_PASSWORD'), mode='0600')\n"
    )
    given = statecfg(
        "plan", "secret.py", "-vv", "--diff", "--out", "x.plan", "--json-into", "r.json", "--markdown-into", "r.md",
        DB_PASSWORD="canary-42-canary",
    )  # fmt: skip
    assert given.returncode == 0, given.stderr
    everything = (
        given.stdout + given.stderr + "".join((statecfg.base / n).read_text() for n in ("x.plan", "r.json", "r.md"))
    )
    assert "canary-42" not in everything
    assert "<secret db>" in given.stdout
