"""`statecfg schema` prints and writes JSON Schemas; `init` writes those of a new project."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests import ROOT
from tests.host.command import run


def statecfg(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(arguments, project, {**os.environ, "PYTHONPATH": str(ROOT)})


@pytest.mark.parametrize("kind", ["playbook", "include", "inventory", "settings"])
def test_schema_prints_the_text_that_init_writes(tmp_path: Path, kind: str) -> None:
    assert statecfg(tmp_path, "init", ".").returncode == 0
    printed = statecfg(tmp_path, "schema", *([kind] if kind != "playbook" else []))
    assert printed.returncode == 0, printed.stderr
    assert printed.stdout == (tmp_path / f".statecfg/{kind}.json").read_text()
    assert json.loads(printed.stdout)["$schema"] == "http://json-schema.org/draft-07/schema#"


def test_schema_is_written_only_if_it_changed(tmp_path: Path) -> None:
    statecfg(tmp_path, "init", ".")
    assert statecfg(tmp_path, "schema", "--write").stdout == "The schemas are up to date.\n"
    (tmp_path / ".statecfg/settings.json").unlink()
    assert statecfg(tmp_path, "schema", "--write").stdout == "wrote .statecfg/settings.json\n"


def test_wrong_use_of_schema_is_an_error(tmp_path: Path) -> None:
    done = statecfg(tmp_path, "schema", "inventory", "--write")
    assert done.returncode == 5 and "Leave out KIND" in done.stderr


def test_wrong_node_types_are_reported_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources/mine.py").write_text("x = 1\n")
    created = statecfg(tmp_path, "init", ".")
    assert created.returncode == 0 and "No schemas for editors" in created.stdout
    assert (tmp_path / "playbooks/hello.yml").exists()
    done = statecfg(tmp_path, "schema", "--write")
    assert done.returncode == 5 and "SC0119" in done.stderr
    assert not (tmp_path / ".statecfg").exists()
