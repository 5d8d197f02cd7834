"""Follows docs/writing-a-node-type-in-hy.md exactly, in a separate project and with the real command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests import ROOT

PAGE = ROOT / "docs" / "writing-a-node-type-in-hy.md"
BLOCK = re.compile(r"```hy\n; (\S+)\n(.*?)```", re.DOTALL)


def statecfg(project: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(PAGE.parents[1]), "XDG_STATE_HOME": str(project / "state")}
    command = [sys.executable, "-m", "statecfg", *arguments, "-e", f"root={project}/welcome"]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_hy_node_type_page_can_be_followed(tmp_path: Path) -> None:
    (tmp_path / "statecfg.toml").touch()
    blocks = BLOCK.findall(PAGE.read_text())
    assert len(blocks) == PAGE.read_text().count("```hy") == 3
    for name, text in blocks:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        with path.open("a") as stream:
            stream.write(text)
    motd = tmp_path / "welcome" / "motd"
    assert "Welcome to @local." in statecfg(tmp_path, "plan", "playbooks/welcome.hy")
    assert not motd.exists()
    statecfg(tmp_path, "apply", "--yes", "playbooks/welcome.hy")
    assert motd.read_text() == "Welcome to @local.\n -- ops\n"
    assert "Nothing to do" in statecfg(tmp_path, "apply", "--yes", "playbooks/welcome.hy")
    statecfg(tmp_path, "destroy", "--yes", "playbooks/welcome.hy")
    assert not motd.parent.exists()
    motd.parent.mkdir()
    motd.write_text("before")
    statecfg(tmp_path, "apply", "--yes", "playbooks/welcome.hy")
    statecfg(tmp_path, "destroy", "--yes", "playbooks/welcome.hy")
    assert motd.read_text() == "before"
