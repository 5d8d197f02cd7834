"""Limits that protect the server from any content of types, templates and behaviors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from statecfg.entities import behaviors, patterns, payload, processes, schemas
from statecfg.entities.problems import ApiError
from statecfg.entities.worker import Worker
from statecfg.playbook import project
from statecfg.store import sqlite
from tests.host.entities.sites import ME, Sites, behavior
from tests.lab import processes as hosts

DRAFT_7 = {"$schema": "http://json-schema.org/draft-07/schema#"}


def test_uniqueness_of_a_long_list_is_checked_quickly() -> None:
    """Comparing all pairs would take half an hour and block all writes to the store."""
    begun = time.monotonic()
    assert schemas.error({"uniqueItems": True}, [{"n": number} for number in range(20_000)]) == ""
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize(
    ("items", "unique"),
    [
        ([1, True, 0, False, "1", None, [], {}, [1], ["1"]], True),
        ([1, 1.0], False),
        ([{"a": [1, {"b": 2}], "c": 3}, {"c": 3.0, "a": [1, {"b": 2}]}], False),
        ([[True], [1]], True),
        ([10**400, float(10**20), 10**20], False),
    ],
)
def test_unique_items_compares_values_as_json_does(items: list[Any], unique: bool) -> None:
    assert ("non-unique" in schemas.error({**DRAFT_7, "uniqueItems": True}, items)) is not unique


@pytest.mark.parametrize("schema", [{"patternProperties": {"(": {}}}, {"pattern": "("}, {"pattern": "a{99999999999}"}])
def test_an_invalid_pattern_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ApiError, match=r"pattern|regex"):
        schemas.check_schema({"properties": {"a": schema}})


PATTERNED = {
    "properties": {"name": {"pattern": "^([a-z]+)*$"}},
    "patternProperties": {"^x-([a-z]+)*$": {"type": "string"}},
    "additionalProperties": False,
}


@pytest.mark.parametrize("slow", [{"name": "a" * 60 + "!"}, {"x-" + "a" * 60 + "!": ""}])
def test_a_pattern_that_takes_too_long_is_stopped(slow: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Python runs no other thread while it matches a pattern, so nobody could even log in."""
    monkeypatch.setattr(patterns, "WORK", 0.1)
    assert "takes longer than 0.1 s" in schemas.error(PATTERNED, slow)
    for content, problem in (
        ({"name": "abc", "x-abc": "1"}, ""),
        ({"name": "ABC"}, "name: 'ABC' does not match '^([a-z]+)*$'"),
        ({"x-abc": 1}, "x-abc: 1 is not of type 'string'"),
        ({"y": 1}, "Additional properties are not allowed ('y' was unexpected)"),
    ):
        assert schemas.error(PATTERNED, content) == problem


@pytest.mark.parametrize("pattern", ["^(a|aa)+$", "(a|aa)" * 40 + "b", "^(?:a|aa)+$", "a{0,30}" + "a" * 30 + "b"])
def test_patterns_that_look_simple_are_bounded_too(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "WORK", 0.1)
    schema = {"properties": {"name": {"pattern": pattern}}}
    began = time.thread_time()
    assert schemas.error(schema, {"name": "a" * 60 + "!"})
    assert time.thread_time() - began < 0.5


def test_others_are_served_while_a_pattern_runs() -> None:
    """The pattern of one tenant does not hold the searches of other users."""
    other = {"properties": {"name": {"pattern": "^([a-z]+-)+[a-z]+$"}}}
    found: list[str] = []
    with patterns.SEARCHES.bounded():  # as long as a tenant's pattern takes
        user = threading.Thread(target=lambda: found.append(schemas.error(other, {"name": "a-b"})))
        user.start()
        user.join(60)
        assert found == [""]


def test_a_number_too_large_for_arithmetic_is_an_error() -> None:
    assert "too large" in schemas.error({"multipleOf": 0.5}, 10**400)


