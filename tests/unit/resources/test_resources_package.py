"""The package of node types: it imports them lazily, includes those of a project, and lists them for editors."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import statecfg
from statecfg import resources
from statecfg.remote.graph.nodetype import REGISTRY, NodeType
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
            table.pop(f"statecfg.resources.{path.stem}", None)


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


def test_type_checking_block_lists_every_node_type() -> None:
    """The list under TYPE_CHECKING has one line for each built-in node type."""
    tree = ast.parse((ROOT / "resources" / "__init__.py").read_text())
    told = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("statecfg.resources."):
            names = [item.name for item in node.names]
            assert names == [item.asname for item in node.names]
            # The types in Hy are in one stub, all others in modules of their own.
            assert node.module == "statecfg.resources._hy" or names == [node.module.split(".")[-1]]
            told.update(names)
    assert told == set(resources.available_in(str(ROOT / "resources")))


def test_resources_of_a_statecfg_checkout_are_not_added_again(tmp_path: Path) -> None:
    (tmp_path / "resources").mkdir()
    (tmp_path / "statecfg").mkdir()
    (tmp_path / "statecfg/resources").symlink_to("../resources")
    (tmp_path / "resources/file.py").write_text(OWN.format("file"))
    before = list(resources.__path__)
    resources.add_directory(str(tmp_path / "resources"))
    assert list(resources.__path__) == before
