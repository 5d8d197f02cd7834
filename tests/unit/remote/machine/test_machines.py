"""The same steps have the same results on all machines: real, planned and in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from statecfg.problems import former_names
from statecfg.remote.machine import accounts
from statecfg.remote.machine.memory import MemoryMachine
from statecfg.remote.machine.planned import Planned
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import Machine
from tests.each import each

ROOT = os.geteuid() == 0
Place = Callable[[str], str]


class Setting:
    """A machine and the directory in which the tests may write."""

    def __init__(self, name: str, machine: Any, top: str) -> None:
        self.name, self.machine, self.top = name, machine, top

    def at(self, path: str) -> str:
        return self.top + "/" + path if path else self.top


@pytest.fixture(params=["real", "planned", "memory", "planned over planned"])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Setting]:
    top = str(tmp_path.resolve() / "top")
    before = sorted(os.listdir(tmp_path))
    if request.param == "memory":
        yield Setting("memory", MemoryMachine({"/top": None}), "/top")
        return
    if request.param != "real":
        os.mkdir(top)
        machine: Machine = Planned(RealMachine())
        yield Setting(request.param, machine, top)
        assert sorted(os.listdir(tmp_path)) == [*before, "top"], "the plan wrote to the host"
        assert os.listdir(top) == []
        return
    os.mkdir(top)
    yield Setting("real", RealMachine(), top)
    assert not litter(top)


def litter(top: str) -> list[str]:
    """Return the names of temporary files that remain below a directory."""
    return [name for _, _, names in os.walk(top) for name in names if name.startswith(".statecfg-")]


def seen(machine: Machine, path: str) -> Any:
    """Return the visible state of a path: kind, mode, owner, group, and the content, the names or the target."""
    stat = machine.stat(path)
    if stat is None:
        return None
    mode = None if stat.file_type == "symlink" else stat.mode
    inside: Any = stat.target
    if stat.file_type == "file":
        inside = machine.read(path)
    elif stat.file_type == "directory":
        inside = machine.listdir(path)
    return stat.file_type, mode, stat.owner, stat.group, inside


def ok(result: dict[str, Any]) -> bool:
    assert result["status"] in ("ok", "error")
    assert result["status"] == "ok" or result["reason"]
    return bool(result["status"] == "ok")


def test_write_creates_a_file_with_the_default_mode(host: Setting) -> None:
    assert ok(host.machine.write(host.at("f"), "text\n"))
    kind, mode, _, _, content = seen(host.machine, host.at("f"))
    assert (kind, mode, content) == ("file", 0o644, b"text\n")
    assert host.machine.listdir(host.at("")) == ["f"]


def test_write_without_a_mode_keeps_the_mode(host: Setting) -> None:
    host.machine.write(host.at("f"), "one", mode=0o640)
    host.machine.write(host.at("f"), "two")
    assert host.machine.stat(host.at("f")).mode == 0o640
    assert host.machine.read(host.at("f")) == b"two"


def test_write_of_the_same_content_sets_the_mode(host: Setting) -> None:
    host.machine.write(host.at("f"), "one")
    assert ok(host.machine.write(host.at("f"), "one", mode=0o600))
    assert host.machine.stat(host.at("f")).mode == 0o600


def test_digest_is_the_sha256_of_the_content(host: Setting) -> None:
    host.machine.write(host.at("f"), "")
    assert host.machine.digest(host.at("f")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_backup_keeps_the_old_content_and_mode(host: Setting) -> None:
    host.machine.write(host.at("f"), "one", mode=0o600)
    assert ok(host.machine.write(host.at("f"), "two", mode=0o644, backup=".old"))
    assert seen(host.machine, host.at("f.old"))[:2] == ("file", 0o600)
    assert host.machine.read(host.at("f.old")) == b"one"
    assert ok(host.machine.write(host.at("f"), "two", backup=".old"))
    assert host.machine.read(host.at("f.old")) == b"one", "the content is the same, so the backup must not change"


def test_write_replaces_a_link_by_a_file(host: Setting) -> None:
    host.machine.write(host.at("target"), "left alone")
    host.machine.symlink(host.at("f"), "target")
    assert ok(host.machine.write(host.at("f"), "new"))
    assert host.machine.stat(host.at("f")).file_type == "file"
    assert host.machine.read(host.at("target")) == b"left alone"


def test_file_type_has_its_former_name_with_a_warning(host: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(former_names, "_warned", set())
    with pytest.warns(FutureWarning, match="Stat.kind is now Stat.file_type"):
        assert host.machine.stat(host.top).kind == "directory"


def test_reading_follows_links(host: Setting) -> None:
    host.machine.mkdir(host.at("d/e"), parents=True)
    host.machine.write(host.at("d/e/f"), "found")
    host.machine.symlink(host.at("one"), "d/e")
    host.machine.symlink(host.at("d/two"), "../one/f")
    assert host.machine.read(host.at("d/two")) == b"found"
    assert host.machine.read(host.at("one/f")) == b"found"
    assert host.machine.listdir(host.at("one")) == ["f"]
    assert host.machine.stat(host.at("one")).target == "d/e"


def test_write_follows_links_to_directories(host: Setting) -> None:
    host.machine.mkdir(host.at("real"))
    host.machine.symlink(host.at("link"), host.at("real"))
    assert ok(host.machine.write(host.at("link/f"), "x"))
    assert host.machine.listdir(host.at("real")) == ["f"]
    host.machine.remove(host.at("link"))
    assert host.machine.stat(host.at("link/f")) is None
    assert host.machine.stat(host.at("real/f")) is not None


def test_circular_links_can_be_neither_read_nor_written(host: Setting) -> None:
    host.machine.symlink(host.at("a"), "b")
    host.machine.symlink(host.at("b"), "a")
    with pytest.raises(OSError):
        host.machine.read(host.at("a"))
    result = host.machine.write(host.at("a/f"), "x")
    assert result["reason"] == f"cannot write {host.at('a/f')}: Too many levels of symbolic links"


def test_mkdir_creates_missing_parent_directories(host: Setting) -> None:
    assert ok(host.machine.mkdir(host.at("a/b/c"), mode=0o700, parents=True))
    assert [host.machine.stat(host.at(path)).mode for path in ("a", "a/b", "a/b/c")] == [0o755, 0o755, 0o700]
    assert ok(host.machine.mkdir(host.at("a/b/c"))), "an existing directory is not an error"
    assert host.machine.stat(host.at("a/b/c")).mode == 0o700


def test_recursive_remove_deletes_a_tree_but_not_link_targets(host: Setting) -> None:
    host.machine.mkdir(host.at("a/b"), parents=True)
    host.machine.write(host.at("a/b/f"), "x")
    host.machine.symlink(host.at("a/out"), host.at("kept"))
    host.machine.mkdir(host.at("kept"))
    host.machine.write(host.at("kept/f"), "x")
    assert not ok(host.machine.remove(host.at("a")))
    assert ok(host.machine.remove(host.at("a"), recursive=True))
    assert host.machine.stat(host.at("a")) is None
    assert host.machine.listdir(host.at("")) == ["kept"]
    assert host.machine.listdir(host.at("kept")) == ["f"]


def test_directory_is_empty_after_removal_and_creation(host: Setting) -> None:
    host.machine.mkdir(host.at("a"))
    host.machine.write(host.at("a/f"), "x")
    host.machine.remove(host.at("a"), recursive=True)
    host.machine.mkdir(host.at("a"))
    assert host.machine.listdir(host.at("a")) == []
    assert host.machine.stat(host.at("a/f")) is None


@each("path", ["gone", "gone/further", "file/below"])
def test_remove_succeeds_if_nothing_is_there(host: Setting, path: str) -> None:
    host.machine.write(host.at("file"), "x")
    assert ok(host.machine.remove(host.at(path)))


FAULTS = {
    "file without a parent directory": (
        lambda m, at: m.write(at("no/such/f"), "x"),
        "cannot write {no/such/f}: No such file or directory ({no})",
    ),
    "directory without a parent directory": (
        lambda m, at: m.mkdir(at("no/d")),
        "cannot make directory {no/d}: No such file or directory ({no})",
    ),
    "link without a parent directory": (
        lambda m, at: m.symlink(at("no/l"), "x"),
        "cannot link {no/l}: No such file or directory ({no})",
    ),
    "file below a file": (lambda m, at: m.write(at("file/f"), "x"), "cannot write {file/f}: Not a directory ({file})"),
    "directories below a file": (
        lambda m, at: m.mkdir(at("file/a/b"), parents=True),
        "cannot make directory {file/a}: Not a directory ({file})",
    ),
    "file at the path of a directory": (
        lambda m, at: m.write(at("dir"), "x"),
        "cannot write {dir}: a directory is in the way",
    ),
    "link at the path of a directory": (
        lambda m, at: m.symlink(at("dir"), "x"),
        "cannot link {dir}: a directory is in the way",
    ),
    "directory at the path of a file": (
        lambda m, at: m.mkdir(at("file")),
        "cannot make directory {file}: a file is in the way",
    ),
    "directory at the path of a link": (
        lambda m, at: m.mkdir(at("link")),
        "cannot make directory {link}: a symlink is in the way",
    ),
    "file of an unknown user": (
        lambda m, at: m.write(at("f"), "x", owner="nobody-we-know"),
        "cannot write {f}: no user nobody-we-know on this host",
    ),
    "directory of an unknown group": (
        lambda m, at: m.mkdir(at("d"), group="nobody-we-know"),
        "cannot make directory {d}: no group nobody-we-know on this host",
    ),
    "parent directories of an unknown user": (
        lambda m, at: m.mkdir(at("p/d"), owner="nobody-we-know", parents=True),
        "cannot make directory {p/d}: no user nobody-we-know on this host",
    ),
    "link of an unknown user": (
        lambda m, at: m.symlink(at("l"), "x", owner="nobody-we-know"),
        "cannot link {l}: no user nobody-we-know on this host",
    ),
    "unknown user as owner of an existing file": (
        lambda m, at: m.chown(at("file"), "nobody-we-know"),
        "cannot set the owner of {file}: no user nobody-we-know on this host",
    ),
    "mode of a missing file": (
        lambda m, at: m.chmod(at("no"), 0o600),
        "cannot set the mode of {no}: No such file or directory",
    ),
    "mode of a link": (lambda m, at: m.chmod(at("link"), 0o600), "cannot set the mode of {link}: it is a link"),
    "owner of a missing file": (
        lambda m, at: m.chown(at("no"), "root"),
        "cannot set the owner of {no}: No such file or directory",
    ),
    "removal of a directory that is not empty": (
        lambda m, at: m.remove(at("dir")),
        "cannot remove {dir}: Directory not empty",
    ),
    "removal of the root directory": (
        lambda m, at: m.remove("/", recursive=True),
        "cannot remove /: it contains the whole system",
    ),
    "backup at the path of a directory": (
        lambda m, at: m.write(at("file"), "new", backup=".d"),
        "cannot write {file}: Is a directory",
    ),
}


@each("fault", FAULTS)
def test_impossible_operations_fail_and_change_nothing(host: Setting, fault: str) -> None:
    """All machines give the same message, and nothing changes."""
    machine = host.machine
    machine.write(host.at("file"), "x")
    machine.mkdir(host.at("dir"))
    machine.mkdir(host.at("file.d"))
    machine.write(host.at("dir/f"), "x")
    machine.symlink(host.at("link"), "file")
    before = {path: seen(machine, host.at(path)) for path in ("", "file", "dir", "dir/f", "link")}
    act, message = FAULTS[fault]
    result = act(machine, host.at)
    expected = message
    for path in sorted({part.split("}")[0] for part in message.split("{")[1:]}, key=len, reverse=True):
        expected = expected.replace("{" + path + "}", host.at(path))
    assert result["status"] == "error"
    assert result["reason"].startswith(expected)
    assert {path: seen(machine, host.at(path)) for path in before} == before


@each("path", ["no", "dir", "no/f", "link-to-nothing"])
def test_read_and_digest_raise_for_paths_without_a_file(host: Setting, path: str) -> None:
    host.machine.mkdir(host.at("dir"))
    host.machine.symlink(host.at("link-to-nothing"), "nothing")
    for look in (host.machine.read, host.machine.digest):
        with pytest.raises(OSError):
            look(host.at(path))


@each("path", ["no", "file", "file/x"])
def test_listdir_raises_for_paths_without_a_directory(host: Setting, path: str) -> None:
    host.machine.write(host.at("file"), "x")
    with pytest.raises((FileNotFoundError, NotADirectoryError)):
        host.machine.listdir(host.at(path))


def test_stat_returns_none_for_paths_below_a_file(host: Setting) -> None:
    host.machine.write(host.at("file"), "x")
    assert host.machine.stat(host.at("file/x")) is None
    assert host.machine.apparent(host.at("file/x/y")) is None


def test_machine_accepts_paths_with_dots_and_double_slashes(host: Setting) -> None:
    host.machine.mkdir(host.at("d"))
    assert ok(host.machine.write(host.at("d//./f"), "x"))
    assert host.machine.stat(host.at("d/../d/f/")).file_type == "file"


@pytest.mark.skipif(not ROOT, reason="only root may give files away")
def test_plan_predicts_owners_groups_and_modes(tmp_path: Path) -> None:
    """Owners and groups may be names or numbers. The kernel clears set-user-id bits, and the plan predicts that."""
    shown = []
    for machine in (Planned(RealMachine()), RealMachine()):
        top = str(tmp_path.resolve())
        results = [
            machine.write(top + "/f", "x", 0o4755, "daemon", "1"),
            machine.chown(top + "/f", "0"),
            machine.write(top + "/g", "x", 0o2745),
            machine.chown(top + "/g", None, "daemon"),
            machine.symlink(top + "/l", "x", "daemon"),
            machine.mkdir(top + "/d", 0o2775, "daemon", "daemon"),
            machine.write(top + "/d/inherits", "x"),
            machine.mkdir(top + "/d/below"),
            machine.write(top + "/n", "x", owner="54321"),
        ]
        assert all(result == {"status": "ok"} for result in results)
        shown.append([seen(machine, top + path) for path in ("/f", "/g", "/l", "/d", "/d/inherits", "/d/below", "/n")])
    assert shown[0] == shown[1]
    assert shown[1][0][:4] == ("file", 0o755, "root", "daemon")


def test_files_of_the_memory_machine_belong_to_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "own_names", lambda: ("ann", "staff"))
    memory = MemoryMachine({"/etc/motd": "Hello."})
    stat = memory.stat("/etc/motd")
    assert stat is not None and (stat.owner, stat.group) == ("root", "root")