def test_the_output_of_a_template_is_bounded() -> None:
    doubled = '<#assign a="${a}${a}"/>' * 60
    with pytest.raises(payload.TemplateError, match="makes more than 8,388,608 characters"):
        payload.rendered(f'<#assign a="xx"/>{doubled}${{a}}', {"arguments": {}, "entity": {}})
    with pytest.raises(payload.TemplateError, match="is not supported"):
        payload.check("${" + " " * 500_000 + "}")


COUNTED = """
import pathlib, sqlite3, time

def hold(entity, arguments, context):
    here = pathlib.Path(entity["title"])
    with here.open("a") as stream:
        stream.write("x")
    store = sqlite3.connect(here.with_name("store.db"), isolation_level=None)
    store.execute("BEGIN IMMEDIATE")
    context.update(50, "half of it")
    time.sleep(0.3)
    store.close()
    return "done"
"""


def test_a_locked_store_does_not_interrupt_a_behavior(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its progress is stored later. The behavior is neither ended nor run again."""
    monkeypatch.setattr(sqlite, "BUSY", 0.05)  # seconds: stores that are opened now give up soon
    sites = Sites(tmp_path, ())
    try:
        sites.write("behaviors/doing.py", COUNTED)
        sites.behavior("hold", {"type": "Function", "id": "doing:hold"})
        sites.type("hold", PostCreate=behavior("hold"))
        body = {"name": "x", "entity": {"title": str(tmp_path / "ran")}}
        task = sites.calls.create_entity(ME, "urn:vcloud:type:acme:hold:1.0.0", body)
        ended = Worker(sites.calls, project.find(tmp_path)).finish(task.id, 20, ME)
        assert (ended.status, ended.result) == ("success", "done")
        assert ended.reported.details == "half of it"
        assert (tmp_path / "ran").read_text() == "x"
    finally:
        sites.close()


def test_too_long_file_names_count_as_missing_files(tmp_path: Path) -> None:
    (tmp_path / "behaviors").mkdir()
    here = project.find(tmp_path)
    for kind, id in (("Function", f"{'m' * 300}:run"), ("Playbook", f"{'p' * 300}.yml")):
        (found,) = behaviors.check({"type": kind, "id": id}, here)
        assert " does not exist" in found


LEAVING = """
import pathlib, subprocess, time

def run(entity, arguments, context):
    left = subprocess.Popen(["sleep", "300"], start_new_session=True)
    pathlib.Path("left.new").write_text(str(left.pid))
    pathlib.Path("left.new").rename("left")
    time.sleep(300)
"""
ASKER = """
import json, pathlib, sys, threading
from statecfg.entities import processes
processes.run(json.loads(sys.argv[1]), pathlib.Path.cwd(), 60, threading.Event(), print)
"""


def test_processes_of_a_behavior_end_with_a_killed_server(tmp_path: Path) -> None:
    (tmp_path / "behaviors").mkdir()
    (tmp_path / "behaviors/leaving.py").write_text(LEAVING)
    keys = ("entity_id", "entity_name", "type_id", "hook", "user", "task_id", "invocation_id", "token")
    context = {**dict.fromkeys(keys, ""), "metadata": {}, "properties": {}}
    asked = {"do": "function", "root": str(tmp_path), "id": "leaving:run", "entity": {}, "arguments": {}}
    asker = subprocess.Popen(
        [sys.executable, "-c", ASKER, json.dumps({**asked, "context": context})],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(processes.__file__).parent.parent.parent)},
        start_new_session=True,
    )
    try:
        there = tmp_path / "left"
        hosts.wait_until(there.exists, 20, "the function to start")
        left = int(there.read_text())
    finally:
        asker.kill()
        asker.wait()
    try:
        hosts.wait_until(lambda: not hosts.alive(left), 20, "the processes of the function to end")
    except TimeoutError:
        os.kill(left, signal.SIGKILL)
        raise
