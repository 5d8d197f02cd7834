"""Imports of modules under their 0.3 names still work, and one warning names the new module."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from statecfg.remote import MOVED
from tests.host.command import statecfg

TYPE = """\
from statecfg.remote.model import CheckError
from statecfg.remote.nodetype import node_type
from statecfg.remote.ops import op

@node_type
def note(path: str, *, text: str) -> None:
    \"\"\"A note.\"\"\"

@op
def put(machine, path, text):
    return machine.write(path, text)

@note.check
def check(node, world):
    path, text = node.attrs["path"], node.attrs["text"]
    if world.stat(path) is not None and world.read(path) == text.encode():
        return []
    return [put(path, text)]
"""


@pytest.mark.parametrize("name", sorted(MOVED))
def test_a_former_module_name_imports_the_new_module(name: str) -> None:
    former, new = f"statecfg.remote.{name}", f"statecfg.remote.{MOVED[name]}"
    code = (
        f"import {former} as a, {new} as b; import importlib; assert a is b is importlib.reload(a); print(a.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == f"{new}\n"
    assert done.stderr.count("FutureWarning") == 1
    assert f"<string>:1: FutureWarning: {former} is now {new}." in done.stderr


def test_a_former_public_name_gives_the_same_class() -> None:
    code = "from statecfg import Place, SourceLocation; assert Place is SourceLocation"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr.count("FutureWarning") == 1
    assert "<string>:1: FutureWarning: statecfg.Place is now statecfg.SourceLocation" in done.stderr


def test_a_former_documented_name_imports_the_new_module() -> None:
    code = "from statecfg.hooks import http_hooks; from statecfg.hooks.http import calls; assert http_hooks is calls"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr.count("FutureWarning") == 1
    assert "<string>:1: FutureWarning: statecfg.hooks.http_hooks is now statecfg.hooks.http.calls" in done.stderr


def test_a_node_type_written_for_0_3_loads_with_warnings(tmp_path: Path) -> None:
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources/note.py").write_text(TYPE)
    (tmp_path / "statecfg.toml").touch()
    (tmp_path / "site.yml").write_text(f"hosts: '@local'\nresources:\n  - note: {tmp_path}/made\n    text: hi\n")
    ran = statecfg("apply", "site.yml", "--yes", cwd=tmp_path, STATECFG_STATE_DIR=str(tmp_path / "state"))
    assert (tmp_path / "made").read_text() == "hi"
    for name in ("model", "nodetype", "ops"):
        assert ran.err.count(f"statecfg.remote.{name} is now") == 1
    assert "resources/note.py:1: FutureWarning" in ran.err
