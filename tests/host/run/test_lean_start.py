"""An ordinary apply does not load libraries that it does not need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, sys
end = os._exit
def listed(code):
    heavy = {"sqlalchemy", "jinja2", "hy", "asyncio", "httpx", "jsonschema", "starlette"}
    print("loaded:", *sorted(heavy & {name.partition(".")[0] for name in sys.modules}), file=sys.stderr, flush=True)
    end(code)
os._exit = listed
from statecfg.cli.main import run
run(sys.argv[1:])
"""
PLAYBOOK = """
hosts: "@local"
resources:
  - directory: {folder}
  - file: {folder}/motd
    content: "hello"
"""


def loaded(*arguments: str, cwd: Path) -> list[str]:
    """Run a command; return which of the large libraries it has loaded at its end."""
    environment = {**os.environ, "STATECFG_STORE": str(cwd / "store.db"), "STATECFG_STATE_DIR": str(cwd / "ledger")}
    command = [sys.executable, "-c", PROGRAM, *arguments]
    ran = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stderr.rpartition("loaded:")[2].split()


@pytest.mark.parametrize("command", [("apply", "--yes"), ("plan",), ("verify",)])
def test_a_run_loads_no_large_library(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "site.yml").write_text(PLAYBOOK.format(folder=tmp_path / "folder"))
    created = loaded("apply", "--yes", "site.yml", cwd=tmp_path)
    assert "sqlalchemy" in created, "the first run creates the store, and so the program above sees what is loaded"
    verb, *options = command
    assert loaded(verb, *options, "site.yml", cwd=tmp_path) == []
