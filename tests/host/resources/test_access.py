"""Access lists and former owners: nobody keeps access to a managed file, and the plan shows what is removed."""

from __future__ import annotations

import itertools
import os
import struct
from pathlib import Path
from typing import Any

import pytest

from statecfg.remote.machine import access
from statecfg.remote.machine.planned import Planned
from statecfg.remote.machine.real import RealMachine
from statecfg.resources import directory, file, line_in_file
from tests.host.remote.managed import Machine, Said

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
EVE, BOB = 4242, 4243  # ids of users and groups that no host has
USER_OBJ, USER, GROUP_OBJ, GROUP, MASK, OTHER = 1, 2, 4, 8, 0x10, 0x20


def packed(mode: int, *named: tuple[int, int, int], owning: int | None = None) -> bytes:
    """Return an access list in the kernel's format, for a mode and entries of (tag, id, permissions)."""
    entries = [(USER_OBJ, mode >> 6 & 7, -1), *((tag, allowed, number) for tag, number, allowed in named)]
    entries += [(GROUP_OBJ, mode >> 3 & 7 if owning is None else owning, -1), (MASK, mode >> 3 & 7, -1)]
    entries += [(OTHER, mode & 7, -1)]
    found = struct.pack("<I", 2)
    for tag, allowed, number in sorted(entries, key=lambda entry: (entry[0], entry[2])):
        found += struct.pack("<HHI", tag, allowed, number & 0xFFFFFFFF)
    return found


def plant(path: Path, mode: int, *named: tuple[int, int, int], owning: int | None = None, name: str = "access") -> None:
    try:
        os.setxattr(path, f"system.posix_acl_{name}", packed(mode, *named, owning=owning))
    except OSError as problem:
        pytest.skip(f"not run on this machine: its file system has no access lists ({problem.strerror})")


def lists(path: Path) -> list[str]:
    return [name for name in os.listxattr(path) if "acl" in name]


@pytest.fixture
def path(machine: Machine) -> Path:
    found = machine.folder / "host" / "f"
    found.write_text("content\n")
    return found


def changes(said: Said, part: str = "layers") -> dict[str, Any]:
    return {each["field"]: (each["before"], each["after"]) for node in said.part(part) for each in node["changes"]}


def applied(machine: Machine, *nodes: Any) -> None:
    said = machine.run(*nodes)
    assert said.end["status"] == "ok", said.part("layers", "layer")
    assert [node["outcome"] for node in machine.run(*nodes, mode="plan").part("layers")] == ["unchanged"] * len(nodes)


@needs_root
def test_an_added_access_list_is_noticed_and_removed(machine: Machine, path: Path) -> None:
    """Plan and verify notice the list although mode, owner and content are right. An apply removes it."""
    node = file(str(path), content="content\n", mode="0640")
    applied(machine, node)
    plant(path, 0o640, (USER, EVE, 6))
    assert path.stat().st_mode & 0o777 == 0o640
    for mode in ("plan", "verify"):
        said = machine.run(node, mode=mode)
        assert changes(said) == {"acl": (f"user:{EVE}:rw-", "none")}
    assert machine.run(node, mode="verify").part("layers")[0]["drift"] == ["host"]
    applied(machine, node)
    assert lists(path) == [] and path.stat().st_mode & 0o777 == 0o640


@needs_root
@pytest.mark.parametrize("content", [None, "content\n", "other\n"])
def test_an_access_list_that_grants_no_extra_rights_stays(machine: Machine, path: Path, content: str | None) -> None:
    os.chmod(path, 0o644)
    plant(path, 0o644, (USER, EVE, 0), (GROUP, BOB, 4))
    applied(machine, file(str(path), content=content, mode="0644"))
    assert lists(path) == [access.ACCESS]
    applied(machine, file(str(path), content=content and content * 2))
    assert lists(path) == [access.ACCESS]


@needs_root
@pytest.mark.parametrize("given", [{"content": "content\n"}, {"content": "other\n"}, {}], ids=str)
def test_an_owner_change_removes_the_access_list(machine: Machine, path: Path, given: dict[str, str]) -> None:
    """The former owner may have made the list, so it is removed although the node has no mode."""
    os.chown(path, EVE, EVE)
    plant(path, 0o660, (USER, BOB, 6), owning=4)
    applied(machine, file(str(path), owner="root", **given))
    info = path.stat()
    # The new group permissions are those of the owning group, not the mask.
    assert (info.st_uid, info.st_mode & 0o7777, lists(path)) == (0, 0o640, [])


@needs_root
def test_default_access_lists_are_removed_and_not_inherited(machine: Machine, path: Path) -> None:
    place = path.parent / "d"
    place.mkdir()
    os.chmod(place, 0o750)
    plant(place, 0o750, (USER, EVE, 7))
    plant(place, 0o750, (USER, EVE, 7), name="default")
    node = directory(str(place), mode="0750")
    said = machine.run(node, mode="plan")
    assert changes(said) == {"acl": (f"default:user:{EVE}:rwx, user:{EVE}:rwx", "none")}
    (place / "given").mkdir()
    new = file(str(place / "new"), content="x", mode="0640"), directory(str(place / "made"), mode="0750")
    applied(machine, *new)
    assert lists(place / "new") == lists(place / "made") == []
    applied(machine, node)
    assert lists(place) == []


