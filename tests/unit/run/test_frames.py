"""Frames of hosts: each is either valid or refused."""

from __future__ import annotations

import ast
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

import pytest

from statecfg.playbook.compile import Definition
from statecfg.remote.run import report
from statecfg.run.host import frames
from statecfg.run.host.broken import Broken
from statecfg.run.host.report import HostReport
from statecfg.run.host.state import SessionState
from statecfg.run.strict import Invalid, Strict, weigh
from tests.each import each

CLASSES = [
    found
    for found in vars(frames).values()
    if isinstance(found, type) and issubclass(found, Strict) and found not in (Strict, frames.Frame)
]


def names(cls: type[Strict]) -> set[str]:
    """Return the keys of a class."""
    hints = typing.get_type_hints(cls)
    return {name for name, hint in hints.items() if typing.get_origin(hint) is not typing.ClassVar}


def test_unknown_key_is_refused_at_any_depth() -> None:
    """The message gives the position of the unknown key."""
    change = {"object": "/etc/motd", "field": "mode", "before": None, "after": "0644", "x": 1}
    node = {"name": "a", "type": "file", "outcome": "changed", "changes": [change], "actions": [], "position": ""}
    with pytest.raises(Invalid, match=r"^nodes\[0\]\.changes\[0\]: the key 'x' is unknown$"):
        frames.PlannedFrame.from_json({"layer": 0, "nodes": [node]})


@pytest.mark.parametrize(("value", "what"), [(True, "an integer"), (1.0, "an integer"), ("1", "an integer")])
def test_integer_field_refuses_booleans_floats_and_text(value: Any, what: str) -> None:
    with pytest.raises(Invalid, match=f"index: {value!r} is not {what}"):
        frames.ActionFrame.from_json({"node": "a", "op": "b", "index": value, "event": "started"})


def test_free_data_is_limited_in_depth_and_size() -> None:
    deep: Any = 1
    for _ in range(200):
        deep = {"a": deep}
    for facts, says in ((deep, "nested more than 104 levels"), ({"a": ["x"] * 100_000}, "more than 262,144 bytes")):
        with pytest.raises(Invalid, match=says):
            frames.PlanFrame.from_json({"facts": facts})


FIRED = {"hook": "h", "event": "post-create", "name": "file:/a", "where": "host", "status": "ok"}
RESOURCE = {"name": "file:/a", "type": "file", "state": "RESOLVED", "position": "", "tags": [], "playbook": "site.yml"}
HOOK = {"id": 1, "hook": "h", "event": "post-create", "seconds": 1.0}
DONE = {"id": 1, "ok": True, "ran": True, "error": "", "seconds": 1.0}
# Path of the data of a hook → its limit, its class, and functions that return a frame with data, and data with a text.
OF_HOOKS: dict[str, tuple[int, type[frames.Frame], Callable[[Any], Any], Callable[[str], Any]]] = {
    "entry": (frames.HOOK, frames.FiredFrame, lambda data: {**FIRED, "entry": data}, lambda text: {"output": text}),
    "metadata": (
        frames.HOOK,
        frames.FiredFrame,
        lambda data: {**FIRED, "metadata": data},
        lambda text: {"a": {"b": text}},
    ),
    "resource.attributes": (
        frames.HOOK,
        frames.HookFrame,
        lambda data: {**HOOK, "resource": {**RESOURCE, "attributes": data}},
        lambda text: {"content": text},
    ),
    "changes": (
        frames.SETTINGS,
        frames.UnitDoneFrame,
        lambda data: {**DONE, "changes": data},
        lambda text: {"relations": {"db:0": {"set": {"a": text}}}},
    ),
}


@each("path", OF_HOOKS)
def test_data_of_hooks_is_limited_in_size(path: str) -> None:
    most, cls, frame, data = OF_HOOKS[path]
    assert most == 8 << 20
    room = most - weigh(data(""))
    largest = frame(data("x" * room))
    assert cls.from_json(largest).to_json() == largest
    with pytest.raises(Invalid, match=rf"^{path}: it takes more than 8,388,608 bytes of memory$"):
        cls.from_json(frame(data("x" * (room + 1))))


@each("path", OF_HOOKS)
def test_data_of_hooks_is_limited_in_depth(path: str) -> None:
    _, cls, frame, _ = OF_HOOKS[path]

    def nested(levels: int) -> Any:
        return {"a": nested(levels - 1)} if levels else 1

    with pytest.raises(Invalid, match=rf"^{path}: it is nested more than 104 levels deep$"):
        cls.from_json(frame(nested(105)))
    if cls is not frames.UnitDoneFrame:  # whose data has a fixed shape of a few levels
        assert cls.from_json(frame(nested(104)))


def test_every_frame_of_the_executor_has_a_class() -> None:
    """Each `type` of frame that the executor sends has exactly one class."""
    assert set(frames.FRAME_CLASSES.values()) == {cls for cls in CLASSES if issubclass(cls, frames.Frame)}
    assert all(frames.FRAME_CLASSES[frames.TYPES[cls]] is cls for cls in frames.FRAME_CLASSES.values())


@each("seconds", [-1, 121, 1e300, float("nan")])
def test_host_may_not_call_a_hook_with_an_invalid_time_limit(seconds: float) -> None:
    said = HostReport(Definition([]), "apply", lambda name, data: None)
    said.state = SessionState.ACTING
    calling = {"type": "calling", "hook": "h", "event": "post-create", "name": "file:/a"}
    with pytest.raises(Broken, match=r"frame is invalid|gives a hook"):
        said.take(said.read({**calling, "seconds": seconds}))
    with pytest.raises(Broken, match="not part of this run"):
        said.take(said.read({**calling, "seconds": 30.0}))


def typed_keys(module: types.ModuleType, name: str) -> set[str]:
    """Return the keys of a class that a module of the executor declares only for type checkers."""
    (definition,) = (
        node
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.ClassDef) and node.name == name
    )
    return {node.target.id for node in definition.body if isinstance(node, ast.AnnAssign)}


@pytest.mark.parametrize(
    ("read", "module", "sent"),
    [(frames.ReportedNode, report, "NodeReport"), (frames.Shutdown, report, "ActionReport")],
)
def test_the_controller_reads_the_keys_that_the_executor_sends(read, module, sent):
    assert names(read) == typed_keys(module, sent)
