"""Undo of node types on this machine's files: it restores the state from before the node."""

from __future__ import annotations

import grp
import itertools
import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from statecfg import resources
from statecfg.graph import contradictions
from statecfg.graph.graph import Graph
from statecfg.remote.graph.model import HostNode
from statecfg.remote.machine.changes import HIDDEN
from statecfg.remote.machine.real import RealMachine
from tests.each import check_each
from tests.host.command import statecfg
from tests.host.resources.test_cases import placed
from tests.host.resources.undo import Ledger, different, snapshot
from tests.unit.resources import test_cases as case_files
from tests.unit.resources.test_cases import Case, arrange, by_place, cases_of, declared, layers, project

FILES = ("file", "directory", "symlink", "line_in_file", "block_in_file", "replace")
FILES += ("ini_key", "json_key", "toml_key", "yaml_key", "archive", "remove", "hard_link")
FILES += ("acl", "xattr", "capabilities", "release_binary")


def on_files(case: Case) -> bool:
    """Tell whether a case is only about files of this machine and changes them."""
    data = case.data
    nodes = [data["node"], *data.get("with", ())]
    if {"bad", "facets", "probes", "error", "known_after"} & set(data) or not case.meant_for("real"):
        return False
    return bool(data.get("ops")) and all(next(iter(node)) in FILES for node in nodes)


@pytest.mark.parametrize("file", [file for file in case_files.FILES if any(map(on_files, cases_of(file)))])
def test_undo_restores_the_files_of_every_case(file: str, tmp_path: Path) -> None:
    """Undo reverts every change of a case to the byte, as planned, and then nothing is left to do."""
    directories = (tmp_path / str(number) for number in itertools.count())
    check_each(by_place(filter(on_files, cases_of(file))), lambda case: undone(case, next(directories)))


def undone(case: dict[str, Any], directory: Path) -> None:
    root = directory / "host"
    root.mkdir(parents=True)
    case = placed(case, str(root))
    base = project(case, directory / "project")
    arrange(RealMachine(), case, base)
    before = snapshot(root)
    ledger = Ledger(directory / "ledger")
    nodes = layers([declared(node) for node in [case["node"], *case.get("with", [])]], base)
    report = ledger.apply(nodes)
    assert {node["outcome"] for node in report} <= {"changed", "unchanged"}, report
    assert different(before, snapshot(root))
    for layer in reversed(nodes):
        assert ledger.undo(*[node.provides for node in layer]) == []
    assert different(before, snapshot(root)) == {}


