"""The page about tests of definitions: its example runs with the plugin in a real pytest."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests import ROOT

FILE = re.compile(r"<!-- test: file (\S+) -->\n```\w+\n(.*?)^```", re.S | re.M)


def run_pytest(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a project with the plugin, as the entry point loads it."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    plugin = settings["project"]["entry-points"]["pytest11"]["statecfg"]
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", plugin, *arguments]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(argv, cwd=project, env=environ, capture_output=True, text=True, timeout=120, check=False)


def written(project: Path) -> None:
    for name, text in FILE.findall((ROOT / "docs/testing.md").read_text(encoding="utf-8")):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(text)


def test_tests_of_the_page_pass(tmp_path: Path) -> None:
    written(tmp_path)
    done = run_pytest(tmp_path, "-q", "tests")
    assert done.returncode == 0 and "7 passed" in done.stdout, done.stdout + done.stderr


def test_failed_assertion_shows_the_plan(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "tests/test_web.py").write_text(
        "def test_web_server_is_unchanged(statecfg):\n"
        "    plan = statecfg.plan('playbooks/web.yml')\n"
        "    assert plan.unchanged\n"
    )
    done = run_pytest(tmp_path, "tests")
    assert done.returncode == 1
    assert "<plan for web1>" in done.stdout and "changed   package:nginx  install" in done.stdout, done.stdout


def test_pytest_lists_the_fixture_with_its_description(tmp_path: Path) -> None:
    written(tmp_path)
    assert "Return the playbooks of the project" in run_pytest(tmp_path, "--fixtures", "tests").stdout


def test_plan_on_an_imagined_host_takes_less_than_50_ms(tmp_path: Path) -> None:
    """The first plan of a process loads node types, so a hundred more plans show what one of them takes."""
    written(tmp_path)
    (tmp_path / "tests/test_web.py").write_text(
        "import time\n\n"
        "def test_web_server_is_unchanged(statecfg):\n"
        "    statecfg.plan('playbooks/web.yml')\n"
        "    start = time.process_time()\n"
        "    for _ in range(100):\n"
        "        statecfg.plan('playbooks/web.yml')\n"
        "    assert time.process_time() - start < 5\n"
    )
    done = run_pytest(tmp_path, "tests")
    assert done.returncode == 0, done.stdout
