"""Help of the real command: it is fast and has suggestions."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tomllib

import pytest

import statecfg as package
from statecfg.cli.main import VERBS, VERSION
from tests import ROOT

# Help must not import these modules: each import takes longer than help may take in total.
HEAVY = ("paramiko", "cryptography", "hy", "yaml", "rich", "jinja2", "pyrsistent", "toposort", "asyncio", "PIL")


def run(*arguments, **environ):
    return subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "statecfg", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environ}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_help_imports_no_slow_modules():
    shown = run("--help")
    assert shown.returncode == 0
    modules = {row.rpartition("|")[2].strip().partition(".")[0] for row in shown.stderr.splitlines()}
    assert "click" in modules
    assert modules.isdisjoint(HEAVY)


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_each_verb_imports_no_slow_modules(verb):
    shown = run(verb, "--help")
    assert shown.returncode == 0
    modules = {row.rpartition("|")[2].strip().partition(".")[0] for row in shown.stderr.splitlines()}
    assert modules.isdisjoint(HEAVY)


def test_help_takes_at_most_150_ms_of_cpu():
    spent = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "statecfg", "--help"], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent) <= 0.15


def test_version_matches_the_package_metadata():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert VERSION == package.__version__ == project["version"]
    assert run("--version").stdout == f"statecfg {VERSION}\n"


def test_an_unknown_verb_gets_a_suggestion():
    shown = run("aply", "x.yml")
    assert shown.returncode == 5
    assert "Unknown command `aply`. Did you mean `apply`?" in shown.stderr