class Site:
    """A directory for the test, with methods that apply nodes to it and undo them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root = folder, folder / "host"
        self.root.mkdir()
        (folder / "project" / "files").mkdir(parents=True)
        self.ledger = Ledger(folder / "ledger")
        self.layers: list[list[HostNode]] = []

    def __truediv__(self, name: str) -> Path:
        return self.root / name

    def source(self, name: str, content: str | None) -> None:
        """Write or remove a local file of the project."""
        path = self.folder / "project" / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.unlink()
        else:
            path.write_text(content)

    def apply(self, *graphs: Graph) -> None:
        """Apply a definition, and check that no node fails."""
        self.layers = layers(graphs, self.folder / "project")
        report = self.ledger.apply(self.layers)
        bad = [(node["name"], node["reason"]) for node in report if node["outcome"] not in ("changed", "unchanged")]
        assert not bad, bad

    def undo(self) -> list[str]:
        """Undo all nodes, dependents first; return the messages about what stays."""
        return [
            text for layer in reversed(self.layers) for text in self.ledger.undo(*[node.provides for node in layer])
        ]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_undo_restores_an_earlier_file_after_any_change(site: Site) -> None:
    """Content, mode and set-user-id bit come back, even if the file vanished or the definition changed in between."""
    path = site / "f"
    path.write_bytes(b"\xff\x00old")
    path.chmod(0o4710)
    before = snapshot(site.root)
    for disturb in ("nothing", "remove", "redefine"):
        site.apply(resources.file(str(path), content="new", mode="0640", owner="root", group="root"))
        if disturb == "change":
            path.write_text("somebody's")
        elif disturb == "remove":
            path.unlink()
        elif disturb == "redefine":
            site.apply(resources.file(str(path), content="newer", mode="0600", owner="daemon"))
        assert site.undo() == []
        assert different(before, snapshot(site.root)) == {}, disturb


def test_undo_of_a_mode_keeps_content_that_changed_since(site: Site) -> None:
    """A node that set only the mode restores only the mode."""
    path = site / "f"
    path.write_text("one")
    path.chmod(0o600)
    site.apply(resources.file(str(path), mode="0644"))
    path.write_text("two")
    assert site.undo() == []
    assert (path.read_text(), path.stat().st_mode & 0o7777) == ("two", 0o600)


def test_undo_restores_large_content_up_to_a_limit(site: Site) -> None:
    """Two MiB come back. For a file over the limit the plan of the removal says that it does not come back."""
    path, large = site / "f", site / "large"
    path.write_bytes(b"x" * (2 << 20))
    with large.open("wb") as stream:
        stream.truncate((64 << 20) + 1)
    site.apply(resources.file(str(path), content="new"), resources.file(str(large), content="small"))
    left = site.undo()
    assert path.read_bytes() == b"x" * (2 << 20)
    assert large.read_text() == "small"
    assert [text for text in left if "67108865 bytes are too many" in text]


def test_undo_of_a_hard_link_leaves_its_target_alone(site: Site) -> None:
    """A file that the link replaced comes back with its own mode. A link from before the node stays."""
    target, other, linked = site / "target", site / "other", site / "linked"
    target.write_text("x")
    other.write_text("x")
    other.chmod(0o600)
    linked.hardlink_to(target)
    before = snapshot(site.root)
    names = [str(other), str(linked)]
    site.apply(*[resources.hard_link(name, target=str(target), replace=True) for name in names])
    assert target.samefile(other) and target.stat().st_nlink == 3
    assert site.undo() == []
    assert different(before, snapshot(site.root)) == {}
    assert target.samefile(linked)


def test_undo_keeps_a_directory_that_replaced_the_file(site: Site) -> None:
    """Somebody put a directory in place of the node's file. Undo does not remove it."""
    path = site / "f"
    site.apply(resources.file(str(path), content="x"))
    path.unlink()
    path.mkdir()
    (said,) = site.undo()
    assert said == f"{path} is now a directory, which the node did not create: it stays"
    assert path.is_dir()


def test_undo_keeps_a_directory_with_files_of_others(site: Site) -> None:
    """Undo removes a directory only if it is empty, and otherwise gives the reason."""
    made = resources.directory(str(site / "d"))
    site.apply(made, resources.file(str(site / "d/ours"), content="x", requires=[made]))
    (site / "d/theirs").write_text("y")
    (said,) = site.undo()
    assert said == f"{site / 'd'} is not empty (theirs): it stays"
    assert sorted(path.name for path in site.root.rglob("*")) == ["d", "theirs"]


def test_undo_removes_shared_parents_with_the_last_directory(site: Site) -> None:
    """Parent directories are removed with the last directory that needs them, also if all are removed at once."""
    before = snapshot(site.root)
    site.apply(*[resources.directory(str(site / f"a/b/{name}"), parents=True) for name in "xyz"])
    assert site.undo() == []
    assert different(before, snapshot(site.root)) == {}
    site.apply(*[resources.directory(str(site / f"a/b/{name}"), parents=True) for name in "xyz"])
    assert site.ledger.undo(f"directory:{site / 'a/b/x'}") == [f"{site / 'a/b'} is not empty (y, z): it stays"]
    assert site.ledger.undo(f"directory:{site / 'a/b/z'}", f"directory:{site / 'a/b/y'}") == []
    assert different(before, snapshot(site.root)) == {}


def test_undo_removes_files_that_came_into_the_source_later(site: Site) -> None:
    """Files that were added to the source later are removed, and files from before the node come back."""
    (site / "d").mkdir()
    (site / "d/old").write_text("old")
    (site / "d/also").write_text("also")
    before = snapshot(site.root)
    site.source("tree/old", "new")
    site.source("tree/sub/one", "1")
    site.apply(resources.directory(str(site / "d"), source="tree"))
    site.source("tree/later", "2")
    site.source("tree/also", "replaced")
    site.apply(resources.directory(str(site / "d"), source="tree", mode="0700"))
    assert site.undo() == [f"{site / 'd/also'} stays: its previous state is unknown"]
    assert (site / "d/also").read_text() == "replaced"
    (site / "d/also").write_text("also")
    assert different(before, snapshot(site.root)) == {}


