"""Orphans are resources that left the definition: renamed, replaced and protected ones, and the order of removal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from statecfg import resources
from statecfg.remote.graph.model import Blob, HostNode
from statecfg.remote.ledger.journal import Account
from statecfg.remote.ledger.ledger import Ledger
from statecfg.remote.ledger.orphans import Orphans, find_orphans, refusal
from statecfg.remote.ledger.records import contents, identities, with_content
from statecfg.remote.ledger.state import prepare
from statecfg.remote.machine.changes import with_digests
from statecfg.remote.wire.frames import encode_value
from tests.unit.remote.ledger import managed_types

TYPES = (resources.file, resources.symlink, resources.process, managed_types.t_several)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    prepare(str(tmp_path / "place"))
    found = Ledger(str(tmp_path / "place"))
    yield found
    found.close()


def row(name: str, *identities: str, kind: str = "file", requires: Iterable[str] = (), **more: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "type": kind, "module": "m", "claims": list(identities), "digest": "", "state": "RESOLVED", "memory": {},
        "after": "", "attrs": {}, "requires": list(requires), "tags": [], "protect": 0, "position": "p:1", "owing": [],
    }  # fmt: skip
    return dict(fields, name=name, **more)


def enter(ledger: Ledger, *rows: Mapping[str, Any], playbook: str = "site") -> None:
    found = Account([json.dumps({"manage": each}) for each in rows])
    ledger.end({"id": f"{playbook}{ledger.count()}", "mode": "apply", "who": "w", "playbook": playbook}, found, "ok")


def node(name: str, kind: str = "file", **attrs: Any) -> HostNode:
    return HostNode(name, kind, (), attrs, position="p:2")


def look(ledger: Ledger, *nodes: HostNode, pruning: bool = True, **more: Any) -> Orphans:
    defined = {each.provides: each for each in nodes}
    return find_orphans(ledger, "site", ledger.resources("site"), defined, pruning, **more)


def names(layers: Iterable[Iterable[HostNode]]) -> list[list[str]]:
    return [[each.provides for each in layer] for layer in layers]


def test_undefined_resources_are_removed_only_when_pruning(ledger: Ledger) -> None:
    enter(ledger, row("a", "path:/a"), row("b", "path:/b"))
    assert names(look(ledger, node("a", path="/a")).to_remove) == [["b"]]
    found = look(ledger, node("a", path="/a"), pruning=False)
    assert (names(found.to_remove), names(found.to_keep)) == ([], [["b"]])
    assert look(ledger, node("a", path="/a"), node("b", path="/b")).to_remove == []


def test_new_name_for_the_same_path_is_a_rename(ledger: Ledger) -> None:
    enter(ledger, row("old", "path:/x"))
    found = look(ledger, node("new", path="/srv/../x/"))
    assert (found.to_remove, found.to_keep) == ([], []) and found.renamed["new"].name == "old"


def test_new_type_for_the_same_path_replaces_without_pruning(ledger: Ledger) -> None:
    enter(ledger, row("old", "path:/x"), row("same", "path:/y"))
    found = look(ledger, node("new", "symlink", path="/x"), node("same", "symlink", path="/y"), pruning=False)
    assert names(found.to_remove) == [["old", "same (the file /y)"]] and not found.renamed
    assert refusal(found, 2, False) == ""


def test_reused_name_keeps_the_old_resource_until_pruning(ledger: Ledger) -> None:
    """Until then, the old resource has a separate name. The same is true if the new node has another type."""
    enter(ledger, row("conf", "path:/old"), row("other", "path:/b"))
    found = look(ledger, node("conf", path="/new"), node("other", "t_several", paths=["/c"]), pruning=False)
    assert found.to_remove == [] and names(found.to_keep) == [["conf (the file /old)", "other (the file /b)"]]
    assert found.reused == {"conf", "other"}


def test_swapped_names_count_as_two_renames(ledger: Ledger) -> None:
    enter(ledger, row("a", "path:/x"), row("b", "path:/y"))
    found = look(ledger, node("a", path="/y"), node("b", path="/x"))
    assert (found.to_remove, found.to_keep) == ([], [])
    assert {name: each.name for name, each in found.renamed.items()} == {"a": "b", "b": "a"}


def test_process_with_other_arguments_is_not_an_orphan(ledger: Ledger) -> None:
    attrs = {"user": "root", "args": ["1"], "env": {}, "group": "root", "pathname": "/bin/x"}
    recorded = ["process: root /bin/x 1", "process record:app"]
    enter(ledger, row("app", *recorded, kind="process"))
    assert look(ledger, node("app", "process", **dict(attrs, args=["2"]))).to_remove == []
    found = look(ledger, node("renamed", "process", **attrs))
    assert list(found.renamed) == ["renamed"]


def test_merging_two_nodes_removes_only_one_record(ledger: Ledger) -> None:
    """The ledger loses the record of one node, because the other node now manages its resource."""
    enter(ledger, row("a", "path:/a", kind="t_several"), row("b", "path:/b", kind="t_several"))
    found = look(ledger, node("a", "t_several", paths=["/a", "/b"]), pruning=False)
    ((former,),) = found.to_remove
    assert former.provides == "b" and former.successor == ("site", "a") and "it stays: a of site" in former.note
    assert refusal(found, 2, False) == ""
    both = look(ledger, node("c", "t_several", paths=["/a", "/b"]), pruning=False)
    assert list(both.renamed) == ["c"] and names(both.to_remove) == [["b"]]


@pytest.mark.parametrize("first", ["site", "other"])
def test_resource_managed_by_another_playbook_only_loses_its_record(ledger: Ledger, first: str) -> None:
    second = "other" if first == "site" else "site"
    for number, playbook in enumerate((first, second)):
        enter(ledger, row(playbook, "path:/x", since=float(number)), playbook=playbook)
    ((former,),) = look(ledger).to_remove
    assert former.successor == ("other", "other") and "other of other" in former.note
    assert "path:/x" in look(ledger).to_remove[0][0].resource.definition.identities


def test_playbook_sees_only_its_own_orphans(ledger: Ledger) -> None:
    enter(ledger, row("theirs", "path:/t"), playbook="other")
    assert look(ledger).to_remove == []


def test_partial_run_finds_renames_and_replacements_but_no_orphans(ledger: Ledger) -> None:
    """A partial run defines only some resources. It still recognizes the resources that they rename or replace."""
    enter(ledger, row("a", "path:/a"), row("b", "path:/b"), row("c", "path:/c", state="IN_DELETION"))
    found = look(ledger, node("new", path="/a"), node("new-b", "symlink", path="/b"), pruning=False, partial=True)
    assert list(found.renamed) == ["new"] and names(found.to_remove) == [["b"]] and found.to_keep == []


def test_removal_that_began_continues_without_pruning(ledger: Ledger) -> None:
    enter(ledger, row("a", "path:/a", state="IN_DELETION"), row("b", "path:/b"))
    found = look(ledger, pruning=False)
    assert names(found.to_remove) == [["a"]] and names(found.to_keep) == [["b"]]
    assert refusal(found, 2, False) == ""


def test_rename_is_found_by_identities_with_masked_secrets(ledger: Ledger) -> None:
    enter(ledger, row("old", "path:/home/<secret who>"))

    def recorded(found: HostNode) -> list[str]:
        return [item.replace("ann", "<secret who>") for item in identities(found)]

    assert list(look(ledger, node("new", path="/home/ann"), recorded_identities=recorded).renamed) == ["new"]


# Order


def test_dependents_are_removed_first(ledger: Ledger) -> None:
    chain = [row("a", "path:/a"), row("b", "path:/b", requires=["a"]), row("c", "path:/c", requires=["b", "a"])]
    enter(ledger, *chain, row("alone", "path:/d", requires=["kept", "alone"]))
    found = look(ledger)
    assert names(found.to_remove) == [["alone", "c"], ["b"], ["a"]]
    requires = {each.provides: each.requires for layer in found.to_remove for each in layer}
    assert requires == {"alone": (), "c": (), "b": ("c",), "a": ("b", "c")}


def test_nodes_in_a_cycle_are_removed_last_and_together(ledger: Ledger) -> None:
    """Records come from several runs, so their requirements may have a cycle. Those of a definition may not."""
    pairs = [("a", ["b"]), ("b", ["a"]), ("c", ["a"]), ("d", [])]
    enter(ledger, *[row(name, f"path:/{name}", requires=requires) for name, requires in pairs])
    assert names(look(ledger).to_remove) == [["c", "d"], ["a", "b"]]


# Refusals


def test_removal_of_protected_nodes_is_refused(ledger: Ledger) -> None:
    enter(ledger, *[row(name, f"path:/{name}", protect=int(name in "ab")) for name in "abcdef"])
    kept = [node(name, path=f"/{name}") for name in "cdef"]
    assert refusal(look(ledger, *kept), 6, True).startswith("a, b are protected: define them with `protect: false`")
    assert refusal(look(ledger, node("a", path="/a"), *kept), 6, True).startswith("b is protected: define it")
    assert refusal(look(ledger, pruning=False), 6, True) == ""


@pytest.mark.parametrize(("total", "refused"), [(3, True), (4, False), (5, False)])
def test_removal_of_more_than_half_needs_permission(ledger: Ledger, total: int, refused: bool) -> None:
    """The limit is half of all resources on the host, not half of those in the playbook."""
    enter(ledger, row("a", "path:/a"), row("b", "path:/b"))
    found = look(ledger)
    assert bool(refusal(found, total, False)) is refused
    assert refusal(found, total, True) == ""
    if refused:
        assert "2 of the 3 resources" in refusal(found, total, False)


# Records


def test_record_keeps_whole_attributes_and_digests_of_content() -> None:
    long = "echo " + "x" * 5000
    found = with_digests({"undo": long, "argv": ("a", 1), "content": Blob.of("x"), "env": {"A": None}})
    assert found["undo"] == long and found["argv"] == ["a", 1] and found["content"].startswith("sha256:")
    assert json.loads(json.dumps(found)) == found
    secret = Blob.of("s3cret")
    secret.secret = True
    assert with_digests(secret) == "holds a secret (6 bytes)"


def test_memory_of_a_node_is_restored_with_its_content(tmp_path: Path) -> None:
    memory = {"$odd": [1, None, {"was": Blob.of("content")}], "plain": "x"}
    (tmp_path / Blob.of("content").sha256).write_text("content")
    found = with_content(json.loads(json.dumps(encode_value(memory, -1))), str(tmp_path))
    (blob,) = contents(found)
    assert blob.read() == b"content" and found["$odd"][:2] == [1, None] and found["plain"] == "x"


def package(name: str, requires: Iterable[str] = (), **attrs: Any) -> dict[str, Any]:
    return row(f"package:{name}", f"package:{name}", kind="package", requires=requires, attrs={"name": name, **attrs})


def test_packages_are_removed_last_despite_requirements(ledger: Ledger) -> None:
    """One layer removes them, after all nodes that may need them. Packages that must return follow in another layer."""
    enter(
        ledger, package("server"), package("client"), package("old", absent=True), row("shop", kind="command"),
        row("unit", kind="service", requires=["package:server"]),
    )  # fmt: skip
    found = look(ledger).to_remove
    assert names(found) == [["shop", "unit"], ["package:client", "package:server"], ["package:old"]]
    (former,) = (each for each in found[1] if each.provides == "package:server")
    assert list(former.waits) == ["shop", "unit"]
    assert (list(former.requires), list(former.sees)) == (["unit"], [])


def test_package_is_removed_before_the_source_it_requires(ledger: Ledger) -> None:
    """Docker is removed before its package source. The tool that fetched the key of the source is removed last."""
    enter(
        ledger, package("curl"), row("key", kind="command", requires=["package:curl"]),
        row("source", "path:/s", requires=["key"]), package("docker", ["source"]), package("other"),
        row("config", "path:/d", requires=["package:docker"]),
    )  # fmt: skip
    assert names(look(ledger).to_remove) == [
        ["config"], ["package:docker"], ["source"], ["key"], ["package:curl", "package:other"],
    ]  # fmt: skip


def test_packages_are_removed_before_the_users_they_require(ledger: Ledger) -> None:
    """One layer removes all packages. The order has no cycle, even if the packages require other nodes."""
    enter(
        ledger, row("u1", "user:u1", kind="user"), row("u2", "user:u2", kind="user"),
        package("a", ["u1"]), package("b", ["u2"]),
    )  # fmt: skip
    assert names(look(ledger).to_remove) == [["package:a", "package:b"], ["u1", "u2"]]
