"""The tools of hooks are installed on hosts, and start quickly."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from statecfg.remote.units.tools import install as tool_files
from statecfg.remote.units.tools.catalogue import TOOLS
from tests.host.units.tool_scene import Scene

PYENV = Path.home() / ".pyenv" / "versions"


OLDEST = [str(path) for path in PYENV.glob("3.8.*/bin/python3.8")] or [sys.executable]


def test_install_writes_the_files_once_and_repairs_them(tmp_path: Path) -> None:
    folder = Path(tool_files.install(str(tmp_path)))
    assert {path.name for path in folder.iterdir()} == {*TOOLS, tool_files.CODE, tool_files.PROGRAM}
    assert (folder.parent / "current").resolve() == folder
    assert folder.stat().st_mode & 0o777 == folder.parent.stat().st_mode & 0o777 == 0o700
    before = (folder / "tool").stat().st_ino
    assert tool_files.install(str(tmp_path)) == str(folder)
    assert (folder / "tool").stat().st_ino == before
    (folder / "modules").write_bytes(b"damaged")
    (folder / "relation-get").unlink()
    assert tool_files.install(str(tmp_path)) == str(folder)
    done = subprocess.run([folder / "relation-get", "--help"], capture_output=True, timeout=30)
    assert done.returncode == 0


def test_install_removes_old_directories(tmp_path: Path) -> None:
    folder = Path(tool_files.install(str(tmp_path)))
    for name, age in (("of-yesterday", 1), ("of-last-year", 365)):
        (folder.parent / name).mkdir()
        (folder.parent / name / "tool").touch()
        os.utime(folder.parent / name, (time.time() - age * 86400,) * 2)
    tool_files.install(str(tmp_path))
    assert sorted(path.name for path in folder.parent.iterdir()) == sorted(["current", folder.name, "of-yesterday"])


@pytest.mark.parametrize("python", [*OLDEST, sys.executable])
def test_every_process_installs_the_same_working_files(python: str, tmp_path: Path) -> None:
    """Processes with different hash seeds install into the same directory, and the tools work with that Python."""
    root = str(Path(tool_files.__file__).parents[4])
    script = "import sys; sys.path[:0] = sys.argv[1:2]; sys.dont_write_bytecode = True\n"
    script += "from statecfg.remote.units.tools import install; print(install.install(sys.argv[2]))"
    found = {
        subprocess.run(
            [python, "-S", "-c", script, root, str(tmp_path)], env={"PYTHONHASHSEED": seed}, check=True, **RUN
        ).stdout
        for seed in ("1", "2")
    }
    (folder,) = found
    scene = Scene(tmp_path)
    scene.tools = folder.strip()
    try:
        assert scene.call("relation-get", "--format=json", "host") == (0, '"10.0.0.5"\n', "")
        assert scene.call("relation-set", "--file", "-", stdin="a: 'x'\n") == (0, "", "")
        assert scene.call("relation-get", "nothing", JUJU_AGENT_SOCKET=None).status == 2
    finally:
        scene.close()


RUN: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 60}


@pytest.mark.parametrize("name", ["a b", 'q"u$o`te', "l" * 150])
def test_tools_work_with_an_unusual_python_path(name: str, tmp_path: Path) -> None:
    python = tmp_path / name / "python"
    python.parent.mkdir()
    python.symlink_to(os.path.realpath(sys.executable))
    folder = tool_files.install(str(tmp_path), str(python))
    done = subprocess.run([os.path.join(folder, "unit-get"), "--help"], **RUN)
    assert done.stdout.startswith("usage: unit-get"), done.stderr
    done = subprocess.run([os.path.join(folder, "unit-get")], **RUN)
    assert done.returncode == 2


# Modules that load too slowly, as hooks call dozens of tools.
COSTLY = {"socket", "argparse", "subprocess", "selectors", "enum", "typing", "logging", "tempfile", "shutil", "inspect"}


@pytest.mark.parametrize("line, json", [("relation-list", False), ("juju-log x", False), ("relation-get", True)])
def test_tools_load_no_slow_modules(line: str, json: bool, shared: Scene) -> None:
    """A tool loads only the modules that it needs."""
    path = Path(shared.tools) / "tool"
    text = path.read_text().replace(
        'names["run"](modules)',
        "import sys, os; end = os._exit\n"
        'os._exit = lambda status: (os.write(2, " ".join(sys.modules).encode()), end(status))\n'
        'names["run"](modules)',
    )
    words = line.split()
    done = subprocess.run(
        [sys.executable, "-ISXutf8", "-c", f"import sys; sys.argv = {words!r}\n" + text],
        env=shared.environment(),
        **RUN,
    )
    loaded = set(done.stderr.split())
    assert done.returncode == 0 and "statecfg.remote.units.tools.commands" in loaded, done.stderr
    unwanted = COSTLY if not json else COSTLY - {"enum"}  # json imports re, which imports enum
    assert not loaded & unwanted
    assert ("json" in loaded) == json
