"""Types of exec hooks: where statecfg finds them, their configuration, and which ones it refuses as unsafe."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from statecfg.hooks.exec import types as exec_types
from statecfg.hooks.exec.types import SHIPPED, HookTypes
from statecfg.playbook.project import HookSettings, Project, Settings
from statecfg.problems import InvalidInput, Problem
from tests.each import each


def made(parent: Path, name: str, schema: str | None = None, *events: str) -> Path:
    folder = parent / f"{name}.hook"
    folder.mkdir(parents=True)
    if schema is not None:
        (folder / "configuration.yaml").write_text(schema)
    for event in events:
        (folder / event).write_text("#!/bin/sh\n")
        (folder / event).chmod(0o755)
    return folder


def wrong(types: HookTypes, name: str) -> list[Problem]:
    with pytest.raises(InvalidInput) as caught:
        types.find(name)
    return caught.value.problems


def test_first_directory_on_the_hook_path_wins(tmp_path: Path) -> None:
    made(tmp_path / "one", "both", "here: {}", "node-booted")
    made(tmp_path / "two", "both", "there: {}")
    made(tmp_path / "two", "other")
    (tmp_path / "one" / "other.hook").write_text("a plain file is not a hook type")
    types = HookTypes((tmp_path / "missing", tmp_path / "one", tmp_path / "two"))
    assert types.names() == ["both", "other"]
    assert types.find("both").schema == {"here": {}}
    assert types.find("both").events() == ["node-booted"]
    assert types.find("other").folder == tmp_path / "two" / "other.hook"


def test_hook_path_follows_symbolic_links(tmp_path: Path) -> None:
    real = made(tmp_path / "elsewhere", "real", "a: {}", "node-booted")
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "linked.hook").symlink_to(real)
    types = HookTypes((tmp_path / "hooks",))
    assert types.names() == ["linked"]
    assert types.find("linked").schema == {"a": {}}


def test_unknown_hook_type_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    made(tmp_path, "counter")
    types = HookTypes((tmp_path,))
    (found,) = wrong(types, "conter")
    assert found.code == "SC0620"
    assert found.detail == "hook_type must be the name of an existing hook type, but is 'conter'"
    assert found.help == "did you mean `counter`?"
    made(tmp_path / "outside", "secret")
    assert wrong(types, "outside/secret")[0].code == "SC0620"


def test_find_falls_back_to_the_former_folder_of_a_type(tmp_path: Path) -> None:
    old, new = made(tmp_path / "old", "a", "old: {}"), made(tmp_path / "new", "a", "new: {}")
    assert HookTypes(()).find("a", old).folder == old
    assert HookTypes((tmp_path / "new",)).find("a", old).folder == new
    with pytest.raises(InvalidInput):
        HookTypes(()).find("a", tmp_path / "gone")


@each("schema", [None, "", "---\n", "# nothing\n", "~\n"])
def test_missing_or_empty_configuration_gives_an_empty_schema(tmp_path: Path, schema: str | None) -> None:
    made(tmp_path, "bare", schema)
    assert HookTypes((tmp_path,)).find("bare").schema == {}


def test_configuration_is_read_as_yaml_1_1(tmp_path: Path) -> None:
    text = (
        "flag: {default: no}\nmode: {default: 0755}\nday: {default: 2014-05-21}\n7: {default: x}\nempty:\ntwice: {}\n"
    )
    made(tmp_path, "old", text + "twice: {default: 1}\n")
    assert HookTypes((tmp_path,)).find("old").schema == {
        "flag": {"default": False},
        "mode": {"default": 0o755},
        "day": {"default": "2014-05-21"},
        "7": {"default": "x"},
        "empty": {},
        "twice": {"default": 1},
    }


@each(
    ("text", "code", "line"),
    [
        ('foo:\n  default: 0\nbar:\n  description "what bar is for"\n  default: "B"\n', "SC0315", 5),
        ("a: [1,\n", "SC0315", 2),
        ("- a\n- b\n", "SC0621", 1),
        ("text", "SC0621", 1),
        ("a: 5\n", "SC0621", 1),
        ("a: &x {default: [*x]}\n", "SC0621", 1),
        ("a: {default: 2014-99-99}\n", "SC0315", 1),
        ("a: !!python/object/apply:os.system [id]\n", "SC0315", 1),
        ("a: {}\n\0", "SC0313", 2),
    ],
)
def test_invalid_configuration_is_refused_with_file_and_line(tmp_path: Path, text: str, code: str, line: int) -> None:
    folder = made(tmp_path, "bad", text)
    (found,) = wrong(HookTypes((tmp_path,)), "bad")
    assert (found.code, found.locations[0].file) == (code, str(folder / "configuration.yaml"))
    assert found.locations[0].line == line


def test_unknown_configuration_key_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    made(tmp_path, "counter", "count: {default: 0}\nneeded: {required: true}")
    with pytest.raises(InvalidInput) as caught:
        HookTypes((tmp_path,)).find("counter").configured({"cuont": 1})
    (found,) = caught.value.problems
    assert found.detail == (
        "configuration key 'cuont' is not defined for this hook type, "
        "configuration key 'needed' is required by this hook type, but was not supplied"
    )
    assert "did you mean `count`?" in found.help


@each("what", ["", "node-booted", "configuration.yaml", "..", "beside"])
@each("mode", [0o022, 0o002])
def test_hook_type_writable_by_others_is_refused(tmp_path: Path, what: str, mode: int) -> None:
    folder = made(tmp_path / "hooks", "counter", "a: {}", "node-booted", "beside")
    path = Path(os.path.abspath(folder / what))
    path.chmod(path.stat().st_mode | mode)
    (found,) = wrong(HookTypes((tmp_path / "hooks",)), "counter")
    assert found.code == "SC0601"
    assert found.detail == f"{path} has mode {path.stat().st_mode & 0o7777:04o} and belongs to user {os.geteuid()}"
    assert found.help == f"check it, then: chmod go-w {path}"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_only_the_owners_private_group_may_write_a_hook_type(tmp_path: Path) -> None:
    """With umask 002, the group may write files. That is safe for the group root, but not for the group daemon."""
    folder = made(tmp_path, "counter", "a: {}", "node-booted")
    for path in (folder, folder / "node-booted", folder / "configuration.yaml"):
        path.chmod(path.stat().st_mode | 0o020)
    assert HookTypes((tmp_path,)).find("counter").events() == ["node-booted"]
    for path in (folder / "node-booted", folder / "configuration.yaml"):
        os.chown(path, -1, 1)
    (found,) = wrong(HookTypes((tmp_path,)), "counter")
    assert found.help == f"check them, then: chmod -R go-w {folder}" and "and 1 more" in found.detail


def test_hook_type_ignores_other_files_and_reports_doubtful_programs(tmp_path: Path) -> None:
    folder = made(tmp_path, "counter", "a: {}", "node-booted", "node-bound-to-policy", "README.md", "node-deletd")
    (folder / "node-booted").chmod(0o644)
    (folder / "node-bound-to-policy").write_text("#!/usr/bin/pyhton\n")
    kind = HookTypes((tmp_path,)).find("counter")
    assert kind.events() == ["node-booted", "node-bound-to-policy"]
    first, second, third = kind.doubtful()
    assert "node-booted is not executable" in first and "(its interpreter /usr/bin/pyhton is missing)" in second
    assert "did you mean `node-deleted`?" in third


@each(
    ("content", "why"),
    [
        ("", "it is empty"),
        ("#!/usr/bin/env pyhton3\n", "env finds no program `pyhton3` in PATH"),
        ("#!/usr/bin/env sh -e\n", "env finds no program `sh -e` in PATH"),
        ("#!/usr/bin/env sh\r\n", "its lines end in CR LF"),
        ("#!/etc/passwd\n", "its interpreter /etc/passwd is not executable"),
        ("#!/usr/bin/env sh\n", ""),
        ("#!/usr/bin/env -S sh -e\n", ""),
        ("#!/usr/bin/env ours\n", ""),
        ("echo hi\n", ""),
    ],
)
def test_doubtful_reports_programs_that_would_fail_to_start(tmp_path: Path, content: str, why: str) -> None:
    folder = made(tmp_path, "counter", None, "node-booted")
    (folder / "node-booted").write_text(content)
    (folder / "node-deleted").symlink_to("nowhere")
    (tmp_path / "ours").write_text("#!/bin/sh\n")
    (tmp_path / "ours").chmod(0o755)
    *found, last = HookTypes((tmp_path,)).find("counter").doubtful([str(tmp_path)])
    assert "node-deleted is not a file" in last
    assert (len(found), why in "".join(found)) == (bool(why), True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_hook_type_owned_by_another_user_is_refused(tmp_path: Path) -> None:
    folder = made(tmp_path, "counter", None, "node-booted")
    os.chown(folder / "node-booted", 12345, -1)
    (found,) = wrong(HookTypes((tmp_path,)), "counter")
    assert (found.code, "belongs to user 12345" in found.detail) == ("SC0601", True)


def test_hook_path_comes_from_the_project_settings(tmp_path: Path) -> None:
    assert exec_types.of_project(Project(tmp_path)).path == (tmp_path / "hooks", SHIPPED)
    settings = Settings(hooks=HookSettings(hook_path="mine:/opt/theirs::~/x", hook_execution_path="bin:/opt/bin"))
    project = Project(tmp_path, settings)
    assert exec_types.of_project(project).path == (tmp_path / "mine", Path("/opt/theirs"), Path.home() / "x")
    assert exec_types.execution_path(project) == (str(tmp_path / "bin"), "/opt/bin")


def test_shipped_hook_types_have_executable_handlers() -> None:
    types = HookTypes((SHIPPED,))
    assert types.names() == ["counter"]
    for name in types.names():
        kind = types.find(name)
        assert kind.events()
        assert all(os.access(kind.handler(event), os.X_OK) for event in kind.events())
