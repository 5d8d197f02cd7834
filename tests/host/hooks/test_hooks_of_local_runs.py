"""Exec hooks in runs on this machine: how the output names failed hooks and hooks that still run."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.host.pages import Reader

COLD = '#!/bin/sh\ncat > /dev/null\necho \'{"error": {"message": "the oven is cold"}}\'\nexit 1\n'
ECHO = "#!/bin/sh\nprintf '{\"output\": '; cat; echo }\n"
# Runs until the test has read that the run waits for this hook.
HELD = "#!/bin/sh\ncat > /dev/null\nwhile [ ! -e {go} ]; do sleep 0.05; done\n"
BOUND, INSTALLED, UNBOUND = "node-bound-to-policy", "node-install-finished", "node-unbound-from-policy"


class Site:
    """A project for this machine with its own store and ledger."""

    def __init__(self, root: Path) -> None:
        self.reader = Reader(root / "home")
        self.root = self.reader.place
        (self.root / "hooks").mkdir(mode=0o755)
        (self.root / "inventory.yml").write_text('hosts: {"@local": {}}\n')
        text = f"hosts: '@local'\nresources:\n  - file: {root}/motd\n    content: x\n"
        (self.root / "site.yml").write_text(text)

    def hook(self, name: str, event: str, script: str, **spec: str) -> Path:
        """Write a hook type with one program, and its registration. Return the program."""
        folder = self.root / f"hooks/{name}.hook"
        folder.mkdir(mode=0o755)
        program = folder / event
        program.write_text(script)
        program.chmod(0o755)
        registration = {"metadata": {"name": name}, "spec": {"exec": {"type": name}, "events": [event], **spec}}
        path = self.root / f"hooks/{name}.yml"
        path.write_text(json.dumps(registration) + "\n")
        path.chmod(0o644)
        return program

    def run(self, words: str, code: int = 0) -> str:
        done = self.reader.shell(f"STATECFG_STORE={self.root}/store.db statecfg {words}")
        assert done.returncode == code and "Traceback" not in done.stderr, done.stdout + done.stderr
        return done.stdout

    def data(self, words: str, code: int = 0) -> Any:
        return json.loads(self.run(f"{words} --json", code))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_output_and_reports_list_each_failed_host_hook(site: Site) -> None:
    site.hook("oven", BOUND, COLD)
    site.hook("well", BOUND, ECHO)
    plain = site.hook("plain", INSTALLED, ECHO)
    plain.chmod(0o644)
    out = site.run(f"apply site.yml --yes --json-into {site.root}/report.json --markdown-into {site.root}/report.md")
    lines = [line.strip() for line in out.splitlines() if "failed at" in line]
    unfit = f"file {plain} is not executable"
    assert [" ".join(line.split()) for line in lines] == [
        f"! hook plain failed at {INSTALLED}: {unfit} (statecfg hook log plain)",
        f"! hook oven failed at {BOUND}: the oven is cold (statecfg hook log oven)",
    ]
    host = json.loads((site.root / "report.json").read_text())["hosts"]["@local"]
    assert host["status"] == "ok"
    assert host["host_hooks"] == [
        {"hook": "plain", "event": INSTALLED, "error": unfit},
        {"hook": "oven", "event": BOUND, "error": "the oven is cold"},
    ]
    assert f"- hook `oven` failed at `{BOUND}`: `the oven is cold`" in (site.root / "report.md").read_text()


def test_destroy_clears_the_playbook_and_the_installed_policy(site: Site) -> None:
    site.hook("echo", UNBOUND, ECHO)
    site.run("apply site.yml --yes")
    host = site.data("hosts")["hosts"]["@local"]
    assert (host["playbooks"], host["installed"]) == (["work/site.yml"], "work/site.yml")
    site.run("destroy site.yml --yes")
    (event,) = site.data("hook log echo")["events"]
    assert (event["policy"], event["msg"]["policy"]["nodes"]) == ("work/site.yml", {"count": 0})
    assert event["msg"]["node"]["state"] == {"installed": False}
    host = site.data("hosts")["hosts"]["@local"]
    assert (host["playbooks"], host["installed"], host["installed_at"]) == ([], None, None)
    assert "INSTALLED" not in site.run("hosts")


def test_the_progress_names_the_running_hook_with_attempt_and_deadline(site: Site) -> None:
    waits = [
        ("there", "pre-reconcile", {"where": "host"}),
        ("here", "post-create", {"where": "controller"}),
        ("event", INSTALLED, {}),
    ]
    for name, event, spec in waits:
        site.hook(name, event, HELD.replace("{go}", str(site.root / f"go-{name}")), **spec)
    said = _read_and_let_go(site, [name for name, _, _ in waits])
    until = r", attempt 1, until \d\d:\d\d:\d\d$"
    node = re.escape(f"file:{site.root.parents[1]}/motd")
    assert re.search(rf"@local: waits for hook there \(pre-reconcile of {node}\){until}", said, re.M), said
    assert re.search(rf"@local: waits for hook here \(post-create of {node}\){until}", said, re.M), said
    assert re.search(rf"^waits for hook event \({INSTALLED} of @local\){until}", said, re.M), said


def _read_and_let_go(site: Site, names: Sequence[str]) -> str:
    """Apply the playbook. Let each hook end when a line of output names it. Return the output."""
    command = f"STATECFG_STORE={site.root}/store.db exec statecfg apply site.yml --yes 2>&1"
    said = ""
    with site.reader.started(command) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said += line
            for name in names:
                if f"waits for hook {name} " in line:
                    (site.root / f"go-{name}").touch()
        assert process.wait(60) == 0, said
    return said