def grown(site: Site) -> None:
    """Create a tree with files, links, empty directories and several modes."""
    (site / "t/sub/deep").mkdir(parents=True)
    (site / "t/sub").chmod(0o1770)
    (site / "t/sub/deep/secret").write_bytes(b"\x00\x01")
    (site / "t/sub/deep/secret").chmod(0o400)
    (site / "t/link").symlink_to("sub/deep")
    (site / "t/dangling").symlink_to("/nowhere")
    (site / "t/empty").mkdir(mode=0o711)


@pytest.mark.parametrize("kind", ["purged", "removed"])
def test_undo_restores_a_removed_or_purged_tree(site: Site, kind: str) -> None:
    """The tree comes back with its content, modes, links and empty directories."""
    grown(site)
    before = snapshot(site.root)
    path = str(site / "t")
    if kind == "purged":
        site.source("tree/sub/ours", "x")
        site.apply(resources.directory(path, source="tree", purge=True))
        assert sorted(each.name for each in (site / "t").rglob("*")) == ["ours", "sub"]
    else:
        site.apply(resources.directory(path, absent=True, recursive=True))
    assert site.undo() == []
    assert different(before, snapshot(site.root)) == {}


def test_undo_says_that_a_very_large_tree_does_not_come_back(site: Site) -> None:
    """For a tree with too many files the plan of the removal says that it does not come back."""
    (site / "t").mkdir()
    for number in range(10_001):
        (site / f"t/{number}").touch()
    site.apply(resources.directory(str(site / "t"), absent=True, recursive=True))
    left = site.undo()
    assert any("holds more than 10000 files" in text for text in left), left
    assert list((site / "t").iterdir()) == []


@pytest.mark.parametrize("first", ["one", "two"])
def test_undo_removes_a_created_file_with_its_last_line(site: Site, first: str) -> None:
    """The file is removed with the last of its two lines, in either order."""
    before = snapshot(site.root)
    path = str(site / "f")
    one = resources.line_in_file(path, line="a", create=True, provides="one")
    site.apply(one, resources.line_in_file(path, line="b", create=True, provides="two", requires=[one]))
    site.ledger.undo(first)
    assert (site / "f").read_text() == ("b\n" if first == "one" else "a\n")
    site.ledger.undo("two" if first == "one" else "one")
    assert different(before, snapshot(site.root)) == {}


def test_undo_restores_several_lines_of_a_file_at_once(site: Site) -> None:
    """Nodes of one layer are undone together, and each of them reverts only its own line."""
    (site / "f").write_text("a = 1\nb = 2\nc = 3")
    before = snapshot(site.root)
    path = str(site / "f")
    site.apply(
        resources.line_in_file(path, line="a = 7", match="^a", provides="one"),
        resources.line_in_file(path, match="^b", absent=True, provides="two"),
        resources.line_in_file(path, line="d = 4", provides="three", backup=".old"),
    )
    assert site.undo() == []
    assert different(before, snapshot(site.root)) == {}


def test_undo_restores_files_and_links_replaced_by_links(site: Site) -> None:
    """A file that a link replaced comes back; a link that led elsewhere leads there again."""
    (site / "f").write_text("x")
    (site / "l").symlink_to("f")
    before = snapshot(site.root)
    site.apply(
        resources.symlink(str(site / "f"), target="/etc", replace=True),
        resources.symlink(str(site / "l"), target="elsewhere"),
        resources.symlink(str(site / "new"), target="f"),
    )
    assert site.undo() == []
    assert different(before, snapshot(site.root)) == {}


def test_a_command_undo_runs_once_and_only_for_its_own_work(site: Site) -> None:
    """`undo` runs once if the guards find the command's result, and never if the result existed before."""
    made, kept = site / "made", site / "kept"
    kept.write_text("x")
    log = site / "log"
    before = snapshot(site.root)
    site.apply(
        resources.command("make", argv=["touch", str(made)], creates=str(made), undo=["rm", str(made)]),
        resources.command("keep", argv=["touch", str(kept)], creates=str(kept), undo=["rm", str(kept)]),
        resources.command("always", argv=["true"], undo=f"echo undone >> {log}", effects={}),
        resources.command("one-way", argv=["true"], effects={}),
    )
    assert sorted(site.undo()) == [
        "the effects of the command one-way stay: it has no undo",
        "the result of the command keep existed before it: it stays",
    ]
    assert log.read_text() == "undone\n"
    log.unlink()
    assert different(before, snapshot(site.root)) == {}
    site.apply(resources.command("make", argv=["touch", str(made)], creates=str(made), undo=["rm", str(made)]))
    made.unlink()
    assert site.undo() == []


