"""Charms on the controller: their contents, and the reasons to refuse a charm."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from statecfg.playbook import trust
from statecfg.problems import InvalidInput, Problem, collecting
from statecfg.run import charms
from statecfg.run.charms import LINK, Charm


def write(path: Path, text: str = "#!/bin/sh\n", mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.chmod(0o755)
    made = tmp_path / "db"
    write(made / "hooks/install")
    return made


def read(folder: Path) -> Charm:
    with collecting() as found:
        charm = charms.read(folder)
    assert found == []
    assert charm is not None
    return charm


def refused(folder: Path) -> list[Problem]:
    with collecting() as found:
        charms.read(folder)
    return found


def codes(folder: Path) -> list[str]:
    return [item.code for item in refused(folder)]


def test_read_returns_hooks_endpoints_options_and_files(folder):
    write(folder / "metadata.yaml", "name: mydb\nprovides: {db: {interface: sql}}\npeers: {cluster: gossip}\n", 0o644)
    write(folder / "config.yaml", "options:\n  port: {type: int, default: 1, description: It listens there}\n", 0o644)
    write(folder / "hooks/db-relation-joined")
    write(folder / "lib/common.sh", "x=1\n", 0o600)
    write(folder / ".git/config")
    charm = read(folder)
    assert (charm.name, charm.hooks, charm.described) == ("mydb", ("db-relation-joined", "install"), True)
    assert charm.endpoints == {"db": ("provides", "sql"), "cluster": ("peers", "gossip")}
    assert charm.options["port"].as_json() == {"type": "int", "default": 1, "description": "It listens there"}
    assert {name: mode for name, (mode, _) in charm.files.items()} == {
        "metadata.yaml": 0o644,
        "config.yaml": 0o644,
        "hooks/install": 0o755,
        "hooks/db-relation-joined": 0o755,
        "lib/common.sh": 0o644,
    }
    assert charm.files["lib/common.sh"][1] == folder / "lib/common.sh"


def test_directory_of_programs_counts_as_a_charm(tmp_path):
    folder = tmp_path / "plain"
    write(folder / "start")
    write(folder / "lib/common.sh")
    write(folder / "config.yaml", "options: {title: {type: string}}\n", 0o644)
    charm = read(folder)
    assert (charm.name, charm.hooks, charm.described) == ("plain", ("start",), False)
    assert sorted(charm.files) == ["config.yaml", "hooks/lib/common.sh", "hooks/start"]
    assert list(charm.options) == ["title"]


def test_link_inside_a_charm_stays_a_link(folder):
    (folder / "hooks/start").symlink_to("install")
    charm = read(folder)
    assert charm.files["hooks/start"] == (LINK, "install")
    assert charm.hooks == ("install", "start")


@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside", "nowhere"])
def test_charm_refuses_links_to_outside_or_missing_files(folder, target):
    write(folder.parent / "outside")
    (folder / "hooks/start").symlink_to(target)
    (found,) = refused(folder)
    assert (found.code, found.locations[0].file) == ("SC0703", str(folder / "hooks/start"))
    assert target in found.detail


def test_charm_digest_covers_names_executable_bits_and_contents(folder):
    def change(what):
        before = read(folder).digest
        what()
        return read(folder).digest != before

    script = folder / "hooks/install"
    assert not change(lambda: os.utime(script, (1, 1)))
    assert not change(lambda: script.chmod(0o700))
    assert change(lambda: write(folder / "README", "read me", 0o644))
    assert not change(lambda: (folder / "README").chmod(0o600))
    assert change(lambda: (folder / "README").chmod(0o755))
    assert change(lambda: (folder / "README").rename(folder / "readme"))
    assert change(lambda: script.write_text("#!/bin/sh\n\n"))
    assert change(lambda: (folder / "link").symlink_to("readme"))


def test_copies_of_a_charm_have_the_same_digest(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy/db")
    assert read(folder).digest == read(tmp_path / "copy/db").digest


def test_read_refuses_paths_that_are_not_charms(tmp_path):
    assert codes(tmp_path / "missing") == ["SC0703"]
    assert codes(write(tmp_path / "file")) == ["SC0703"]
    write(tmp_path / "other/notes.txt")
    (found,) = refused(tmp_path / "other")
    assert found.code == "SC0703" and "contains no hook" in found.detail and "install" in found.help


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("instal", "install"),
        ("config-chagned", "config-changed"),
        ("stat", "start"),
        ("db-relation-chnaged", "db-relation-changed"),
        ("db-relaton-joined", "db-relation-joined"),
        ("db-relation-join", "db-relation-joined"),
        ("bd-relation-joined", None),  # without metadata.yaml, the name may be correct
        ("restart", None),
        ("common", None),
        ("hooks.py", None),
        ("install.real", None),
        ("update-status", None),
        ("leader-elected", None),
        ("db-relation-created", None),
    ],
)
def test_misspelled_hook_names_are_refused_with_a_suggestion(folder, name, meant):
    write(folder / "hooks" / name)
    found = refused(folder)
    assert [item.code for item in found] == (["SC0706"] if meant else [])
    assert all(item.help == f"did you mean `{meant}`?" for item in found)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        *[("bd-relation-joined", "db"), ("juju-info-relation-joined", None), ("x-relation-joined", None)],
        *[("mointors-relation-joined", "monitors"), ("mymonitors-relation-joined", None)],
    ],
)
def test_misspelled_relation_names_are_refused_with_a_suggestion(folder, name, meant):
    write(folder / "metadata.yaml", "name: db\nprovides: {db: {interface: sql}, monitors: {interface: any}}\n", 0o644)
    write(folder / "hooks" / name)
    assert [item.help for item in refused(folder)] == ([f"did you mean `{meant}-relation-joined`?"] if meant else [])


def test_charm_refuses_a_hook_that_is_not_executable(folder):
    path = write(folder / "hooks/start", mode=0o644)
    (found,) = refused(folder)
    assert (found.code, found.help) == ("SC0705", f"chmod a+x {path}")


def test_charm_may_have_one_dispatch_program_for_all_hooks(folder):
    shutil.rmtree(folder / "hooks")
    write(folder / "src/charm.py")
    write(folder / "dispatch")
    assert (sorted(read(folder).files), read(folder).hooks) == (["dispatch", "src/charm.py"], ())
    (folder / "dispatch").chmod(0o644)
    assert codes(folder) == ["SC0705"]


@pytest.mark.parametrize("source", charms.SOURCES)
def test_charm_source_without_hooks_is_refused(folder, source):
    shutil.rmtree(folder / "hooks")
    write(folder / source)
    write(folder / "metadata.yaml", "name: db\n", 0o644)
    (found,) = refused(folder)
    assert (found.code, found.help) == ("SC0703", "build the charm, and name the resulting directory")
    assert f"has {source} but no hook" in found.detail


def test_charm_refuses_a_hook_link_to_a_non_executable_file(folder):
    write(folder / "hooks/hooks.py", mode=0o644)
    (folder / "hooks/start").symlink_to("hooks.py")
    assert codes(folder) == ["SC0705"]


@pytest.mark.parametrize("what", ["", "hooks", "hooks/install", "metadata.yaml"])
def test_charm_refuses_files_writable_by_others(folder, what):
    write(folder / "metadata.yaml", "name: db\n", 0o644)
    path = folder / what
    path.chmod(path.stat().st_mode | 0o002)
    (found,) = refused(folder)
    assert (found.code, found.locations[0].file) == ("SC0601", str(path))
    assert "has mode 07" in found.detail or "has mode 06" in found.detail


def test_the_owners_private_group_may_write_a_charm(folder, monkeypatch):
    for path in (folder.parent, folder, folder / "hooks", folder / "hooks/install"):
        path.chmod(0o775)
    monkeypatch.setattr(trust, "private", lambda user, group: user == os.geteuid())
    assert read(folder).hooks == ("install",)
    monkeypatch.setattr(trust, "private", lambda user, group: False)
    (found,) = refused(folder)
    assert found.code == "SC0601" and "and 2 more" in found.detail  # the content of hooks/ is not read


def test_charm_refuses_a_parent_directory_writable_by_others(folder):
    folder.parent.chmod(0o777)
    assert codes(folder) == ["SC0601"]


def test_many_files_writable_by_others_are_one_problem(folder):
    for name in "abc":
        write(folder / name, mode=0o666)
    (found,) = refused(folder)
    assert (found.code, found.help) == ("SC0601", f"check them, then: chmod -R go-w {folder}")
    assert "and 2 more" in found.detail


def test_content_refuses_a_file_that_changed_after_reading(folder):
    charm = read(folder)
    assert charm.content("hooks/install") == b"#!/bin/sh\n"
    write(folder / "hooks/install", "#!/bin/sh\nexit 1\n")
    with pytest.raises(InvalidInput, match="has changed during the run"):
        charm.content("hooks/install")
    (folder / "hooks/install").unlink()
    with pytest.raises(InvalidInput, match="No such file"):
        charm.content("hooks/install")


def test_read_refuses_a_charm_that_is_too_large(folder):
    with (folder / "big").open("wb") as stream:
        stream.truncate(charms.MAX_BYTES)
    (found,) = refused(folder)
    assert found.code == "SC0704" and f"{charms.MAX_BYTES + len('#!/bin/sh' + chr(10)):,}" in found.detail


def test_read_refuses_a_charm_with_too_many_files(folder, monkeypatch):
    monkeypatch.setattr(charms, "MAX_FILES", 3)
    for name in "abc":
        write(folder / name)
    assert codes(folder) == ["SC0704"]


def test_read_refuses_line_breaks_and_invalid_utf8_in_file_names(folder):
    write(folder / "a\nb")
    write(Path(os.fsdecode(bytes(folder) + b"/\xff")))
    found = refused(folder)
    assert [item.code for item in found] == ["SC0703", "SC0703"]
    assert all(item.detail.isprintable() for item in found)


def test_read_refuses_a_named_pipe_among_the_hooks(folder):
    os.mkfifo(folder / "hooks/queue", 0o600)
    assert codes(folder) == ["SC0703"]


@pytest.mark.parametrize(
    ("file", "text", "code", "line"),
    [
        ("metadata.yaml", "- a\n", "SC0703", 1),
        ("metadata.yaml", "name: db\nprovides: [db]\n", "SC0703", 2),
        ("metadata.yaml", "name: db\nprovides:\n  db: {}\n", "SC0703", 3),
        ("metadata.yaml", "name: db\nrequires:\n  Db: {interface: sql}\n", "SC0703", 3),
        ("metadata.yaml", "provides: {db: {interface: sql}}\nrequires:\n  db: {interface: sql}\n", "SC0703", 3),
        ("metadata.yaml", "name: [\n", "SC0315", 2),
        ("config.yaml", "options: 3\n", "SC0707", 1),
        ("config.yaml", "options:\n  port: 3\n", "SC0707", 2),
        ("config.yaml", "options:\n  port: {type: integer}\n", "SC0707", 2),
        ("config.yaml", "options:\n  a: {type: int}\n  port: {type: int, default: x}\n", "SC0707", 3),
        ("config.yaml", "options:\n  port: {type: secret, default: x}\n", "SC0710", 2),
    ],
)
def test_invalid_metadata_or_config_is_refused_with_its_line(folder, file, text, code, line):
    path = write(folder / file, text, 0o644)
    (found,) = refused(folder)
    assert (found.code, found.locations[0][:2]) == (code, (str(path), line))


def test_read_refuses_a_link_to_itself(folder):
    (folder / "loop").symlink_to("loop")
    assert codes(folder) == ["SC0703"]


def test_read_raises_a_problem_outside_collecting(folder):
    write(folder / "hooks/start", mode=0o644)
    with pytest.raises(InvalidInput):
        charms.read(folder)
