"""Imports of modules under their 0.3 names still work, and one warning names the new module."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from statecfg.remote.former import MOVED
from tests.host.command import statecfg

TYPE = """\
from statecfg.remote.model import CheckError, error, ok
from statecfg.remote.nodetype import node_type
from statecfg.remote.ops import op
from statecfg.remote.values import MAX_PATH, AbsolutePath, show

@node_type
def note(path: AbsolutePath, *, text: str) -> None:
    \"\"\"A note.\"\"\"

@op
def put(machine, path, text):
    if len(path) > MAX_PATH:
        return error("too long: %s" % show(path))
    machine.write(path, text)
    return ok("written")

@note.check
def check(node, world):
    path, text = node.attrs["path"], node.attrs["text"]
    if world.settled(path) and world.stat(path) is not None and world.stat(path).kind == "file":
        return [] if world.read(path) == text.encode() else [put(path, text)]
    return [put(path, text)]
"""


# Every public name that these modules defined in 0.3.0. `NodeOptions` of `nodetype` was only for type checkers.
PUBLIC = {
    name: names.split()
    for name, names in {
        "memory": "MemoryMachine Nothing",
        "model": "Action ActionSpec Blob CheckError Json Keyword Node OK Record Result Unknown error ok",
        "nodetype": "CHECK_PARAMETERS NodeType OPTIONS REGISTRY Schema TABLES Table node_type register table",
        "ops": "Op op",
        "values": (
            "AbsolutePath Annotated Argv Content GroupName Id Line LocalPath MAX_ID MAX_NAME MAX_PATH MAX_SHOWN "
            "Mode Name Names NoNul Owner OwnerGroup PackageName Pattern Port Rule SPECIAL Seconds Suffix Text "
            "UserName Wrong absolute_path account_name argv content encodable kind_of local_path mode no_nul "
            "one_line owner_name package_name pattern plain_name seconds show suffix within"
        ),
        "world": "ANYTHING Effect Machine Probe Stat World called",
    }.items()
}


@pytest.mark.parametrize("name", sorted(MOVED))
def test_a_former_module_has_every_public_name_that_it_had(name: str) -> None:
    former, new = f"statecfg.remote.{name}", f"statecfg.remote.{MOVED[name]}"
    code = f"""
import {former} as former, {new} as new
print([name for name in {PUBLIC[name]} if not hasattr(former, name)])
print([name for name in vars(new) if name[0] != "_" and getattr(former, name) is not getattr(new, name)])
print(*(name for name in {PUBLIC[name]} if not hasattr(new, name)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    missing, other, elsewhere = done.stdout.splitlines()
    assert missing == other == "[]"
    (warning,) = [line for line in done.stderr.splitlines() if "FutureWarning" in line]
    assert warning.startswith(f"<string>:2: FutureWarning: {former} is now {new}. ")
    assert set(elsewhere.split()) <= set(re.findall(r"\w+", warning))


def test_a_former_public_name_gives_the_same_class() -> None:
    code = "from statecfg import Place, SourceLocation; assert Place is SourceLocation"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr.count("FutureWarning") == 1
    assert "<string>:1: FutureWarning: statecfg.Place is now statecfg.SourceLocation" in done.stderr


@pytest.mark.parametrize(
    "code",
    [
        "from statecfg.hooks import http_hooks; call = http_hooks.call",
        "import statecfg.hooks.http_hooks; call = statecfg.hooks.http_hooks.call",
        "from statecfg.hooks.http_hooks import call",
    ],
)
def test_a_former_documented_module_has_the_names_of_the_new_one(code: str) -> None:
    code += "; from statecfg.hooks.http import calls; assert call is calls.call"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr.count("FutureWarning") == 1
    assert "<string>:1: FutureWarning: statecfg.hooks.http_hooks is now statecfg.hooks.http.calls" in done.stderr


def test_a_file_is_warned_once_of_each_former_name(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(
        "import statecfg\nfrom statecfg import Place, table\n\n@statecfg.table('one')\ndef one(host): return {}\n"
        "statecfg.Place\nproblem = statecfg.Problem('SC0101', 's', 'd', places=(Place('f', 1),))\n"
        "assert problem.places == problem.places == (statecfg.SourceLocation('f', 1),)\n"
    )
    done = subprocess.run([sys.executable, "user.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    warned = re.findall(r"user.py:(\d+): FutureWarning: (.*) is now (.*)\. The former name will", done.stderr)
    assert warned == [
        ("2", "statecfg.Place", "statecfg.SourceLocation"),
        ("2", "statecfg.table", "statecfg.facet"),
        ("7", "places of Problem", "locations"),
        ("8", "Problem.places", "Problem.locations"),
    ]


def test_an_import_of_all_names_contains_the_former_ones_without_a_warning(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text("from statecfg import *\nassert Place is SourceLocation and table is facet\n")
    done = subprocess.run([sys.executable, "user.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_node_type_written_for_0_3_loads_with_warnings(tmp_path: Path) -> None:
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources/note.py").write_text(TYPE)
    (tmp_path / "statecfg.toml").touch()
    (tmp_path / "site.yml").write_text(f"hosts: '@local'\nresources:\n  - note: {tmp_path}/made\n    text: hi\n")
    ran = statecfg("apply", "site.yml", "--yes", cwd=tmp_path, STATECFG_STATE_DIR=str(tmp_path / "state"))
    assert (tmp_path / "made").read_text() == "hi"
    for name in ("model", "nodetype", "ops", "values"):
        assert ran.err.count(f"statecfg.remote.{name} is now") == 1
    assert "resources/note.py:1: FutureWarning" in ran.err
    assert "Stat.kind" not in ran.err, "hosts read the former name silently"