@pytest.fixture
def sleeper(site: Site) -> Iterator[Any]:
    """Give a function that declares a process node; processes that still run at the end are killed."""
    me, group = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(os.getegid()).gr_name
    program = site.folder / "program"
    shutil.copy("/bin/sleep", program)

    def declare(**more: Any) -> Graph:
        attrs = {"user": me, "group": group, "env": {}, "args": ["300"], **more}
        made = resources.process(str(program), attrs)
        assert isinstance(made, Graph)
        return made

    yield declare
    for pid in running(program):
        os.kill(pid, signal.SIGKILL)


def running(program: Path) -> list[int]:
    """Return the ids of the processes that run a program."""
    found = []
    for path in Path("/proc").glob("[0-9]*/exe"):
        with suppress(OSError):
            if path.readlink() == program:
                found.append(int(path.parts[2]))
    return found


def test_undo_stops_started_and_starts_stopped_processes(site: Site, sleeper: Any) -> None:
    """A process that the node started is stopped. One started by somebody else stays. A stopped one is started."""
    program = site.folder / "program"
    site.apply(sleeper())
    assert len(running(program)) == 1
    assert site.undo() == []
    assert running(program) == []
    theirs = subprocess.Popen([program, "300"])
    try:
        site.apply(sleeper())
        assert site.undo() == []
        assert running(program) == [theirs.pid]
        site.apply(sleeper(absent=True))
        theirs.wait(10)
        assert running(program) == []
        assert site.undo() == []
        assert len(running(program)) == 1
    finally:
        theirs.kill()
        theirs.wait()
    site.apply(sleeper(absent=True))


def test_undo_does_not_start_a_process_that_needs_a_secret(site: Site, sleeper: Any) -> None:
    """The ledger does not contain the secret, so the process can't be started again."""
    site.apply(sleeper())
    site.apply(sleeper(absent=True))
    name = f"process:{site.folder / 'program'}"
    site.ledger.memory[name]["running"] = True
    site.ledger.nodes[name].attrs["args"] = [{HIDDEN: [["token", [[None, 6]]]]}]
    assert site.undo() == [f"{name} is not started again: that takes a secret, and none is kept"]


PLAYBOOK = """
hosts: "@local"
resources:
  - directory: {root}/site
    mode: "0750"
  - file: {root}/site/index
    content: "hello\\n"
    requires: ["directory:{root}/site"]
  - file: {root}/there
    content: "new\\n"
    mode: "0600"
  - symlink: {root}/link
    target: there
    replace: true
  - directory: {root}/old
    absent: true
    recursive: true
  - line_in_file: {root}/settings
    line: port = 7
    match: ^port
  - command: notes
    argv: [touch, {root}/notes]
    creates: {root}/notes
    undo: [rm, {root}/notes]
"""


@pytest.mark.parametrize("verb", ["apply", "prune", "destroy"])
def test_prune_and_destroy_from_the_command_line_restore_the_host(tmp_path: Path, verb: str) -> None:
    """Prune removes nodes that left the definition, also if they were added later. Destroy removes the rest."""
    root = tmp_path / "host"
    (root / "old/deep").mkdir(parents=True)
    (root / "old/deep/file").write_text("old")
    (root / "there").write_text("was")
    (root / "link").write_text("a file")
    (root / "settings").write_text("user = x\nport = 1\n# end\n")
    before = snapshot(root)
    playbook = tmp_path / "site.yml"
    first = "resources:\n  - file: {root}/first\n    content: x\n"
    playbook.write_text(PLAYBOOK.replace("resources:\n", first).format(root=root))
    statecfg("apply", playbook, "--yes", cwd=tmp_path)
    # A file that is added later, in a directory that already exists, requires nothing.
    playbook.write_text(PLAYBOOK.format(root=root) + f"  - file: {root}/site/later\n    content: x\n")
    statecfg("apply", playbook, "--yes", "--prune", cwd=tmp_path)
    assert not (root / "first").exists()
    kept = f'hosts: "@local"\nresources:\n  - file: {root}/kept\n    content: x\n'
    if verb == "destroy":
        statecfg("destroy", playbook, "--yes", cwd=tmp_path)
    else:
        playbook.write_text(kept)
        statecfg(verb, playbook, "--yes", *(["--prune"] if verb == "apply" else []), cwd=tmp_path)
        assert (root / "kept").exists() == (verb == "apply")
        statecfg("destroy", playbook, "--yes", cwd=tmp_path)
    assert different(before, snapshot(root)) == {}


