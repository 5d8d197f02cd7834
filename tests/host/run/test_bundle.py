"""The bundle: each host gets only the code that it needs, and that code runs on the oldest supported Python."""

from __future__ import annotations

import ast
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from statecfg import resources
from statecfg.remote.former import MOVED
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.resources.index.modules import module_of
from statecfg.run import bundle, host_modules
from tests.host import sent
from tests.host.command import statecfg

PYENV = Path.home() / ".pyenv" / "versions"
PYTHONS = [str(path) for minor in range(8, 20) for path in PYENV.glob(f"3.{minor}.*/bin/python")] or [sys.executable]

NEWER = """\
from statecfg import node_type

@node_type
def modern(path: str) -> None:
    \"\"\"A type that is too modern.\"\"\"

@modern.check
def check(node, world):
    match node.attrs["path"]:
        case _:
            return []
"""

# The annotations need Python 3.12 and names that are missing on hosts.
MODERN = """\
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from statecfg import AbsolutePath, Action, HostNode, Machine, Mode, NodeOptions, Result, World, node_type, op


@node_type
def note(path: AbsolutePath, *, mode: Mode | None = None, **options: Unpack[NodeOptions]) -> None:
    \"\"\"A note.\"\"\"


@op
def put(machine: Machine, path: str, fields: Mapping[str, Any] | None = None) -> Result:
    return machine.write(path, "noted")


@note.check
def check(node: HostNode, world: World) -> list[Action]:
    path: str = node.attrs["path"]
    return [put(path)] if world.stat(path) is None else []
"""

IMPORT_ALL = """
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
for name in json.load(sys.stdin):
    importlib.import_module(name)
print("typing" in sys.modules)
"""


def former_modules() -> dict[str, host_modules.Module]:
    """Return the modules that a node type written for 0.3 imports."""
    return host_modules.closure(f"statecfg.remote.{name}" for name in MOVED)


def ours() -> list[str]:
    return [name for name in resources.available() if getattr(resources, name).module == module_of(name)]


def test_a_host_gets_only_the_node_types_of_its_definition() -> None:
    _ = resources.file
    found = set(sent.unpacked(bundle.build(["file"]).data))
    types = {name.rpartition(".")[2] for name in found if name.startswith("statecfg.resources.")}
    assert types.intersection(resources.available()) == {"file"}
    assert not [name for name in found if name.startswith(("statecfg.remote.units", "statecfg.remote.hooks.run"))]
    assert "statecfg.remote.graph.values" not in found


def test_code_for_hooks_and_units_is_sent_only_when_needed() -> None:
    assert bundle.parts({}) == {}
    (hooks,) = bundle.parts({"hooks": [{"where": "controller"}]}).values()
    assert "statecfg.remote.hooks.run" in sent.unpacked(hooks.data)
    in_core = {name for name in host_modules.core() if name.startswith("statecfg.remote.hooks.")}
    assert in_core == {"statecfg.remote.hooks.lifecycle"}, "hosts without hooks have states of resources, too"
    (units,) = bundle.parts({"units": {"units": []}}).values()
    assert "statecfg.remote.units.units" in sent.unpacked(units.data)
    assert not set(sent.unpacked(units.data)) & set(host_modules.core())
    assert bundle.parts({}, [[{"type": "file", "attrs": {"mode": 0o644}}]]) == {}
    (modes,) = bundle.parts({}, [[{"type": "file", "attrs": {"mode": "a+x"}}]]).values()
    assert list(sent.unpacked(modes.data)) == ["statecfg.remote.graph.symbolic_modes"]
    (exclusions,) = bundle.parts({}, [[{"type": "directory", "attrs": {"exclude": ["*.log"]}}]]).values()
    assert "statecfg.resources.shared.exclusions" in sent.unpacked(exclusions.data)


def test_code_for_services_without_systemd_is_sent_with_the_types_that_know_units() -> None:
    """It is sent for orphans, too, because only the host knows them."""
    _ = resources.service, resources.file
    (services,) = bundle.parts({}, [[{"type": "service"}, {"type": "file"}]]).values()
    found = sent.unpacked(services.data)
    assert "statecfg.resources.services.init_scripts" in found
    assert "statecfg.resources.services.systemd" not in found  # it is in the bundle
    assert "statecfg.resources.services.init_scripts" in bundle.modules_of(["service"])[0]
    assert bundle.parts({}, [[{"type": "file"}]]) == {}


@pytest.mark.parametrize("python", PYTHONS, ids=lambda python: Path(python).parents[1].name)
def test_every_module_that_is_sent_can_be_imported(python: str, tmp_path: Path) -> None:
    found = {**sent.unpacked(bundle.build(ours()).data), **former_modules()}
    for part in map(bundle._part, host_modules.PARTS):
        found.update(sent.unpacked(part.data))
    sent.write(found, tmp_path)
    names = [name for name in found if name != "statecfg.remote.units.tools.start"]  # a program, not a module
    done = subprocess.run(
        [python, "-I", "-S", "-B", "-c", IMPORT_ALL, str(tmp_path)],
        input=json.dumps(names), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stderr, done.returncode) == ("", 0)


