"""The files of charms on their host: they are installed, replaced by newer ones, repaired and removed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from statecfg.remote.graph.model import Blob
from statecfg.remote.units import files as unit_files
from tests.host.units.unit_host import UnitHost, step

UNIT = "mysql/0"
LINK = 0o120000


def files(**given: str) -> dict[str, tuple[int, Blob | str]]:
    """Return the files of a charm; `__` in a name stands for `/`."""
    return {name.replace("__", "/"): (0o644, Blob.of(text)) for name, text in given.items()}


def tree(place: Path) -> dict[str, str]:
    """Return the content of a unit's charm: path → text or the target of a link."""
    base = Path(unit_files.charm_dir(str(place), UNIT))
    found = [path for path in sorted(base.rglob("*")) if path.is_symlink() or path.is_file()]
    return {
        str(path.relative_to(base)): f"-> {os.readlink(path)}" if path.is_symlink() else path.read_text()
        for path in found
    }


def test_installing_a_new_charm_replaces_the_old_files(tmp_path: Path) -> None:
    place = str(tmp_path)
    first = files(metadata="m", hooks__hooks="h", lib__a__b="1", lib__a__c="2")
    first["hooks/hooks"] = (0o750, first["hooks/hooks"][1])
    first["hooks/install"] = (LINK, "hooks")
    assert unit_files.installed(place, UNIT) == ""
    assert unit_files.lacking(place, UNIT, first) == sorted(first)
    unit_files.install(place, UNIT, "one", first)
    assert (unit_files.installed(place, UNIT), unit_files.lacking(place, UNIT, first)) == ("one", [])
    all_of_it = {"hooks/hooks": "h", "hooks/install": "-> hooks", "lib/a/b": "1", "lib/a/c": "2", "metadata": "m"}
    assert tree(tmp_path) == all_of_it
    charm = Path(unit_files.charm_dir(place, UNIT))
    assert (charm / "hooks/hooks").stat().st_mode & 0o7777 == 0o750
    (charm / "made").write_text("by a hook")
    (charm / "lib/a/made").write_text("by a hook")
    kept = (charm / "metadata").stat().st_ino
    second = files(metadata="m", hooks__hooks="new", lib__a="a file now")
    unit_files.install(place, UNIT, "two", {**second, "lib/a": (LINK, "../metadata")})
    assert tree(tmp_path) == {"hooks/hooks": "new", "lib/a": "-> ../metadata", "made": "by a hook", "metadata": "m"}
    assert (charm / "metadata").stat().st_ino == kept  # an unchanged file is not written again
    assert (charm / "hooks/hooks").stat().st_mode & 0o7777 == 0o644
    unit_files.install(place, UNIT, "three", files(lib__a__b="1"))
    assert tree(tmp_path) == {"lib/a/b": "1", "made": "by a hook"}
    assert sorted(path.name for path in charm.parent.iterdir()) == ["charm", "installed"]
    assert not (charm / "hooks").exists()


def test_installing_repairs_files_that_hooks_changed(tmp_path: Path) -> None:
    place = str(tmp_path)
    charm = files(a="1", b="2", sub__c="3", sub__d="4")
    unit_files.install(place, UNIT, "one", charm)
    base = Path(unit_files.charm_dir(place, UNIT))
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "d").write_text("not ours")
    (base / "a").write_text("changed")
    (base / "b").unlink()
    (base / "b").mkdir()
    (base / "b" / "x").write_text("x")
    (base / "sub").rename(tmp_path / "moved")
    (base / "sub").symlink_to(outside)
    assert unit_files.lacking(place, UNIT, charm) == ["a", "b", "sub/c", "sub/d"]
    unit_files.install(place, UNIT, "two", files(a="1", b="2"))
    assert (outside / "d").read_text() == "not ours"
    assert tree(tmp_path) == {"a": "1", "b": "2", "sub": f"-> {outside}"}
    unit_files.install(place, UNIT, "three", charm)
    assert tree(tmp_path) == {"a": "1", "b": "2", "sub/c": "3", "sub/d": "4"}
    assert os.listdir(outside) == ["d"]


def test_an_interrupted_install_leaves_no_valid_charm(tmp_path: Path) -> None:
    place = str(tmp_path)
    unit_files.install(place, UNIT, "one", files(a="1", old="o"))
    lacks = {"b": (0o644, Blob(Blob.of("2").sha256, 1)), **files(a="new", added="x")}
    with pytest.raises(LookupError):
        unit_files.install(place, UNIT, "two", lacks)
    assert unit_files.installed(place, UNIT) == ""
    assert tree(tmp_path) == {"a": "new", "added": "x", "old": "o"}
    unit_files.install(place, UNIT, "three", files(a="3"))
    assert (unit_files.installed(place, UNIT), tree(tmp_path)) == ("three", {"a": "3"})


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", "a//b", "./a", "a/", "x\0y", ""])
def test_a_path_outside_the_charm_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not a path in a charm"):
        unit_files.install(str(tmp_path), UNIT, "one", {name: (0o644, Blob.of("x"))})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("unit", ["mysql", "../x/0", "mysql/x", "mysql/0/1", "Mysql/0", "a.b/0", "mysql/0\n"])
