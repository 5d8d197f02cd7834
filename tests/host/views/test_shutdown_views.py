"""Every view reports which resources were stopped first, and which are down as a result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from statecfg.playbook.compile import compile_graph
from statecfg.playbook.context import WireContext
from statecfg.resources import process
from statecfg.run.host.report import HostReport
from statecfg.run.host.state import SessionState
from statecfg.views import markdown
from tests.host.command import reach, statecfg
from tests.lab import PlainSshd

PLAYBOOK = """
hosts: all
vars: {{seconds: "4101"}}
resources:
  - process: /usr/bin/sleep
    args: ["{{{{ seconds }}}}"]
    user: {user}
    group: {group}
    env: {{}}
    requires: [command:check]
  - command: check
    argv: [test, "{{{{ seconds }}}}", "=", "4101"]
    effects: {{}}
"""


def test_all_views_report_what_a_run_stopped_first_and_left_down(sshd: PlainSshd, tmp_path: Path) -> None:
    """The views are the terminal, JSON and Markdown. A failed run leaves a process down, a successful run doesn't."""
    import grp
    import os

    options = reach(tmp_path, [sshd])
    playbook = tmp_path / "site.yml"
    group = grp.getgrgid(os.getegid()).gr_name
    playbook.write_text(PLAYBOOK.format(user=sshd.user, group=group))
    statecfg("apply", playbook, "--yes", *options, cwd=tmp_path)
    try:
        files = ["--json-into", tmp_path / "r.json", "--markdown-into", tmp_path / "r.md"]
        argv = ["apply", playbook, "--yes", "-e", "seconds=4102", *files, *options]
        ran = statecfg(*argv, cwd=tmp_path, code=1)
        assert "stopped first: process:/usr/bin/sleep" in ran.out
        assert "down: process:/usr/bin/sleep  it was stopped first, and its own actions did not run" in ran.out
        (host,) = json.loads((tmp_path / "r.json").read_text())["hosts"].values()
        assert host["down"] == ["process:/usr/bin/sleep"] and host["shutdown"][0]["status"] == "ok"
        said = (tmp_path / "r.md").read_text()
        assert "- stopped first: `process:/usr/bin/sleep` `service-down" in said
        assert "- **down**: `process:/usr/bin/sleep`" in said
        playbook.write_text(playbook.read_text().replace('"=", "4101"', '"!=", "4101"'))
        statecfg("apply", playbook, "--yes", "-e", "seconds=4103", *options, cwd=tmp_path)
        ran = statecfg("apply", playbook, "--yes", "-e", "seconds=4104", *files, *options, cwd=tmp_path)
        assert "stopped first: process:/usr/bin/sleep" in ran.out and "down:" not in ran.out
        (host,) = json.loads((tmp_path / "r.json").read_text())["hosts"].values()
        assert host["status"] == "ok" and "down" not in host
        assert [(action["node"], action["op"], action["status"]) for action in host["shutdown"]] == [
            ("process:/usr/bin/sleep", "service-down", "ok")
        ]
        said = (tmp_path / "r.md").read_text()
        assert "- stopped first: `process:/usr/bin/sleep` `service-down" in said and "**down**" not in said
    finally:
        statecfg("destroy", playbook, "--yes", *options, cwd=tmp_path)


def planned(name: str, first: dict[str, Any]) -> dict[str, Any]:
    action = {"op": "ensure-running", "args": {}, "status": "planned"}
    return {
        "name": name,
        "type": "process",
        "position": "",
        "outcome": "changed",
        "changes": [],
        "actions": [action],
        "shutdown_first": first,
    }


def test_report_of_a_lost_host_names_what_it_stopped() -> None:
    """The host's own report never came, so the report is built from earlier events."""
    graph = process("/usr/bin/sleep", args=["1"], user="root", group="root", env={})
    told = HostReport(compile_graph(graph, WireContext()), "apply", lambda kind, data: None)

    def hear(frame: dict[str, Any]) -> None:
        told.take(told.read(frame))

    name = "process:/usr/bin/sleep"
    first = {"op": "service-down", "args": {"pid": 7}, "status": "planned"}
    hear({"type": "planned", "part": "layers", "layer": 0, "nodes": [planned(name, first)], "fingerprints": {}})
    hear({"type": "plan", "owed": [], "seconds": 0.1, "waits": True})
    told.state = SessionState.ACTING
    event = {"type": "action", "node": name, "op": "service-down", "index": -1}
    hear({**event, "event": "started"})
    hear({**event, "event": "finished", "status": "ok", "reason": None})
    told.lost("the connection was lost", "", "", heard_all=False)
    told.conclude()
    (stopped,) = told.data["shutdown"]
    assert (stopped["node"], stopped["status"], told.data["down"]) == (name, "ok", [name])
    report = {"format": 1, "mode": "apply", "hosts": {"h": told.data}}
    assert f"- **down**: `{name}`: it was stopped first" in markdown.text(report)
