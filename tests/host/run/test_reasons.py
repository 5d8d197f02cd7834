"""If a host ends a run, the report gives the host's reason, whatever the controller was sending at that moment."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from statecfg.resources import command, directory
from statecfg.views.outcome import outcome_lines
from statecfg.views.terminal import render
from tests.host.command import reach, statecfg
from tests.host.run import rig
from tests.lab import Host, add_user

LARGE = 48 << 20  # size in bytes, more than the buffers of SSH hold
STATE = "/home/full/.local/state/statecfg"


@pytest.fixture(scope="module")
def full(target: Host) -> Iterator[Host]:
    """Give a host with a user whose state directory is a small file system."""
    add_user(target, "full")
    target.run(["mkdir", "-p", STATE])
    target.run(["chown", "-R", "full:", "/home/full/.local"])
    yield target


def apply(host: Host, directory: Path, letter: str) -> tuple[rig.Json, str]:
    """Run the command for a large file. Return the host's part of the report, and the command's output as one line."""
    options = reach(directory, [host])
    inventory = directory / "inventory.yml"
    inventory.write_text(inventory.read_text().replace("user: root", "user: full"))
    (directory / "large").write_text(letter * LARGE)
    text = "hosts: all\nresources:\n  - file: /home/full/made\n    source: large\n"
    (directory / "site.yml").write_text(text)
    report = directory / "report.json"
    ran = statecfg("apply", "site.yml", "--yes", "--json-into", report, *options, cwd=directory, code=1)
    return json.loads(report.read_text())["hosts"][host.name], " ".join((ran.out + ran.err).split())


def shown(done: rig.Done) -> str:
    return " ".join(render(outcome_lines(done.report), io.StringIO(), color=False).split())


def test_a_full_disk_during_an_upload_is_reported(full: Host, tmp_path: Path) -> None:
    options = f"size=2m,mode=0700,uid={full.run(['id', '-u', 'full']).stdout.strip()}"
    full.run(["mount", "-t", "tmpfs", "-o", options, "none", STATE])
    try:
        report, said = apply(full, tmp_path, "x")
    finally:
        full.run(["umount", "--lazy", STATE])
    assert (report["status"], report["error"]["summary"]) == (
        "failed", f"can't store content in {STATE}: No space left on device",
    )  # fmt: skip
    assert "No space left on device" in said
    assert "could not be reached" not in said


def test_a_file_size_limit_during_an_upload_is_reported(full: Host, tmp_path: Path) -> None:
    full.write("/home/full/.bashrc", "ulimit -f 2048\n")
    try:
        report, said = apply(full, tmp_path, "y")
    finally:
        full.run(["rm", "/home/full/.bashrc"])
    assert (report["status"], report["error"]["summary"]) == (
        "failed", f"can't store content in {STATE}: File too large",
    )  # fmt: skip
    assert "File too large" in said
    assert "could not be reached" not in said


def test_a_run_stops_when_the_journal_cannot_be_written(full: Host) -> None:
    """The first node fills the file system, so the journal of a later node can't be written."""
    options = f"size=2m,mode=0700,uid={full.run(['id', '-u', 'full']).stdout.strip()}"
    full.run(["mount", "-t", "tmpfs", "-o", options, "none", STATE])
    try:
        fill = command("fill", argv=["sh", "-c", f"dd if=/dev/zero of={STATE}/fill bs=4k 2>/dev/null; :"],
                       creates=f"{STATE}/fill")  # fmt: skip
        before, made = fill, []
        for number in range(60):  # the journal's current page still has room for some lines
            before = directory(f"/home/full/d{number}", requires=[before])
            made.append(before)
        done = rig.run(full, rig.define(fill, *made), inventory={"user": "full"})
    finally:
        full.run(["umount", "--lazy", STATE])
    report = done.host()
    assert report["status"] == "failed"
    said = report.get("halted") or report["error"]["summary"]
    assert "No space left" in said or "disk is full" in said
    assert said in shown(done)
    assert "stopped early" not in shown(done)
