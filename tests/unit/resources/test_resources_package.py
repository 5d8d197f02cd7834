"""The package of node types: it imports them lazily, includes those of a project, and lists them for editors."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import statecfg
from script import built_in_types
from statecfg import resources
from statecfg.dialects import modules
from statecfg.remote.graph.nodetype import REGISTRY, NodeType
from statecfg.resources.index.modules import FOLDERS, module_of
from statecfg.resources.index.types import PACKAGES
from statecfg.run import bundle, host_modules
from tests.unit.graph.node_types import refused

ROOT = Path(statecfg.__file__).parents[1]
OWN = "from statecfg.remote.graph.nodetype import node_type\n\n@node_type\ndef {0}(name: str) -> None:\n    'A {0}.'\n"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "resources"
    directory.mkdir()
    before = list(resources.__path__)
    yield directory
    resources.__path__[:] = before
    for path in directory.iterdir():
        for table in (sys.modules, REGISTRY, vars(resources)):
            table.pop(path.stem, None)
            table.pop(f"statecfg.resources.{path.stem}{'_' * (path.stem in FOLDERS)}", None)


def test_every_available_name_is_a_node_type() -> None:
    for name in resources.available():
        assert isinstance(getattr(resources, name), NodeType) and getattr(resources, name).name == name


def test_public_names_come_from_their_listed_modules() -> None:
    for name in statecfg._HOMES:
        found = getattr(statecfg, name)
        assert found is getattr(sys.modules[statecfg._HOMES[name]], name)
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        _ = statecfg.nope
    assert set(statecfg.__all__) == {*statecfg._HOMES, *statecfg._RENAMED}
    assert set(statecfg._HOMES) <= set(dir(statecfg))


def test_project_can_add_its_own_node_types(project: Path) -> None:
    (project / "own_thing.py").write_text(OWN.format("own_thing"))
    (project / "_shared.py").write_text("X = 1\n")
    resources.add_directory(str(project))
    resources.add_directory(str(project))
    assert resources.__path__.count(str(project)) == 1
    assert "own_thing" in dir(resources) and "_shared" not in dir(resources)
    from statecfg.resources import own_thing

    assert own_thing("a").node.provides == "own_thing:a"


def test_project_can_add_a_node_type_in_hy(project: Path) -> None:
    text = '(require statecfg.dialects.hy [node-type])\n(node-type own-hy "A thing." :arguments [pathname])\n'
    (project / "own_hy.hy").write_text(text.replace("own-hy", "own_hy"))
    resources.add_directory(str(project))
    assert resources.own_hy("/a").node.provides == "own_hy:/a"


def test_project_may_not_reuse_the_name_of_a_shipped_type(project: Path) -> None:
    (project / "file.py").write_text(OWN.format("file"))
    with refused("SC0120") as found:
        resources.add_directory(str(project))
    assert found[0].locations[0].file == str(project / "file.py")


def test_file_must_define_a_node_type_of_its_own_name(project: Path) -> None:
    (project / "own_other.py").write_text(OWN.format("something_else"))
    resources.add_directory(str(project))
    with refused("SC0119") as found:
        _ = resources.own_other
    REGISTRY.pop("something_else")
    assert found[0].locations[0].file == str(project / "own_other.py")
    assert "defines no node type `own_other`" in found[0].detail


def test_missing_resources_directory_is_ignored(tmp_path: Path) -> None:
    before = list(resources.__path__)
    resources.add_directory(str(tmp_path / "nowhere"))
    assert list(resources.__path__) == before


def test_the_table_of_node_types_matches_the_files() -> None:
    """It has a line for each built-in node type. `script/built_in_types.py` writes it."""
    path = ROOT / "resources/index/types.py"
    assert path.read_text(encoding="utf-8") == built_in_types.table(ROOT / "resources")


def test_a_package_has_the_name_of_no_node_type_in_it() -> None:
    """Otherwise, `from statecfg.resources import NAME` would depend on what has been imported before."""
    assert not FOLDERS.intersection(PACKAGES)


def test_former_names_of_modules_still_work() -> None:
    """Projects written for 0.4 may import a built-in node type from a module of its name."""
    for name in resources.available():
        former, present = import_module(f"statecfg.resources.{name}"), import_module(module_of(name))
        public = {name: value for name, value in vars(present).items() if not name.startswith("_")}
        assert public and {**vars(former), **public} == vars(former)
        assert getattr(present, name) is getattr(resources, name)
    assert isinstance(resources.file, NodeType)


def test_a_project_can_have_a_node_type_with_the_name_of_a_package(project: Path) -> None:
    """No package of this one hides it, whether something has imported the package or not."""
    for name in sorted(FOLDERS):
        import_module(f"statecfg.resources.{name}")
        assert isinstance(getattr(resources, name), ModuleType)
        (project / f"{name}.py").write_text(OWN.format(name))
        resources.add_directory(str(project))
        assert getattr(resources, name)("a").node.provides == f"{name}:a"
        assert import_module(f"statecfg.resources.{name}").__path__
        assert host_modules.type_modules([name]) == {name: f"statecfg.resources.{name}_"}
        assert f"def {name}(" in bundle.modules_of([name])[0][f"statecfg.resources.{name}_"][2]
        for table in (REGISTRY, vars(resources)):
            del table[name]
        del sys.modules[f"statecfg.resources.{name}_"]
        assert host_modules.type_modules([name]) == {name: f"statecfg.resources.{name}_"}  # as for an orphan


def test_no_built_in_node_type_belongs_to_a_checkout_of_statecfg(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another project would unload it. The playbooks in the checkout are in such a project."""
    monkeypatch.setattr(modules, "_root", str(ROOT))
    types = [getattr(resources, name) for name in resources.available()]
    assert [found.name for found in types if modules._is_of_project(found.module)] == []


def test_resources_of_a_statecfg_checkout_are_not_added_again(tmp_path: Path) -> None:
    (tmp_path / "resources").mkdir()
    (tmp_path / "statecfg").mkdir()
    (tmp_path / "statecfg/resources").symlink_to("../resources")
    (tmp_path / "resources/file.py").write_text(OWN.format("file"))
    before = list(resources.__path__)
    resources.add_directory(str(tmp_path / "resources"))
    assert list(resources.__path__) == before