def test_an_invalid_unit_name_is_refused(tmp_path: Path, unit: str) -> None:
    with pytest.raises(ValueError, match="not the name of a unit"):
        unit_files.folder(str(tmp_path), unit)


def test_a_damaged_record_or_missing_charm_counts_as_not_installed(tmp_path: Path) -> None:
    place = str(tmp_path)
    unit_files.install(place, UNIT, "one", files(a="1"))
    record = Path(unit_files.folder(place, UNIT)) / "installed"
    whole = record.read_text()
    record.write_text(whole[:10])
    assert unit_files.installed(place, UNIT) == ""
    record.write_text(whole)
    assert unit_files.installed(place, UNIT) == "one"
    Path(unit_files.charm_dir(place, UNIT)).rename(tmp_path / "elsewhere")
    assert unit_files.installed(place, UNIT) == ""


def test_remove_deletes_all_files_of_a_unit(tmp_path: Path) -> None:
    place = str(tmp_path)
    for unit in (UNIT, "mysql/1"):
        unit_files.install(place, unit, "one", files(a="1"))
    unit_files.remove(place, UNIT)
    unit_files.remove(place, UNIT)  # a second time, when nothing is left
    (tmp_path / "units" / "gone-mysql-1").mkdir()  # from an interrupted removal
    unit_files.remove(place, "mysql/1")
    assert os.listdir(tmp_path / "units") == []


def test_install_and_upgrade_hooks_put_new_charm_files_in_place(tmp_path: Path) -> None:
    said = "#!/bin/sh\necho {}\n"
    names = ("install", "start", "upgrade-charm")

    def run(text: str, *hooks: str) -> list[Any]:
        host = UnitHost(tmp_path)
        try:
            host.begin({f"hooks/{name}": (0o755, said.format(text).encode()) for name in names})
            for hook in hooks:
                assert host.run(step(hook=hook, relation=None))["ok"]
            host.send(type="unit", id=99, do="remove", unit="mysql/7")
            assert host.done(99)["ok"]
            assert host.go() == ""
            return [text.strip() for level, text in host.log() if level == 20]
        finally:
            host.close()

    assert run("one", "install", "start") == ["one", "one"]
    assert run("two", "start", "upgrade-charm", "start") == ["one", "two", "two"]
    assert run("two", "install") == ["two"]
    record = json.loads((tmp_path / "projects/shop/units/mysql-0/installed").read_text())
    assert record["names"] == sorted(f"hooks/{name}" for name in names)


def test_a_unit_requests_only_missing_content(tmp_path: Path) -> None:
    host = UnitHost(tmp_path)
    try:
        units = host.begin({"hooks/start": (0o755, b"#!/bin/sh\n"), "data": (0o644, b"1")})
        assert host.run(step(hook="start", relation=None))["ok"]
        assert host.go() == ""
        found = {
            name: [0o644, {"$blob": [Blob.of(text).sha256, len(text)]}] for name, text in (("data", "1"), ("n", "2"))
        }
        units.order["charms"]["mysql"].update(digest="another", files=found)
        assert units.files({}) == [Blob.of("2")]
        units.order["charms"]["mysql"]["digest"] = json.loads(
            (host.home / "units" / "mysql-0" / "installed").read_text()
        )["digest"]
        assert units.files({}) == []
    finally:
        host.close()


def test_an_upgrade_fails_if_a_hook_spoiled_a_charm_file(tmp_path: Path) -> None:
    host = UnitHost(tmp_path)
    try:
        spoil, content = b"#!/bin/sh\necho spoiled > data\n", Blob.of("1")
        here = {"hooks/start": (0o755, Blob.of(spoil)), "data": (0o644, content)}
        unit_files.install(str(host.home), UNIT, "before", here)
        units = host.begin({"hooks/start": (0o755, spoil)})
        units.order["charms"]["mysql"]["files"]["data"] = [0o644, {"$blob": [content.sha256, content.size]}]
        assert units.files({}) == []  # the host already has this file
        assert host.run(step(hook="start", relation=None))["ok"]
        done = host.run(step(hook="upgrade-charm", relation=None))
        assert (done["ok"], done["ran"]) == (False, False)
        assert "the charm is incomplete: content " in done["error"]
        assert host.go() == ""
    finally:
        host.close()
