"""What the undo of a `release_binary` removes, keeps and restores."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import pytest

from statecfg import HostNode, MemoryMachine
from statecfg.remote.graph.model import ActionSpec
from statecfg.remote.ledger.records import SAID
from statecfg.resources.files.downloads import releases

ONE, TWO = (f"sha256:{hashlib.sha256(text.encode()).hexdigest()}" for text in ("one", "two"))
OLD: dict[str, Any] = {"path": "/bin/tool", "was": None, "former": {}, "installed": ["/bin/tool-1", "/bin/tool-2"]}


def undone(memory: Mapping[str, Any], files: Mapping[str, str], link: str = "", **attrs: Any) -> ActionSpec:
    machine = MemoryMachine({"/bin/other": "", **files})
    if link:
        assert machine.symlink("/bin/tool", link)["status"] == "ok"
    given = {"path": "/bin/tool", "version": "2", "checksum": TWO, **attrs}
    node = HostNode("release_binary:/bin/tool", "release_binary", attrs=given)
    return releases.undo(node, {**OLD, **memory}, machine)  # type: ignore[typeddict-item]  # as the ledger has it


def removed(spec: ActionSpec) -> list[str]:
    assert {action.op for action in spec.actions} <= {"remove"}
    return [action.args["path"] for action in spec.actions]


def test_a_ledger_of_an_earlier_version_has_only_the_checksum_of_the_last_version() -> None:
    spec = undone({}, {"/bin/tool-1": "one", "/bin/tool-2": "two"}, "tool-2")
    assert removed(spec) == ["/bin/tool", "/bin/tool-2"]
    assert spec.left == ["/bin/tool-1 stays: the ledger has no record that this node installed it"]
    spec = undone({}, {"/bin/tool-2": "changed"}, "tool-3")
    assert removed(spec) == []
    assert spec.left == [
        "/bin/tool is a link to tool-3, which this node did not install: it stays",
        "/bin/tool-2 is not the program that this node installed: it stays",
    ]


@pytest.mark.parametrize("said", [{}, {"/bin/tool-2": f"new {TWO}"}])
def test_a_failed_run_is_undone_as_well(said: Mapping[str, str]) -> None:
    """The run installed a version and failed before it was learned. What it said is in the ledger."""
    memory = {"installed": ["/bin/tool-1"], "ours": {"/bin/tool-1": f"new {ONE}"}, SAID: said}
    files = {"/bin/tool-1": "one", "/bin/tool-2": "two"}
    spec = undone(memory, files, "tool-1", version="1", checksum=ONE)
    assert removed(spec) == ["/bin/tool", "/bin/tool-1", *said]
    assert spec.left == []


def test_a_file_that_a_later_version_replaced_stays() -> None:
    """Only the first version's file is recorded with its former content."""
    ours = {"/bin/tool-1": f"new {ONE}", "/bin/tool-2": f"replaced {TWO}"}
    spec = undone({"ours": ours}, {"/bin/tool-1": "one", "/bin/tool-2": "two"}, "tool-2")
    assert removed(spec) == ["/bin/tool", "/bin/tool-1"]
    assert spec.left == ["/bin/tool-2 replaced a file that the ledger does not have: it stays"]


def test_a_program_without_versions_is_compared_by_its_digest() -> None:
    memory = {"installed": [], "ours": {"/bin/tool": f"new {TWO}"}}
    plain = {"version": None}
    assert removed(undone(memory, {"/bin/tool": "two"}, **plain)) == ["/bin/tool"]
    spec = undone(memory, {"/bin/tool": "three"}, **plain)
    assert (removed(spec), spec.left) == ([], ["/bin/tool is not the program that this node installed: it stays"])
    assert (removed(undone(memory, {}, **plain)), undone(memory, {}, **plain).left) == ([], [])
