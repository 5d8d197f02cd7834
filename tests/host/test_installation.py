"""statecfg as users install it: built from a copy of the sources, and run without them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import statecfg
from tests import ROOT

SETUP = "from setuptools import setup; setup()"
IMPORT = "import statecfg; print(statecfg.__file__, type(statecfg.hosts).__name__)"
PLAY = 'hosts: "@local"\nresources:\n  - file: {0}/made\n    content: "{{{{ host.facts.architecture }}}}"\n'


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory with an installed statecfg. No network and no build environment is needed."""
    folder = tmp_path_factory.mktemp("installation")
    sources, target = folder / "sources", folder / "installed"
    skipped = shutil.ignore_patterns("__pycache__", "*.pyc")
    for name in ("statecfg", "resources"):
        shutil.copytree(ROOT / name, sources / name, symlinks=True, ignore=skipped)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, sources)
    argv = [sys.executable, "-c", SETUP, "-q", "build", "--build-lib", str(target)]
    subprocess.run(argv, cwd=sources, check=True, capture_output=True, timeout=120)
    return target


def run(installed: Path, cwd: Path, *arguments: str) -> str:
    environ = {**os.environ, "PYTHONPATH": str(installed), "STATECFG_STATE_DIR": str(cwd / "state")}
    argv = [sys.executable, *arguments]
    return subprocess.run(argv, cwd=cwd, env=environ, check=True, capture_output=True, text=True, timeout=60).stdout


def files(folder: Path) -> set[str]:
    found = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)) for path in found}


def test_an_installation_has_every_file_of_the_sources(installed: Path) -> None:
    resources = {f"resources/{name}" for name in files(installed.parent / "sources/resources")}
    assert files(installed / "statecfg") == files(installed.parent / "sources/statecfg") | resources


def test_an_installation_runs_without_the_sources(installed: Path, tmp_path: Path) -> None:
    assert run(installed, tmp_path, "-c", IMPORT) == f"{installed}/statecfg/__init__.py Hosts\n"
    assert run(installed, tmp_path, "-m", "statecfg", "--version") == f"statecfg {statecfg.__version__}\n"


def test_an_installation_applies_a_playbook_that_uses_facts(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "statecfg.toml").touch()
    (tmp_path / "play.yml").write_text(PLAY.format(tmp_path))
    run(installed, tmp_path, "-m", "statecfg", "apply", "--yes", "play.yml")
    assert (tmp_path / "made").read_text() == os.uname().machine
