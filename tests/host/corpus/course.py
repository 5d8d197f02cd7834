"""Takes each role through four states on its own host: bare, applied again, drifted, destroyed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests import ROOT, lab
from tests.host.command import reach
from tests.host.corpus import debian, snapshot
from tests.host.corpus.roles import ROLES, Role
from tests.host.corpus.states import Count, Runner
from tests.lab.fixtures import or_skip

PROJECT = Path(__file__).parent / "project"
PAGE = ROOT / "docs" / "measured.md"
RELEASE = "bookworm"  # the figures on the page are from the packages of this release


def run(name: str, directory: Path) -> str:
    """Take a role through its four states on a booted bare Debian; return its row of the table.

    Skips the test with the reason if this machine can't run such a host.
    """
    role = next(role for role in ROLES if role.name == name)
    with or_skip():
        host = lab.booted_host(name, bare=debian.bare())
    try:
        return _course(role, host, directory)
    finally:
        host.stop()


def _course(role: Role, host: lab.Host, directory: Path) -> str:
    project = directory / "project"
    shutil.copytree(PROJECT, project)
    (project / "files").mkdir(exist_ok=True)
    more = role.prepare(host, project)
    runner = Runner(project / "playbooks" / role.playbook, host, [*reach(directory, [host]), *more], role.secrets)
    before = snapshot.take(host)

    bare = runner.compare()
    role.check(host)
    again = runner.compare()
    assert not again.acting
    assert not again.known_after
    if role.not_for_real:
        _plan_only(role, runner, again.exact)
    role.drift(host)
    drifted = runner.compare()
    assert drifted.acting
    role.check(host)
    destroyed = runner.compare_destroy()
    different = snapshot.differences(before, snapshot.take(host), role.leaves)
    assert not different, "\n".join(different)
    counts = [bare, again, drifted, destroyed]
    wrong = [text for count in counts for text in count.wrong]
    assert not wrong, "\n".join(wrong)
    found = _row(role, counts)
    if debian.codename() == RELEASE:
        assert found in PAGE.read_text(encoding="utf-8"), found
    return found


def _plan_only(role: Role, runner: Runner, usual: int) -> None:
    """Plan, but don't apply, the nodes that would change this machine."""
    planned = runner.run("plan", "-e", json.dumps({role.not_for_real: True}))
    assert sum(planned["summary"].values()) > usual
    assert "failed" not in planned["summary"]


def _row(role: Role, counts: list[Count]) -> str:
    cells = [f"{count.exact} / {len(count.known_after)} / {len(count.wrong)}" for count in counts]
    return f"| {role.name} | " + " | ".join(cells) + " |"