# The same content, another owner


@needs_root
@pytest.mark.parametrize("given", [{"owner": "root"}, {"mode": "0600"}], ids=str)
def test_a_former_owner_cannot_write_through_an_open_file(machine: Machine, path: Path, given: dict[str, str]) -> None:
    os.chown(path, EVE, EVE)
    os.link(path, path.parent / "eve's")
    with path.open("r+") as eve:
        applied(machine, file(str(path), content="content\n", **given))
        eve.write("mine\n")
    assert path.read_text() == "content\n" and path.stat().st_nlink == 1


@needs_root
def test_an_owner_change_replaces_the_file_for_lines_trees_and_undo(machine: Machine, path: Path) -> None:
    """Each of them replaces the file of the other owner with a new file."""
    source = machine.folder / "files" / "tree"
    source.mkdir(parents=True)
    (source / "inside").write_text("content\n")
    inside = path.parent / "inside"
    inside.write_text("content\n")
    for each in (path, inside):
        os.chown(each, EVE, EVE)
    before = {each: each.stat().st_ino for each in (path, inside)}
    tree = directory(str(path.parent), source="tree", owner="0")
    applied(machine, line_in_file(str(path), line="content", owner="root"), tree)
    between = {each: each.stat().st_ino for each in (path, inside)}
    assert all(between[each] != before[each] and each.stat().st_uid == 0 for each in before)
    assert machine.run(mode="destroy", yes=True).end["status"] == "ok"
    assert {each.stat().st_uid for each in before} == {EVE}


@needs_root
def test_a_line_sets_the_group_and_undo_restores_it(machine: Machine, path: Path) -> None:
    path.write_text("old\n")
    os.chown(path, 0, EVE)
    applied(machine, line_in_file(str(path), line="new", group="root", mode="0640"))
    assert (path.stat().st_gid, path.stat().st_mode & 0o7777) == (0, 0o640) and path.read_text() == "old\nnew\n"
    assert machine.run(mode="destroy", yes=True).end["status"] == "ok"
    assert path.stat().st_gid == EVE and path.read_text() == "old\n"


@needs_root
def test_an_owner_change_clears_the_set_user_id_bits(machine: Machine, path: Path) -> None:
    """Otherwise a user could get a set-user-id program of root by creating the file first."""
    os.chown(path, EVE, EVE)
    os.chmod(path, 0o6777)
    applied(machine, file(str(path), content="other\n", owner="root"))
    assert (path.stat().st_uid, path.stat().st_mode & 0o7777) == (0, 0o777)


@needs_root
def test_a_write_fails_when_the_copied_content_changes_meanwhile(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host copies content that it already has, but only after it has checked that the content is right."""
    os.chown(path, EVE, EVE)
    blob = unsent("content\n")
    machine = RealMachine()
    holds = RealMachine._holds

    def swapped(self: RealMachine, *given: Any) -> bool:
        found = holds(self, *given)
        path.write_text("hostile\n")
        return found

    monkeypatch.setattr(RealMachine, "_holds", swapped)
    result = machine.write(str(path), blob, owner="root")
    assert "another program is changing it" in result["reason"]
    assert path.stat().st_uid == EVE and sorted(os.listdir(path.parent)) == ["f"]


def unsent(text: str) -> Any:
    """Return a blob of which the host knows only the digest."""
    from statecfg.remote.graph.model import Blob

    full = Blob.of(text)
    return Blob(full.sha256, full.size)


LISTS = [(), ((USER, EVE, 6),), ((USER, EVE, 4), (GROUP, BOB, 7)), ((USER, EVE, 0),), ((GROUP, 0, 6),)]


@needs_root
@pytest.mark.parametrize("kind", ["file", "directory"])
@pytest.mark.parametrize("what", ["write", "chmod", "chown"])
def test_the_planned_mode_owner_and_access_list_match_the_result(tmp_path: Path, kind: str, what: str) -> None:
    """Tries every list with every mode and owner, before and after the operation."""
    place = tmp_path / "x"
    modes, owners = (None, 0o600, 0o640, 0o664, 0o4755), (None, "root", str(EVE))
    for named, old, uid, mode, owner in itertools.product(LISTS, (0o644, 0o660, 0o6750), (0, EVE, BOB), modes, owners):
        place.mkdir() if kind == "directory" else place.write_text("old")
        os.chown(place, uid, 0)
        os.chmod(place, old)
        if named:
            plant(place, old, *named, owning=4)
        imagined, real = Planned(RealMachine()), RealMachine()
        for each in (imagined, real):
            if what == "chmod":
                each.chmod(str(place), mode or 0o640)
            elif what == "chown":
                each.chown(str(place), owner, "0")
            elif kind == "directory":
                each.mkdir(str(place), mode, owner)
            else:
                each.write(str(place), "new" if mode else "old", mode, owner)
        wanted, found = imagined.stat(str(place)), real.stat(str(place))
        assert wanted is not None and found is not None
        shape = ("file_type", "mode", "owner", "group")
        case = (named, oct(old), uid, mode, owner)
        assert [getattr(wanted, each) for each in shape] == [getattr(found, each) for each in shape], case
        assert access.as_text(wanted.acl) == access.as_text(found.acl), case
        place.rmdir() if kind == "directory" else place.unlink()
