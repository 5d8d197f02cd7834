"""statecfg refuses nodes that contradict each other before it connects to a host."""

from __future__ import annotations

import pytest

from statecfg.graph.graph import Graph, merge_graphs
from statecfg.playbook.compile import WireContext, compile_graph
from statecfg.playbook.plays import HostContext
from statecfg.problems import InvalidInput, Problem
from statecfg.resources import authorized_key, directory, file, group, line_in_file, symlink, user
from tests.each import each


def wrong(*graphs: Graph) -> list[Problem]:
    try:
        compile_graph(merge_graphs(*graphs), WireContext(HostContext("host")))
    except InvalidInput as error:
        return error.problems
    return []


@each(
    "child",
    [
        file("/srv/app/a/b", content=""),
        directory("/srv/app/a"),
        symlink("/srv//app/l", target="x"),
        line_in_file("/srv/app/./f", line="x", create=True),
    ],
)
def test_present_child_of_an_absent_directory_is_refused(child: Graph) -> None:
    parent = directory("/srv/app", absent=True, recursive=True)
    for graphs in ((parent, child), (child, parent)):
        (found,) = wrong(*graphs)
        assert found.code == "SC0121" and "which directory:/srv/app removes" in found.detail
        assert found.locations == (child.node.position, parent.node.position)


def test_absent_child_of_an_absent_directory_is_accepted() -> None:
    parent = directory("/srv/app", absent=True)
    assert wrong(parent, file("/srv/app/a", absent=True), file("/srv/application", content="")) == []
    assert wrong(directory("/srv/app"), file("/srv/app/a", content="")) == []


@pytest.mark.parametrize(("field", "one", "other"), [("mode", "0600", "0644"), ("owner", "root", "daemon")])
def test_two_modes_or_owners_for_one_file_are_refused(field: str, one: str, other: str) -> None:
    graphs = [file("/etc/x", **{field: one}), line_in_file("/etc/x", line="a", provides="line", **{field: other})]
    (found,) = wrong(*graphs)
    shown = (one, other) if field == "mode" else (repr(one), repr(other))
    assert found.code == "SC0121"
    assert found.detail == f"file:/etc/x sets the {field} of /etc/x to {shown[0]}, line sets it to {shown[1]}"
    assert found.locations == (graphs[0].node.position, graphs[1].node.position)


def test_same_mode_in_two_spellings_is_accepted() -> None:
    lines = [line_in_file("/etc/x", line=each, mode=each, provides=each) for each in ("644", "0644")]
    assert wrong(*lines, file("/etc/x", owner="root")) == []


def test_a_key_or_membership_of_an_absent_account_is_refused() -> None:
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
    gone, empty = user("ann", absent=True), group("app", absent=True)
    pairs = [
        (gone, authorized_key("key", user="ann", key=key), "user:ann is absent, and authorized_key:key adds"),
        (gone, group("app", members=["ann"]), "user:ann is absent, and group:app adds app to the groups of ann"),
        (empty, user("bob", groups=["app"]), "group:app is absent, and user:bob adds bob to the members of app"),
    ]
    for one, other, text in pairs:
        for graphs in ((one, other), (other, one)):
            (found,) = wrong(*graphs)
            assert found.code == "SC0121" and found.detail.startswith(text)
    assert wrong(gone, empty, authorized_key("key", user="ann", key=key, absent=True)) == []
    assert wrong(gone, group("app", members=["bob"])) == []
