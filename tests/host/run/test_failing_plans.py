"""A plan that fails starts nothing on its host: the other hosts are changed, and --keep-going starts it anyway."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.host.cli.test_terminal import Terminal
from tests.host.command import reach
from tests.host.run.site import Site
from tests.lab import Host

WHY = "its plan fails"


@pytest.fixture
def site(tmp_path: Path, light_host: Host, place: str) -> Site:
    return Site(tmp_path, light_host, place.rpartition("/")[2])


def nodes(place: str) -> list[str]:
    """Return a node that changes something, one that fails in the plan, and one that requires it."""
    return [
        f"file('{place}-good', content='g\\n')",
        f"file('{place}-bad', content='b\\n', owner='nosuchuser')",
        f"file('{place}-after', content='a\\n', requires=['file:{place}-bad'])",
    ]


def outcomes(report: dict[str, Any]) -> dict[str, str]:
    """Return the outcome of each node, by the last word of its name."""
    nodes = [node for layer in (*report["removals"], *report["layers"]) for node in layer]
    return {node["name"].rpartition("-")[2]: node["outcome"] for node in nodes}


def test_a_plan_that_fails_starts_nothing(site: Site, light_host: Host, place: str) -> None:
    site.play(*nodes(place))
    planned = site.report("plan", "site.py", code=1)
    assert (planned["status"], planned["halted"]) == ("failed", WHY)
    assert (
        f"Nothing will be changed on {light_host.name} because its plan fails.\n" in site("plan", "site.py", code=1).out
    )
    done = site.report("apply", "site.py", "--yes", code=1)
    assert (done["status"], done["halted"], done["summary"]) == ("failed", WHY, {"failed": 1, "skipped": 2})
    reasons = {node["name"]: node["reason"] for layer in done["layers"] for node in layer}
    assert reasons[f"file:{place}-good"] == "not started: its plan fails"
    assert not exists(light_host, f"{place}-good")
    shown = site("apply", "site.py", "--yes", code=1).out
    assert f"── {light_host.name}  its plan fails, so nothing is changed\n" in shown
    assert f"  · not attempted: 2 resources: file:{place}-good, file:{place}-after\n" in shown
    history = json.loads(site("run-history", light_host.name, "--json").out)
    newest = history["hosts"][light_host.name]["history"][0]
    assert newest["status"] == "failed"


def test_keep_going_starts_a_plan_that_fails_and_says_so(site: Site, light_host: Host, place: str) -> None:
    site.play(*nodes(place))
    done = site.report("apply", "site.py", "--yes", "--keep-going", code=1)
    assert done["warnings"] == [f"the plan fails for file:{place}-bad; --keep-going applies the rest of it"]
    assert "halted" not in done or done["halted"] != WHY
    assert light_host.read(f"{place}-good") == "g\n"
    assert outcomes(done) == {"good": "changed", "bad": "failed", "after": "skipped"}


STICKY = '''
from statecfg import CheckError, node_type

@node_type
def sticky(path, **options):
    """A thing that can be removed only after its lock is gone."""

@sticky.check
def check(node, nodes, world):
    return []

@sticky.remember
def remember(node, world):
    return {}

@sticky.undo
def undo(node, memory, world):
    if world.stat(node.attrs["path"]) is not None:
        raise CheckError(node.attrs["path"] + " is locked")
    return []
'''


def test_a_failing_removal_starts_nothing(site: Site, light_host: Host, place: str) -> None:
    (site.base / "resources").mkdir()
    (site.base / "resources" / "sticky.py").write_text(STICKY)
    (site.base / "site.yml").write_text(
        f"hosts: all\nresources:\n  - sticky: {place}-old\n  - {{file: {place}-other, content: text}}\n"
    )
    site("apply", "site.yml", "--yes")
    light_host.write(f"{place}-old", "")
    (site.base / "site.yml").write_text(f"hosts: all\nresources:\n  - {{file: {place}-new, content: text}}\n")
    assert site.report("plan", "site.yml", "--prune", code=1)["halted"] == WHY
    done = site.report("apply", "site.yml", "--yes", "--prune", code=1)
    assert done["halted"] == WHY
    assert outcomes(done) == {"old": "failed", "other": "skipped", "new": "skipped"}
    assert site.report("destroy", "site.yml", "--yes", code=1)["halted"] == WHY
    assert exists(light_host, f"{place}-other")
    assert not exists(light_host, f"{place}-new")
    site("destroy", "site.yml", "--yes", "--keep-going", code=1)
    assert not exists(light_host, f"{place}-other")
    light_host.run(["rm", f"{place}-old"])
    site("apply", "site.yml", "--yes", "--prune")
    assert exists(light_host, f"{place}-new")


def test_what_only_a_failing_plan_would_make_true_is_not_recorded(site: Site, light_host: Host, place: str) -> None:
    """The line is as defined only after the file was written, which never happened."""
    light_host.write(f"{place}-good", "x\n")
    site.play(*nodes(place), f"line_in_file('{place}-good', line='g', requires=['file:{place}-good'])")
    site("apply", "site.py", "--yes", code=1)
    listed = site("explain", f"line_in_file:{place}-good", "--host", light_host.name, code=None)
    assert "since" not in listed.out


def test_other_hosts_are_changed(make_light_hosts: Callable[[int], list[Host]], tmp_path: Path, place: str) -> None:
    hosts = make_light_hosts(2)
    site = Site(tmp_path, hosts[0], place.rpartition("/")[2])
    reach(site.base, hosts)
    hosts[1].run(["useradd", "--no-create-home", "nosuchuser"])
    site.play(*nodes(place))
    planned = site("plan", "site.py", "--out", "site.plan", "--markdown-into", "plan.md", code=1)
    assert f"Nothing will be changed on {hosts[0].name} because its plan fails.\n" in planned.out
    assert "its plan fails, so nothing is changed" in (site.base / "plan.md").read_text()
    report = site("apply", "site.py", "--yes", "--json", code=1).json()["hosts"]
    assert [report[host.name]["status"] for host in hosts] == ["failed", "ok"]
    assert not exists(hosts[0], f"{place}-good")
    assert exists(hosts[1], f"{place}-good")
    hosts[1].run(["rm", f"{place}-good"])
    saved = site("apply", "site.plan", "--json", code=None).json()["hosts"]
    assert [saved[host.name]["status"] for host in hosts] == ["refused", "refused"]  # host 2 has changed since


def test_the_question_names_the_hosts_that_stay(
    make_light_hosts: Callable[[int], list[Host]], tmp_path: Path, place: str
) -> None:
    hosts = make_light_hosts(2)
    site = Site(tmp_path, hosts[0], place.rpartition("/")[2])
    reach(site.base, hosts)
    hosts[1].run(["useradd", "--no-create-home", "nosuchuser"])
    site.play(*nodes(place))
    program = SimpleNamespace(base=site.base, environ={**os.environ, "XDG_STATE_HOME": str(site.state)})
    screen = Terminal(program, "apply", "site.py", "--ssh-config", str(site.base / "ssh_config"), columns=160)
    try:
        shown = plain(screen.until("[y/N]"))
        assert f"Nothing will be changed on {hosts[0].name} because its plan fails." in shown
        assert f"  · not started: 1 resource: file:{place}-good" in shown
        assert "Plan: 3 to add, 0 to change, 0 to destroy, 1 failed." in shown
        screen.type("y\n")
        assert screen.end() == 1
    finally:
        screen.close()
    assert not exists(hosts[0], f"{place}-good")
    assert exists(hosts[1], f"{place}-after")


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)


def exists(host: Host, path: str) -> bool:
    return host.path(path).exists()
