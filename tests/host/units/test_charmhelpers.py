"""The charmhelpers package of PyPI, in a hook with our tools, returns what it returned in juju's hooks."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from statecfg.remote.units import hooks as unit_hooks
from tests import ROOT
from tests.host.units.tool_scene import Scene

RECORDS = yaml.safe_load((Path(__file__).parent / "charmhelpers.yml").read_text())
PAGE = ROOT / "docs" / "services-tools.md"
SETTINGS = {"host": "10.0.0.1", "private-address": "10.0.0.1"}
UNITS = ("mysql/0", "wordpress/0", "wordpress/1")
METADATA = """
name: mysql
provides: {db: {interface: mysql}, site: {interface: http}}
peers: {cluster: {interface: mysql-cluster}}
"""
# The hook's program: it makes the calls listed in a file, each with empty caches, and writes down the results.
PROGRAM = """import json
from charmhelpers.core import hookenv

names = dict(vars(hookenv), local=hookenv.local_unit(), env=hookenv.execution_environment)
names["execution_environment"] = lambda: {
    key: value if isinstance(value, str) else str(value) for key, value in names["env"]().items() if key != "env"
}
returned = []
for call in json.load(open("calls")):
    hookenv.cache.clear()
    hookenv._cache_config = None
    try:
        returned.append(eval(call, names))
    except Exception as problem:
        returned.append("%s: %s" % (type(problem).__name__, problem))
json.dump(returned, open("returned", "w"))
"""
# Other calls that charms make. They run in the same hook, after the recorded calls.
MORE: dict[str, Any] = {
    "relation_set('db:1', {'n': 80, 'gone': None, 'text': 'a: b\\n c \\'é\\'', 'x': ''})": None,
    "relation_get(unit=local, rid='db:1')": {**SETTINGS, "n": "80", "text": "a: b\n c 'é'"},
    "relation_clear('db:1')": None,
    "relation_get(unit=local, rid='db:1')  # afterwards": {"private-address": "10.0.0.1"},
    "relation_get('host', 'wordpress/1', 'db:1')": "10.0.0.1",
    "relation_get(app='wordpress')": None,
    "opened_ports()": ["80/tcp", "53/udp"],
    "close_port(80)": None,
    "open_ports(1, 2, 'UDP')": None,
    "open_port('ICMP'.lower(), 'ICMP')": None,
    "opened_ports()  # afterwards": ["53/udp", "1-2/udp", "icmp"],
    "status_get()": ["active", "ready"],
    "status_set('blocked', 'of the whole service', application=True)": None,
    "is_leader()": True,
    "leader_set({'a': 1}, k=None)": None,
    "leader_get()": {"a": "1"},
    "application_version_set('9.5')": None,
    "config()": {"title": "My Title", "skill-level": 9001, "outlook": None},
    "config().changed('title')": True,
    "is_relation_made('db', 'host')": True,
    "egress_subnets('db:0', 'wordpress/0')": ["10.0.0.1/32"],
    "relation_types()": ["db", "site", "cluster"],
    "add_metric('a=1')": None,
    "action_fail('it')": "CalledProcessError: Command '['action-fail', 'it']' returned non-zero exit status 1.",
    "in_relation_hook()": True,
    "remote_unit()": "wordpress/0",
    "charm_name()": "mysql",
}


@pytest.fixture(scope="module")
def hook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Scene, list[Any]]]:
    """Run the hook. Give the scene after the hook and the results of the calls."""
    place = tmp_path_factory.mktemp("place")
    charm = place / "charm"
    (charm / "hooks").mkdir(parents=True)
    (charm / "metadata.yaml").write_text(METADATA)
    (charm / "calls").write_text(json.dumps([*(record["call"] for record in RECORDS), *MORE]))
    path = charm / "hooks" / "db-relation-changed"
    path.write_text(f"#!{sys.executable}\n{PROGRAM}")
    path.chmod(0o755)
    scene = Scene(
        place,
        settings={(relation, unit): SETTINGS for relation in ("db:0", "db:1") for unit in UNITS},
        config={"title": "My Title", "skill-level": 9001, "outlook": None},
        leader={"k": "v"},
        addresses={"private-address": "10.0.0.9", "public-address": "10.0.0.9"},
    )
    environment = unit_hooks.environment(scene.context.step, str(charm), scene.tools, scene.agent.path, scene.token)
    run = unit_hooks.Hook(str(path), str(charm), "db-relation-changed", 120, scene.context.log)
    try:
        failed = run.run(environment, lambda pid: None, lambda: None)
        assert failed == "", scene.said
        yield scene, json.loads((charm / "returned").read_text())
    finally:
        scene.close()


def values(returned: dict[str, str]) -> dict[str, Any]:
    """Return the result of `execution_environment`, parsed from the recorded representations."""
    found: dict[str, Any] = {name: ast.literal_eval(returned[name]) for name in ("conf", "rel")}
    # The record of the relations is cut off after the settings of mysql/0.
    first = returned["rels"][len("{'db': {'db:0': {'mysql/0': ") :].partition("}")[0] + "}"
    assert returned["rels"].startswith("{'db': {'db:0': {'mysql/0': ")
    return {**returned, **found, "rels": ast.literal_eval(first)}


@pytest.mark.parametrize("number", range(len(RECORDS)), ids=lambda number: RECORDS[number]["call"])
def test_recorded_calls_return_the_recorded_values(number: int, hook: tuple[Scene, list[Any]]) -> None:
    record, returned = RECORDS[number], hook[1][number]
    if record["call"] == "execution_environment()":
        assert values(returned) == values(record["returned"])
        return
    assert returned == record.get("here", record["returned"])
    if "here" in record:
        assert record["here"] != record["returned"]
        assert f"\n| {record['why']} |" in PAGE.read_text()


@pytest.mark.parametrize("number", range(len(MORE)), ids=lambda number: list(MORE)[number])
def test_other_calls_return_the_expected_values(number: int, hook: tuple[Scene, list[Any]]) -> None:
    assert hook[1][len(RECORDS) + number] == list(MORE.values())[number]


def test_the_hook_leaves_the_expected_log_ports_and_settings(hook: tuple[Scene, list[Any]]) -> None:
    scene, _ = hook
    logged = [(said["level"], said["text"]) for said in scene.said if said.get("type") == "unit-log"]
    assert [line for line in logged if line[1] in ("hi", "{'a': 1}", "m")] == [
        (20, "hi"),
        (10, "hi"),
        (40, "{'a': 1}"),
        (20, "m"),
    ]
    assert (20, "status-set failed: blocked of the whole service") in logged
    assert (20, "add-metric failed: a=1") in logged
    ports = [(said["open"], said["port"]) for said in scene.said if said.get("type") == "unit-port"]
    assert ports[:4] == [(True, "80/tcp"), (True, "53/udp"), (True, "1000-2000/tcp"), (False, "1000-2000/tcp")]
    changes = scene.changes()
    assert changes["relations"] == {"db:1": {"set": {}, "delete": ["host"]}}
    assert changes["leader"] == {"set": {"a": "1"}, "delete": ["k"]}
