"""Compilation of a graph for hosts: the result, the errors, and that the result is always the same."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from statecfg.graph.graph import EMPTY, Graph, merge_graphs
from statecfg.graph.types import MAX_DEPTH
from statecfg.playbook.compile import Definition, WireContext, compile_graph
from statecfg.playbook.context import HELD
from statecfg.problems import InvalidInput, positions
from statecfg.problems.positions import SourceLocation
from statecfg.remote.graph.model import Blob
from statecfg.remote.graph.nodetype import NodeType, register
from tests.each import each
from tests.unit.graph.node_types import chain, refused, t_path, t_plain, t_rich


def compiled(*graphs: Graph, base: Path | None = None) -> Definition:
    return compile_graph(merge_graphs(*graphs), WireContext(base=base or Path(__file__).parent))


def attrs_of(*graphs: Graph, base: Path | None = None) -> dict[str, Any]:
    (layer,) = compiled(*graphs, base=base).layers
    found: dict[str, Any] = layer[0]["attrs"]
    return found


def test_wire_node_omits_empty_fields() -> None:
    (layer,) = compiled(t_plain("a")).layers
    assert layer == [
        {"provides": "t_plain:a", "type": "t_plain", "attrs": {"name": "a"}, "position": layer[0]["position"]}
    ]
    assert layer[0]["position"].startswith("test_compile.py:")


def test_wire_node_has_requirements_triggers_and_options() -> None:
    one = t_plain("a")
    (_, (node,)) = compiled(t_plain("b", restart_on=[one], tags=["x"])).layers
    assert node["requires"] == node["triggers"] == ["t_plain:a"]
    assert node["options"] == {"tags": ["x"]}


def test_definition_lists_its_types_and_is_valid_json() -> None:
    found = compiled(
        t_plain("a"), t_rich("/x", owner="web", env={"A": "1"}, argv=["ls", "-l"], free=[{"a": [None, 1.5]}])
    )
    assert found.types == ["t_plain", "t_rich"]
    assert json.loads(json.dumps(found.layers)) == found.layers
    rich = found.layers[0][1]["attrs"]
    assert (rich["env"], rich["argv"], rich["free"]) == ({"A": "1"}, ["ls", "-l"], [{"a": [None, 1.5]}])


def test_empty_graph_compiles_to_no_layers() -> None:
    assert compile_graph(EMPTY, WireContext()).layers == []


def test_digest_of_a_definition_ignores_declaration_order() -> None:
    one, two = t_plain("a"), t_plain("b", requires=["t_plain:a"])
    assert compiled(one, two).digest == compiled(two, one).digest
    assert compiled(one, two).digest != compiled(one).digest


def test_small_content_is_sent_inline_and_large_by_digest() -> None:
    small, large = "x" * 4096, "x" * 4097
    found = compiled(t_path("/small", body=small), t_path("/large", body=large))
    big, little = found.layers[0]
    assert little["attrs"]["body"]["text"] == small
    assert big["attrs"]["body"] == {"$blob": [Blob.of(large).sha256, 4097]}
    assert {digest: blob.read() for digest, blob in found.blobs.items()} == {Blob.of(large).sha256: large.encode()}


def test_keys_with_a_dollar_sign_are_escaped() -> None:
    from statecfg.remote.wire.frames import decode_value

    given = {"$blob": ["a", 1], "$$": 2, "plain": {"$x": 3}}
    assert decode_value(attrs_of(t_rich("/x", owner="web", free=given))["free"], {}) == given


def test_definition_reveals_secrets_on_the_wire_and_lists_them() -> None:
    from statecfg.playbook.secrets import Secret

    secret = Secret("token", "hunter2 hunter2")
    found = compiled(t_plain("a", text=secret), t_rich("/x", owner="web", free=[{"t": secret}]))
    assert found.layers[0][0]["attrs"]["text"] == "hunter2 hunter2"
    assert found.layers[0][1]["attrs"]["free"] == [{"t": "hunter2 hunter2"}]
    assert found.secrets == {"token": "hunter2 hunter2"} and "hunter2" not in repr(found.secrets.keys()) + repr(
        Definition(found.layers[:0], secrets=found.secrets)
    )
    body = compiled(t_path("/y", body=secret))
    assert body.layers[0][0]["attrs"]["body"]["text"] == "hunter2 hunter2" and body.secrets


@each(
    ("one", "other", "thing"),
    [
        ("/etc/x", "/etc//x", "path: /etc/x"),
        ("/etc/x", "/etc/./x", "path: /etc/x"),
        ("/var/run/x", "/run/x", "path: /run/x"),
        ("/var/lock/x", "//run/lock/x", "path: /run/lock/x"),
    ],
)
def test_two_nodes_for_the_same_path_are_refused(one: str, other: str, thing: str) -> None:
    graphs = t_path(one), t_path(other)
    with refused("SC0114") as found:
        compiled(*graphs)
    assert thing in found[0].detail
    assert found[0].locations == (graphs[0].node.position, graphs[1].node.position)


def test_nodes_with_different_names_may_not_manage_the_same_thing() -> None:
    with refused("SC0114") as found:
        compiled(t_plain("web", provides="one"), t_plain("web", provides="two"))
    assert "one and two manage the same t_plain: web" in found[0].detail
    assert len(compiled(t_path("/var/runner"), t_path("/runner")).layers[0]) == 2


def test_path_both_present_and_absent_is_refused() -> None:
    from statecfg.graph.declare import declare_at

    places = SourceLocation("a.yml", 3, 5), SourceLocation("b.yml", 9, 5)
    graphs = [
        declare_at(t_path, ("/etc/x",), {}, places[0]),
        declare_at(t_path, ("/etc//x",), {"absent": True}, places[1]),
    ]
    with refused("SC0114") as found:
        compiled(*graphs)
    assert "`absent` is false in one and true in the other" in found[0].detail
    assert found[0].locations == places


def test_compile_reports_all_kinds_of_problems_together(tmp_path: Path) -> None:
    with refused("SC0111", "SC0113", "SC0114", "SC0118"):
        compiled(
            t_plain("a", requires=["nowhere"]),
            t_plain("b", requires=["t_plain:c"]),
            t_plain("c", requires=["t_plain:b"]),
            t_path("/x", source="missing.txt"),
            t_path("//x", absent=True),
            base=tmp_path,
        )


def node_at(base: Path, source: str) -> Graph:
    from statecfg.graph.declare import declare_at

    return declare_at(t_path, ("/x",), {"source": source}, SourceLocation(str(base / "playbooks" / "p.yml"), 3, 5))


def test_source_is_found_beside_the_playbook_then_in_files(tmp_path: Path) -> None:
    for folder in ("playbooks", "files", "templates"):
        (tmp_path / folder).mkdir()
    (tmp_path / "templates" / "motd").write_text("templates")
    assert attrs_of(node_at(tmp_path, "motd"), base=tmp_path)["body"]["text"] == "templates"
    (tmp_path / "files" / "motd").write_text("files")
    assert attrs_of(node_at(tmp_path, "motd"), base=tmp_path)["body"]["text"] == "files"
    (tmp_path / "playbooks" / "motd").write_text("beside")
    assert attrs_of(node_at(tmp_path, "motd"), base=tmp_path)["body"]["text"] == "beside"


def test_large_source_file_is_not_held_in_memory(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"x" * (HELD + 1))
    found = compiled(node_at(tmp_path, str(tmp_path / "big")), base=tmp_path)
    (blob,) = found.blobs.values()
    assert blob.data is None and blob.size == HELD + 1 and blob == Blob.of(b"x" * (HELD + 1))


def test_compile_refuses_missing_outside_and_special_sources(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    for folder in (project / "playbooks", project / "files", outside):
        folder.mkdir(parents=True)
    (outside / "shadow").write_text("x")
    (project / "files" / "link").symlink_to(outside / "shadow")
    (project / "files" / "dangling").symlink_to("nowhere")
    (project / "files" / "folder").mkdir()
    os.mkfifo(project / "files" / "fifo")
    for source, message in {
        "missing": "missing does not exist",
        "link": f"link (which is {outside / 'shadow'}) is outside the project",
        "../../outside/shadow": "is outside the project",
        "dangling": "No such file or directory",
        "folder": "folder is a directory",
        "fifo": "fifo is not a regular file",
    }.items():
        with refused("SC0118") as found:
            compiled(node_at(project, source), base=project)
        assert message in found[0].detail, source
        assert found[0].locations == (SourceLocation(str(project / "playbooks" / "p.yml"), 3, 5),)


def test_tree_lists_files_links_and_directories(tmp_path: Path) -> None:
    tree = tmp_path / "files" / "site"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub" / "run").write_text("#!")
    (tree / "sub" / "run").chmod(0o755)
    (tree / "a").write_text("a")
    (tree / "link").symlink_to("a")
    node = node_at(tmp_path, "site").node
    found = WireContext(base=tmp_path).tree(node, "site")
    assert list(found) == ["a", "link", "sub", "sub/run"]
    assert found["a"] == {"kind": "file", "content": Blob.of("a")}
    assert found["link"] == {"kind": "symlink", "target": "a"}
    assert found["sub"] == {"kind": "directory"} and found["sub/run"]["executable"] is True
    os.mkfifo(tree / "pipe")
    with pytest.raises(InvalidInput, match="neither a file, a directory nor a symbolic link"):
        WireContext(base=tmp_path).tree(node, "site")


def kind(name: str, to_wire: Any) -> NodeType:
    def signature(name: str, *, value: Any = None) -> None: ...

    made = register(NodeType(name, function=signature, module=__name__))
    made.to_wire(to_wire)
    return made


def test_to_wire_may_take_the_node_and_the_context() -> None:
    one = kind("t_one", lambda node: node.with_attrs(value="one"))
    two = kind("t_two", lambda node, context: {"attrs": {"value": context.host}})
    found = compiled(one("a"), two("a")).layers[0]
    assert [node["attrs"].get("value") for node in found] == ["one", "localhost"]


def wrong(error: Exception) -> Any:
    def to_wire(node: Any) -> Any:
        raise error

    return to_wire


def test_failure_in_to_wire_is_reported_with_its_place() -> None:
    with refused("SC0116", "SC0116") as found:
        compiled(kind("t_bad", wrong(ValueError("not found")))("a"), kind("t_os", wrong(OSError("gone")))("a"))
    assert found[0].detail == "t_bad:a: not found" and found[0].locations[0].file == __file__


def test_exception_in_our_own_to_wire_names_the_node() -> None:
    ours: dict[str, Any] = {}
    exec(compile("def to_wire(node): 1 / 0", positions.PACKAGE + "resources/ours.py", "exec"), ours)
    with pytest.raises(ZeroDivisionError) as caught:
        compiled(kind("t_crash", ours["to_wire"])("a"))
    assert "while preparing t_crash:a" in caught.value.__notes__[0]


def test_exception_in_a_users_to_wire_is_reported_as_theirs() -> None:
    with refused("SC0504") as found:
        compiled(kind("t_crash", wrong(ZeroDivisionError("x")))("a"))
    assert "ZeroDivisionError: x" in found[0].detail
    assert [place.file for place in found[0].locations] == [__file__, __file__]


@each("answer", [None, 3, {"attrs": 3}, []])
def test_invalid_result_of_to_wire_is_refused(answer: Any) -> None:
    with refused("SC0119") as found:
        compiled(kind("t_answer", lambda node: answer)("a"))
    assert "to_wire of t_answer returned" in found[0].detail


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@each("value", [object(), {1, 2}, len, nested(MAX_DEPTH + 2), {"a": {3: 4}}])
def test_compile_refuses_values_that_cannot_be_sent(value: Any) -> None:
    with refused("SC0117") as found:
        compiled(kind("t_value", lambda node: node.with_attrs(value=value))("a"))
    assert found[0].locations[0].file == __file__ and len(found[0].detail) < 250


def test_compiled_layers_follow_the_requirements() -> None:
    found = compiled(chain("A", "B", "C")).layers
    assert [[node["provides"] for node in layer] for layer in found] == [["C"], ["B"], ["A"]]
