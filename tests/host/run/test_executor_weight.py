"""The start-up cost of the executor: the modules that a plan without changes loads on each Python."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import statecfg.resources
from statecfg.resources.index.modules import module_of
from statecfg.run import bundle
from tests.host import sent

PYENV = Path.home() / ".pyenv" / "versions"
PYTHONS = [str(path) for minor in range(8, 20) for path in PYENV.glob(f"3.{minor}.*/bin/python")] or [sys.executable]
# Each costs milliseconds on every host of every run, and a plan that finds nothing to do needs none of them.
HEAVY = {
    *("subprocess", "sqlite3", "logging", "dataclasses", "inspect", "difflib", "typing", "ast", "dis", "argparse"),
    *("tempfile", "shutil", "pathlib", "urllib", "socket", "ssl", "email", "http", "asyncio", "unicodedata", "random"),
    *("traceback", "tokenize", "linecache", "base64", "selectors", "pickle", "decimal", "datetime", "contextlib"),
}
MOST = 75  # number of modules, without those that the interpreter loads when it starts

PLAN = """
import json, os, sys
before = set(sys.modules)
root, place, path, sha256, mode, run, module = sys.argv[1:]
sys.path.insert(0, root)
from statecfg.remote import session
from statecfg.remote.ledger import state
state.directory = lambda: place
types = {"file": module}
content = {"$blob": [sha256, 2], "text": "x\\n"}
node = {"provides": "file:x", "type": "file", "attrs": {"path": path, "content": content}}
frames = [
    ({"type": "run", "mode": mode, "run": run, "who": "w", "playbook": "p", "types": types}, b""),
    ({"type": "nodes", "layer": 0, "nodes": [node]}, b""),
    ({"type": "begin"}, b""),
]
source, _ = os.pipe()
sink = os.open(place + "/said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
session.main(source, sink, {}, frames)
loaded = sorted(name for name in set(sys.modules) - before)
from statecfg.remote.wire.frames import Decoder
said = [header for header, _ in Decoder().feed(open(place + "/said", "rb").read())]
print(json.dumps([loaded, said]))
"""


@pytest.fixture
def host_half(tmp_path: Path) -> Path:
    """Return a folder with the modules that a host receives for a playbook of files."""
    _ = statecfg.resources.file
    sent.write(sent.unpacked(bundle.build(["file"]).data), tmp_path)
    return tmp_path


def run(python: str, host_half: Path, mode: str, number: int = 0) -> list[str]:
    """Run with a file that is as defined. Return the modules that this loaded."""
    place = host_half / "state"
    place.mkdir(exist_ok=True)
    place.chmod(0o700)
    (host_half / "f").write_text("x\n")
    digest = hashlib.sha256(b"x\n").hexdigest()
    arguments = [str(host_half), str(place), str(host_half / "f"), digest, mode, f"r{number}", module_of("file")]
    done = subprocess.run(
        [python, "-I", "-S", "-B", "-c", PLAN, *arguments], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    loaded, said = json.loads(done.stdout)
    assert [header["type"] for header in said] == ["hello", "planned", "plan", "end"]
    assert said[1]["nodes"][0]["outcome"] == "unchanged", said[1]
    assert said[-1]["status"] == "ok"
    return [str(name) for name in loaded]


@pytest.mark.parametrize("python", PYTHONS, ids=lambda python: Path(python).parents[1].name)
def test_a_plan_without_changes_loads_few_modules(host_half: Path, python: str) -> None:
    loaded = run(python, host_half, "plan")
    assert sorted(HEAVY & {name.split(".")[0] for name in loaded}) == []
    assert len(loaded) <= MOST, loaded


@pytest.mark.parametrize("python", PYTHONS, ids=lambda python: Path(python).parents[1].name)
def test_a_run_without_changes_loads_no_database(host_half: Path, python: str) -> None:
    assert "_sqlite3" in run(python, host_half, "apply", 1)
    for number, mode in enumerate(("plan", "verify", "apply", "apply"), 2):
        assert "_sqlite3" not in run(python, host_half, mode, number)
