"""Values of nodes on a host: how they replace their references, in a plan and after their node has acted."""

from __future__ import annotations

from typing import Any

import pytest

from statecfg.remote.graph import model
from statecfg.remote.graph.model import Blob, CheckError, HostNode, Unknown
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.ledger.records import Resource, StoredDefinition
from statecfg.remote.machine.memory import MemoryMachine
from statecfg.remote.machine.redact import Redactor
from statecfg.remote.run import values
from statecfg.remote.run.plan import Step
from statecfg.remote.run.planning import Planner
from statecfg.remote.run.values import filled
from statecfg.resources import command, file
from tests.each import each

assert command and file
REFERENCE = "statecfgOutput" + "1" * 40


def user(refused: str = "", output: str = "stdout", source: str = "command:c", **more: Any) -> HostNode:
    attrs = {"path": "/a", "content": Blob.of(f"it is {REFERENCE}")}
    options = {"inserts": {REFERENCE: [source, output, refused]}}
    return HostNode("file:/a", "file", (source,), attrs, options=options, **more)


def planner(source: HostNode, said: str | None = None, recorded: str | None = None, **files: str) -> Planner:
    made = Planner(REGISTRY, MemoryMachine(files={f"/{name}": text for name, text in files.items()}))
    name = source.provides
    made.nodes = {name: source}
    if said is not None:
        made.current.said[name] = {"stdout": said}
    if recorded is not None:
        memory = {"$said": {"stdout": recorded}}
        made.current.recorded = {name: Resource(name, StoredDefinition("command", "", {}), memory=memory)}
    return made


def fill(node: HostNode, made: Planner) -> None:
    values.fill(node, made.nodes, made.types, made.current, made.machine)


def source(**more: Any) -> HostNode:
    return HostNode("command:c", "command", attrs={"name": "c", "argv": ["c"]}, **more)


def content(node: HostNode) -> str:
    return str(node.attrs["content"].read().decode())


def test_value_of_this_run_replaces_the_recorded_one() -> None:
    node = user()
    fill(node, planner(source(), recorded="old"))
    assert content(node) == "it is old"
    fill(node, planner(source(), said="new", recorded="old"))
    assert content(node) == "it is new" and node.options["written"]["content"].read().decode().endswith(REFERENCE)


def test_value_is_unknown_until_its_node_has_acted() -> None:
    made = planner(source(), recorded="old")
    step = made.current.steps["command:c"] = Step(source())
    step.outcome = "changed"
    with pytest.raises(Unknown) as caught:
        fill(user(), made)
    assert caught.value.cause == "command:c"
    step.outcome = "unchanged"
    fill(user(), made)


def test_digest_is_known_in_the_plan() -> None:
    made = planner(HostNode("file:/b", "file", attrs={"path": "/b"}), b="content")
    node = user(output="sha256", source="file:/b")
    fill(node, made)
    assert content(node) == f"it is {Blob.of('content').sha256}"
    with pytest.raises(CheckError, match="the value sha256 of file:/gone is not known: "):
        gone = HostNode("file:/gone", "file", attrs={"path": "/gone"})
        fill(user(output="sha256", source="file:/gone"), planner(gone))


@each(
    ("said", "refused", "words"),
    [
        (None, "", "nothing to do, and this host has no record of the value"),
        ("a\nb", "\n\r", "several lines"),
        ("a\rb", "\n\r", "several lines"),
        ("a\\", "\n\r\\", "ends with a backslash"),
        ("$(id)", "$", "can't be used in a unit or a rule"),
        ("a\0b", "", "contains a NUL"),
        ("a" * 65537, "", "more than 65536 characters"),
    ],
)
def test_unusable_values_are_errors(said: str | None, refused: str, words: str) -> None:
    with pytest.raises(CheckError, match=words):
        fill(user(refused), planner(source(), said))


def test_secret_value_is_masked_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Blob, "secrets", ())
    monkeypatch.setitem(model.LEARNED, "placeholder-value", "placeholder")
    redactor = Redactor({"other": "something"})
    node = user(hides=("content",))
    fill(node, planner(source(hides=("env",)), said="very-private"))
    try:
        assert (
            redactor.text("it is very-private or something") == "it is <secret stdout-of-command-c> or <secret other>"
        )
        assert redactor.report({"reason": "has very-private"}) == {"reason": "has <secret stdout-of-command-c>"}
        assert node.attrs["content"].hides() and Blob.secrets == (b"very-private",)
        with pytest.raises(CheckError, match="fewer than 4 characters"):
            fill(user(), planner(source(hides=("env",)), said="abc"))
        with pytest.raises(CheckError, match="because the node uses a secret"):
            fill(user(), planner(source(hides=("env",))))
    finally:
        model.LEARNED.pop("very-private")


def test_values_are_replaced_in_lists_and_maps() -> None:
    known = {REFERENCE: "v"}
    attrs = {"a": [REFERENCE, 5, None], "b": {"c": f"x{REFERENCE}"}}
    assert filled(attrs, known) == {"a": ["v", 5, None], "b": {"c": "xv"}}
    assert filled(Blob("0" * 64, 5), known).data is None