NAMES = ("a", "a/x", "a/y", "a/x/1", "b", "b/z", "c")
MODES = st.sampled_from(["0644", "0600", "0755", "4750"])
CONTENT = st.sampled_from(["", "one\n", "two\nlines\n", "no end"])
THINGS = st.dictionaries(
    st.sampled_from(NAMES), st.tuples(st.sampled_from(["file", "directory", "link"]), CONTENT, MODES), max_size=6
)
LINES = st.sampled_from(["one", "two", "lines", "new"])
NODES = {
    "file": st.fixed_dictionaries({"content": CONTENT}, optional={"mode": MODES, "backup": st.just(".old")}),
    "symlink": st.fixed_dictionaries({"target": st.sampled_from(["a", "/nowhere"]), "replace": st.booleans()}),
    "directory": st.fixed_dictionaries(
        {"parents": st.booleans()}, optional={"mode": MODES, "purge": st.booleans(), "source": st.just("tree")}
    ),
    "line_in_file": st.fixed_dictionaries(
        {"line": LINES, "create": st.booleans()}, optional={"match": LINES, "absent": st.just(True), "mode": MODES}
    ).map(lambda attrs: {k: v for k, v in attrs.items() if k not in ("create", "mode") or "absent" not in attrs}),
    "block_in_file": st.fixed_dictionaries({"block": CONTENT, "create": st.booleans()}, optional={"mode": MODES}),
    "replace": st.fixed_dictionaries({"pattern": LINES, "replacement": st.sampled_from(["", "x", "n"])}),
    "directory absent": st.fixed_dictionaries({"absent": st.just(True), "recursive": st.booleans()}),
    "file absent": st.just({"absent": True}),
    "symlink absent": st.just({"absent": True}),
}
DEFINITION = st.dictionaries(
    st.sampled_from(NAMES),
    st.sampled_from(sorted(NODES)).flatmap(lambda kind: st.tuples(st.just(kind), NODES[kind])),
    min_size=1,
    max_size=5,
)


def put(root: Path, things: dict[str, tuple[str, str, str]]) -> None:
    """Create files, directories and links below a directory, and skip those without a parent directory."""
    for name, (kind, content, mode) in sorted(things.items()):
        path = root / name
        if not path.parent.is_dir() or path.parent.is_symlink():
            continue
        if kind == "link":
            path.symlink_to(content or "c")
            continue
        if kind == "file":
            path.write_text(content)
        else:
            path.mkdir()
        path.chmod(int(mode, 8))


@settings(max_examples=150, deadline=None)
@given(THINGS, DEFINITION, st.lists(st.booleans(), min_size=5, max_size=5))
def test_undo_of_any_definition_restores_the_files(things: Any, definition: Any, chained: list[bool]) -> None:
    """Random trees and random nodes, even if half of them fail: undo restores the tree exactly."""
    with TemporaryDirectory() as folder:
        site = Site(Path(folder))
        put(site.root, things)
        site.source("tree/x", "from the source")
        site.source("tree/sub/y", "from the source")
        before = snapshot(site.root)
        graphs: list[Graph] = []
        # Parents come first. Some nodes require the one before, and others run in parallel.
        for number, (name, (kind, attrs)) in enumerate(sorted(definition.items())):
            above = [graph for graph, other in zip(graphs, sorted(definition), strict=False) if name.startswith(other)]
            requires = graphs[-1:] if chained[number] else above
            given = {**attrs, "requires": [*requires]} if requires else attrs
            graphs.append(getattr(resources, kind.split()[0])(str(site / name), **given))
        assume(not contradictions.check([graph.node for graph in graphs]))
        site.layers = layers(graphs, site.folder / "project")
        site.ledger.apply(site.layers)
        site.undo()
        assert different(before, snapshot(site.root)) == {}
        shutil.rmtree(site.root)
