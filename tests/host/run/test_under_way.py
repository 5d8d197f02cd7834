"""What others can read during a run on many hosts: JSON on standard output, and the pages of a server."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests import ROOT
from tests.host.server.browser import browsing, paged, signed_in
from tests.host.server.serving import serving
from tests.lab import PlainSshd, plain

SOUND, CLOSED = 8, 40
# Each host has its own Python, and with it its own state directory and fault.
PYTHON = """\
#!/bin/sh
export STATECFG_STATE_DIR="{state}"
{fault}
exec {python} "$@"
"""
FAULTS = {
    "slow": "",
    "lying": "printf 'statecfg is fine\\n\\377\\377\\377\\377all is well'; sleep 1; exit 0",
    "dying": "head -c 1 > {place}/taken; kill -9 $$",
    "locked": "",
}
SITE = """\
hosts: all
resources:
  - directory: {place}/made
  - command: wait
    when: host.name == 'slow'
    shell: until [ -e {place}/go ]; do sleep 0.1; done
"""
STATUSES = {"ok": SOUND, "locked": 1, "unreachable": CLOSED + 2}


def _inventory(place: Path, sshd: PlainSshd) -> None:
    login = f"address: 127.0.0.1, user: {sshd.user}, key: {sshd.identity}"
    lines = [f"  closed{n}: {{{login}, port: {plain.free_port()}}}" for n in range(CLOSED)]
    for name in (*(f"sound{n}" for n in range(SOUND)), *FAULTS):
        (place / name).mkdir(mode=0o700)
        python = place / f"python-{name}"
        fault = FAULTS.get(name, "").format(place=place)
        python.write_text(PYTHON.format(state=place / name, fault=fault, python=sys.executable))
        python.chmod(0o755)
        lines.append(f"  {name}: {{{login}, port: {sshd.port}, python: {python}}}")
    (place / "inventory.yml").write_text("\n".join(["hosts:", *lines]) + "\n")
    (place / "ssh_config").write_text(f"Host *\n  UserKnownHostsFile {sshd.known_hosts}\n  IdentitiesOnly yes\n")
    (place / "site.yml").write_text(SITE.format(place=place))


def _document(run: subprocess.Popen[bytes], hosts: int) -> str:
    """Read the JSON document until it has these hosts; return its text so far."""
    assert run.stdout is not None
    text = ""
    while True:
        text += os.read(run.stdout.fileno(), 1 << 16).decode()
        with contextlib.suppress(ValueError):
            if len(json.loads(text + "}}")["hosts"]) == hosts:
                return text


def _line(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def test_finished_hosts_can_be_read_before_the_run_ends(tmp_path: Path, make_sshd: Callable[..., PlainSshd]) -> None:
    site, sshd = tmp_path / "site", make_sshd(config=["MaxStartups 100"])
    options = ["--ssh-config", "ssh_config", "--forks", "64", "--yes", "--json-into", "report.json"]
    argv = [sys.executable, "-m", "statecfg", "apply", "-i", "inventory.yml", *options, "site.yml"]
    others = SOUND + CLOSED + len(FAULTS) - 1
    with serving(site) as served, (served.root / "err").open("w") as errors:
        _inventory(site, sshd)
        with (site / "locked/lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            env = {**os.environ, "PYTHONPATH": str(ROOT), "STATECFG_STORE": served.store}
            run = subprocess.Popen(
                [*argv, "--json-lines"], cwd=site, env=env, stdout=subprocess.PIPE, stderr=errors, text=True
            )
            try:
                first = _line(run)
                lines = [_line(run) for _ in range(others)]
                with browsing() as program, paged(program) as page:
                    signed_in(page, served).evaluate(f"location.hash = '#/runs/{first['run']}'")
                    hosts = page.locator("details.fold.host")
                    # Hosts in trouble come first, with what is wrong.
                    expect(hosts.first).to_contain_text("Connection refused")
                    page.fill('[data-param="find"]', "locked")
                    expect(hosts).to_have_count(1)
                    expect(hosts).to_contain_text("another run has locked this host")
                    page.fill('[data-param="find"]', "sound3")
                    hosts.filter(has_text="sound3").locator("summary").first.click()
                    expect(hosts.filter(has_text="sound3")).to_contain_text("Layer 1 of 1")
                assert run.poll() is None, "the slow host still waits"
                (site / "go").touch()
                rest, _ = run.communicate(timeout=60)
            finally:
                run.kill()
                run.communicate()
        # All lines together are the report that other forms contain.
        report = json.loads((site / "report.json").read_text())
        (site / "go").unlink()
        stopped = subprocess.Popen([*argv, "--json"], cwd=site, env=env, stdout=subprocess.PIPE, stderr=errors)
        try:
            early = _document(stopped, others)
            stopped.send_signal(signal.SIGINT)
            (site / "go").touch()
            late, _ = stopped.communicate(timeout=60)
        finally:
            stopped.kill()
            stopped.communicate()
    assert stopped.returncode == 130
    document = json.loads(early + late.decode())
    assert "slow" not in json.loads(early + "}}")["hosts"]
    assert document == json.loads((site / "report.json").read_text())
    assert first["type"] == "begin"
    assert len(first["hosts"]) == SOUND + CLOSED + len(FAULTS)
    assert Counter(line["report"]["status"] for line in lines) == STATUSES
    assert "slow" not in {line["host"] for line in lines}
    last, end = map(json.loads, rest.splitlines())
    assert (last["host"], last["report"]["status"], end["type"]) == ("slow", "ok", "end")
    del end["type"]
    assert {**end, "hosts": {line["host"]: line["report"] for line in (*lines, last)}} == report