def test_sent_source_keeps_its_line_numbers() -> None:
    root = Path(host_modules.__file__).parents[1]
    for name, (package, _, text) in host_modules.core().items():
        if not name.startswith("statecfg.remote"):
            continue
        path = root.joinpath(*name.split(".")[1:])
        source = (path / "__init__.py" if package else path.with_suffix(".py")).read_text()
        assert source.count("\n") == text.count("\n"), name
        there = {(node.name, node.lineno) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}
        here = {(node.name, node.lineno) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)}
        assert there <= here, name


def test_a_node_type_too_modern_for_hosts_is_refused_locally(tmp_path: Path) -> None:
    (tmp_path / "statecfg.toml").write_text("")
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources/modern.py").write_text(NEWER)
    (tmp_path / "play.yml").write_text('hosts: "@local"\nresources:\n  - modern: /x\n')
    for verb in ("validate", "plan"):
        ran = statecfg(verb, "play.yml", cwd=tmp_path, code=5)
        assert "SC0516" in ran.err
        assert "resources/modern.py:11:22" in ran.err
        assert "node types run on hosts: use the syntax of Python 3.8" in ran.err


@pytest.mark.parametrize("python", PYTHONS, ids=lambda python: Path(python).parents[1].name)
def test_a_node_type_may_use_annotations_newer_than_the_hosts_python(python: str, tmp_path: Path) -> None:
    folder = tmp_path / "resources"
    folder.mkdir()
    (folder / "note.py").write_text(MODERN)
    before = list(resources.__path__)
    resources.add_directory(str(folder))
    try:
        sent.write({**host_modules.core(), **host_modules.of_types(["statecfg.resources.note"])}, tmp_path)
    finally:
        resources.__path__[:] = before
    done = subprocess.run(
        [python, "-I", "-S", "-B", "-c", IMPORT_ALL, str(tmp_path)],
        input='["statecfg.resources.note"]', capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("False\n", "")


FORMER = """\
from statecfg import node_type
from statecfg.resources import directory
from statecfg.resources.file import file
from statecfg.resources.symlink import check as check_link

@node_type
def network(path: str, *, target: str) -> None:
    \"\"\"A link, by a type that has the name of a package and imports modules by their names until 0.4.\"\"\"

@network.check
def check(node, nodes, world):
    assert directory and file
    return check_link(node, nodes, world)
"""


def test_a_project_may_import_node_types_from_their_former_modules(tmp_path: Path) -> None:
    (tmp_path / "statecfg.toml").write_text("")
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources/network.py").write_text(FORMER)
    play = tmp_path / "play.yml"
    play.write_text(f"hosts: '@local'\nresources:\n  - network: {tmp_path}/made\n    target: other\n")
    statecfg("apply", "play.yml", "--yes", cwd=tmp_path, STATECFG_STATE_DIR=str(tmp_path / "state"))
    assert (tmp_path / "made").readlink() == Path("other")
    play.write_text("hosts: '@local'\nresources: []\n")
    ran = statecfg("apply", "play.yml", "--yes", "--prune", cwd=tmp_path, STATECFG_STATE_DIR=str(tmp_path / "state"))
    assert "its type has no undo" in ran.out


def test_modules_of_an_orphans_type_are_sent_without_the_core() -> None:
    REGISTRY.pop("symlink", None)
    found, types = bundle.modules_of(["symlink", "no_such_type"])
    assert types == {"symlink": module_of("symlink")}
    assert module_of("symlink") in found
    assert not set(found) & set(host_modules.core())


@pytest.mark.parametrize("older", [False, True], ids=["this version", "0.4"])
def test_prune_removes_an_orphan_whose_type_the_playbook_no_longer_uses(older: bool, tmp_path: Path) -> None:
    """The ledger names the module of the type. In ledgers of 0.4, all of them are in one package."""
    (tmp_path / "statecfg.toml").touch()
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources/note.py").write_text(MODERN)
    kept = f"  - file: {tmp_path}/kept\n    content: x\n"
    orphans = f"  - symlink: {tmp_path}/link\n    target: kept\n  - note: {tmp_path}/note\n"
    play = tmp_path / "play.yml"
    play.write_text(f'hosts: "@local"\nresources:\n{kept}{orphans}')
    statecfg("apply", "play.yml", "--yes", cwd=tmp_path, STATECFG_STATE_DIR=str(tmp_path / "state"))
    assert (tmp_path / "link").is_symlink() and (tmp_path / "note").exists()
    if older:
        with closing(sqlite3.connect(tmp_path / "state/ledger.db")) as ledger, ledger:
            ledger.execute("UPDATE resource SET module = 'statecfg.resources.' || type")
    play.write_text(f'hosts: "@local"\nresources:\n{kept}')
    ran = statecfg("apply", "play.yml", "--yes", "--prune", cwd=tmp_path, STATECFG_STATE_DIR=str(tmp_path / "state"))
    assert not (tmp_path / "link").is_symlink()
    assert "its type has no undo" in ran.out
    assert (tmp_path / "kept").read_text() == "x"
