"""Behaviors of each kind: noop, functions of the project, and playbooks; and errors in their definitions."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest

from statecfg.entities import behaviors
from statecfg.entities.invocation import BehaviorResult
from statecfg.playbook import project
from statecfg.store import hosts, opened, runs
from tests.host.command import reach
from tests.host.entities.invoking import TOKEN, UUID, Site, invocation, message
from tests.lab import Host, processes

FUNCTIONS = """
import os, subprocess, sys, time
from helping import double

def create(entity, arguments, context):
    context.update(40, "half way")
    print("making", entity["name"])
    print("warned", file=sys.stderr)
    return {"twice": double(entity["size"]), "given": arguments, "who": context.user, "hook": context.hook}

def told(entity, arguments, context):
    return [context.entity_id, context.entity_name, context.type_id, context.metadata, context.token is not None]

def secret(entity, arguments, context):
    print("the password is", context.properties["_secure_password"])
    context.update(text=context.properties["_secure_password"])
    found = [open(f"/proc/{pid}/{name}", "rb").read() for pid in (os.getpid(), os.getppid())
             for name in ("environ", "cmdline")]
    if any(context.properties["_secure_password"].encode() in each for each in found):
        return "seen"
    raise RuntimeError("can't log in with " + context.properties["_secure_password"])

def no_json(entity, arguments, context):
    return {1, 2}

def leave(entity, arguments, context):
    sys.exit(3)

def killed(entity, arguments, context):
    os.kill(os.getpid(), 9)

def too_far(entity, arguments, context):
    context.update(101)

def chatty(entity, arguments, context):
    for number in range(20000):
        print("line", number)

def answers(entity, arguments, context):
    os.write(1, b'{"answer": {"ok": true, "result": "forged"}}\\n')
    return sys.stdin.read()

def slow(entity, arguments, context):
    child = subprocess.Popen(["setsid", "sleep", "60"])
    open(entity["note"], "w").write(f"{os.getpid()} {child.pid}")
    time.sleep(60)
"""
PLAYBOOK = """
hosts: all
vars: {shared: false}
resources:
  - directory: "{{ entity.root }}"
  - file: "{{ entity.root }}/{{ entity_name }}.txt"
    content: "{{ entity.title }} {{ arguments.get('note', 'plain') }}"
    requires: ["directory:{{ entity.root }}"]
  - file: "{{ entity.root }}/{{ entity_name }}.extra"
    content: more
    when: entity.extra
    requires: ["directory:{{ entity.root }}"]
"""
PROVIDE = {"type": "Playbook", "id": "playbooks/site.yml"}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    found = Site(tmp_path)
    found.write("statecfg.toml", 'name = "shop"\n')
    found.write("behaviors/sites.py", FUNCTIONS)
    found.write("behaviors/helping.py", "def double(number):\n    return 2 * number\n")
    found.write("playbooks/site.yml", PLAYBOOK)
    return found


@pytest.fixture
def hosted(site: Site, light_host: Host) -> Site:
    """Give the project an inventory: a host named light1."""
    reach(site.root, [light_host])
    site.write("statecfg.toml", 'name = "shop"\nssh_config = "ssh_config"\n')
    return site


ASTRAY = """\
import logging, os

def go(entity, arguments, context):
    print("in", os.getcwd())
    try:
        open(os.path.join(os.getcwd(), "missing"))
    except OSError:
        logging.exception("no file")
        raise
"""


def function(name: str, **properties: object) -> dict[str, object]:
    return {"type": "Function", "id": f"sites:{name}", "execution_properties": properties}


# noop


def test_noop_returns_its_invocation_or_the_configured_value(site: Site) -> None:
    asked = invocation({"type": "noop"}, {"foo": 1}, arguments={"x": 7})
    assert site.run(asked).result == {
        "arguments": {"x": 7}, "entityId": asked.entity.id, "typeId": asked.entity.type, "entity": {"foo": 1}
    }  # fmt: skip
    value = {"type": "noop", "execution_properties": {"returnValue": [1, None]}}
    assert site.run(invocation(value)) == BehaviorResult(True, [1, None])
    error = {"majorErrorCode": 404, "minorErrorCode": "GONE", "message": "gone"}
    assert site.run(invocation({"type": "noop", "execution_properties": {"returnError": error}})).error == error


def test_unsupported_kinds_of_behaviors_end_in_an_error(site: Site) -> None:
    for kind in ("Activity", "MQTT"):
        found = site.run(invocation({"type": kind, "id": "x"}))
        assert found.error is not None and found.error["minorErrorCode"] == "RDE_BEHAVIOR_EXECUTION_UNSUPPORTED"
        assert f"'{kind}'" in message(found)


# Functions


def test_a_function_returns_json_and_reports_progress(site: Site) -> None:
    asked = invocation(function("create"), {"name": "blog", "size": 21}, arguments={"a": [1]}, hook="PostCreate")
    assert site.run(asked).result == {"twice": 42, "given": {"a": [1]}, "who": "alice", "hook": "PostCreate"}
    assert {"progress": 40, "details": "half way"} in site.news
    assert site.details().splitlines()[0] == "half way"
    assert {"making blog", "warned"} <= set(site.details().splitlines())


def test_a_function_receives_the_context_of_its_invocation(site: Site) -> None:
    asked = invocation(function("told", actAsToken=True), metadata={"k": "v"})
    assert site.run(asked).result == [asked.entity.id, "site1", asked.entity.type, {"k": "v"}, True]


def test_secrets_of_a_behavior_are_never_shown(site: Site) -> None:
    found = site.run(invocation(function("secret", _secure_password="hunter2hunter2")))
    assert message(found) == "can't log in with <secret _secure_password>"
    assert "hunter2" not in json.dumps(site.news) and "<secret _secure_password>" in site.details()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_json", "sites:no_json returned something that is not JSON: Object of type set is not JSON serializable"),
        ("leave", "it exits the program (exit status 3)"),
        ("killed", "sites:killed: it was ended by signal 9"),
        ("too_far", "progress is a number from 0 to 100, not 101"),
        ("creat", "behaviors/sites.py does not define a function creat; did you mean `create`?"),
    ],
)
def test_a_failing_function_gives_an_error_message(site: Site, name: str, said: str) -> None:
    assert message(site.run(invocation(function(name), {"name": "x", "size": 1}))).startswith(said)


def test_an_error_names_the_line_that_raised_it(site: Site) -> None:
    found = site.run(invocation(function("create"), {"name": "x"}))
    assert message(found) == "'size'"
    line = FUNCTIONS.splitlines().index(next(line for line in FUNCTIONS.splitlines() if "double(entity" in line)) + 1
    assert f"KeyError\nat behaviors/sites.py:{line} in create" in site.details()


def test_users_never_see_the_path_of_the_project(site: Site) -> None:
    site.write("behaviors/astray.py", ASTRAY)
    found = site.run(invocation({"type": "Function", "id": "astray:go"}))
    assert found.public == "[Errno 2] No such file or directory: 'missing'"
    assert str(site.root) not in site.details() and 'File "behaviors/astray.py", line' in site.details()
    assert f"{site.root}/behaviors/astray.py" in site.log() and "in the project" in site.details()


def test_users_never_see_directories_outside_the_project(site: Site) -> None:
    site.write("behaviors/outside.py", "def go(entity, arguments, context):\n    open('/etc/missing/secret.conf')\n")
    found = site.run(invocation({"type": "Function", "id": "outside:go"}))
    assert found.public == "[Errno 2] No such file or directory: '…/secret.conf'"
    assert "/etc/missing" not in site.details()


def test_output_of_a_function_is_bounded_and_not_its_result(site: Site) -> None:
    assert site.run(invocation(function("answers"))).result == ""
    assert site.run(invocation(function("chatty"))).ok
    assert len(site.details()) < 70_000 and site.details().endswith("line 19999")


def test_a_deadline_ends_a_function_and_its_child_processes(site: Site) -> None:
    note = site.root / "note"
    begun = time.monotonic()
    found = site.run(invocation(function("slow", invocation_timeout=3), {"note": str(note)}))
    assert message(found) == "sites:slow: it was still running after 3 s, and was stopped"
    assert time.monotonic() - begun < 30
    for pid in map(int, note.read_text().split()):
        processes.wait_until(lambda pid=pid: not processes.alive(pid), 20, f"process {pid} to end")


def test_a_function_ends_when_its_runner_is_killed(site: Site) -> None:
    note = site.root / "note"
    runner = os.fork()
    if runner == 0:
        site.begin(invocation(function("slow"), {"note": str(note)}), threading.Event())
        os._exit(0)
    processes.wait_until(lambda: note.exists() and len(note.read_text().split()) == 2, 60, "the function to start")
    child = int(note.read_text().split()[0])
    os.kill(runner, 9)
    os.waitpid(runner, 0)
    processes.wait_until(lambda: not processes.alive(child), 20, "the function to end")
    os.kill(int(note.read_text().split()[1]), 9)


def test_a_stopped_behavior_has_no_outcome(site: Site) -> None:
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    assert site.begin(invocation(function("slow"), {"note": str(site.root / "note")}), stop) is None


def test_a_world_writable_file_is_not_run(site: Site) -> None:
    (site.root / "behaviors/sites.py").chmod(0o666)
    assert "can be written by all users" in message(site.run(invocation(function("create"))))


# Playbooks


def test_a_playbook_creates_changes_and_removes_an_entity(hosted: Site, light_host: Host) -> None:
    root = light_host.path("/srv/www")
    entity = {"root": "/srv/www", "title": "Blog", "extra": True}
    found = hosted.run(invocation(PROVIDE, entity, hook="PostCreate", arguments={"note": "n"}))
    assert found.ok, found
    assert (root / "site1.txt").read_text() == "Blog n" and (root / "site1.extra").exists()
    (run,) = found.result["runs"]
    assert run["mode"] == "apply" and run["hosts"] == {"ok": 1}
    assert hosted.log().startswith(f"run {run['run']}: apply\n  light1: ok (")
    assert hosted.details().startswith(f"run {run['run']}: apply: hosts: 1 ok; resources: ")
    with opened(project.find(hosted.root), str(hosted.root / "store.db")) as store:
        (record,) = runs.recent(store)
        assert (record.id, record.playbook) == (run["run"], f"playbooks/site.yml#{UUID}1")
        assert hosts.every(store)[0].playbooks == [f"shop/playbooks/site.yml#{UUID}1"]

    # Another entity of the same playbook prunes nothing of the first.
    assert hosted.run(invocation(PROVIDE, {**entity, "title": "Two", "extra": False}, number=2, hook="PostCreate")).ok
    assert sorted(path.name for path in root.iterdir()) == ["site1.extra", "site1.txt", "site2.txt"]

    # An update changes the file and removes what left the definition.
    assert hosted.run(invocation(PROVIDE, {**entity, "title": "News", "extra": False}, hook="PostUpdate")).ok
    assert (root / "site1.txt").read_text() == "News plain" and not (root / "site1.extra").exists()

    # Deleting uses the records on the hosts, so it works although the playbook is broken now.
    (hosted.root / "playbooks/site.yml").write_text("hosts: nowhere\nresources: {{ broken\n")
    assert hosted.run(invocation(PROVIDE, {}, hook="PostDelete")).ok
    assert [path.name for path in root.iterdir()] == ["site2.txt"]
    again = hosted.run(invocation(PROVIDE, {}, hook="PreDelete"))
    assert again == BehaviorResult(True, {"runs": []})
    assert hosted.log() == hosted.details() == "nothing to do: no host has resources of this entity"
    destroy = {**PROVIDE, "execution_properties": {"destroy": True}}
    assert hosted.run(invocation(destroy, {}, number=2)).ok
    assert not root.exists()


def test_a_failed_playbook_gives_reasons_to_administrators_only(hosted: Site, light_host: Host) -> None:
    light_host.path("/srv/taken").write_text("a file\n")
    found = hosted.run(invocation(PROVIDE, {"root": "/srv/taken", "title": "x", "extra": False}, hook="PostCreate"))
    assert message(found).startswith("light1: failed: directory:/srv/taken: ")
    assert found.result["runs"][0]["hosts"] == {"failed": 1}
    assert found.public is not None and found.public.startswith("The playbook failed: run ")
    for text in (found.public, hosted.details(), str(found.result)):
        assert "light1" not in text and "/srv" not in text and str(hosted.root) not in text

    found = hosted.run(invocation(PROVIDE, {"root": "/srv/other", "extra": False}, hook="PostCreate"))
    assert "playbooks/site.yml:7:" in message(found) and "has no key `title`" in message(found)
    assert found.public is not None and "[SC0" in found.public and "site.yml" not in found.public
    assert not light_host.path("/srv/other").exists()


def test_a_limit_may_be_a_template_of_the_entity(hosted: Site) -> None:
    limited = {**PROVIDE, "execution_properties": {"limit": "{{ entity.host }}"}}
    entity = {"root": "/srv/limited", "title": "x", "extra": False}
    assert hosted.run(invocation(limited, {**entity, "host": "light1"}, hook="PostCreate")).ok
    assert "`nowhere`" in message(hosted.run(invocation(limited, {**entity, "host": "nowhere"}, hook="PostUpdate")))
    assert "gives '' for this entity" in message(hosted.run(invocation(limited, {**entity, "host": ""})))


def test_a_playbook_reaches_only_the_hosts_its_behavior_declares(hosted: Site, light_host: Host) -> None:
    inventory = hosted.root / "inventory.yml"
    inventory.write_text(inventory.read_text().rstrip() + "\n  secret-db: {address: 192.0.2.1}\n")
    bounded = {**PROVIDE, "execution_properties": {"limit": "{{ entity.host }}", "hosts": "light*"}}
    entity = {"root": "/srv/bounded", "title": "x", "extra": False}
    assert hosted.run(invocation(bounded, {**entity, "host": "light1"}, hook="PostCreate")).ok
    for limit in ("secret-db", "all"):
        found = hosted.run(invocation(bounded, {**entity, "host": limit}, hook="PostUpdate", number=3))
        assert "the behavior may reach `light*`, and the playbook selects secret-db" in message(found)
        assert found.public is not None and "secret-db" not in found.public and "host not allowed" in found.public
    assert sorted(path.name for path in light_host.path("/srv/bounded").iterdir()) == ["site1.txt"]


@pytest.mark.parametrize(
    ("selected", "properties", "said"),
    [
        ("crown_jewls", {}, "did you mean `crown_jewels`?"),
        ("all", {"limit": "{{ entity.host }}", "hosts": "all"}, "did you mean `crown_jewels`?"),
        ("web1", {"hosts": "crown_jewels"}, "the behavior may reach `crown_jewels`"),
    ],
    ids=["playbook", "limit", "hosts"],
)
def test_only_administrators_see_the_names_of_groups(
    site: Site, selected: str, properties: dict[str, str], said: str
) -> None:
    site.write("inventory.yml", "hosts: {web1: {}, db1: {}}\ngroups: {crown_jewels: {hosts: [db1]}}\n")
    site.write("playbooks/site.yml", f"hosts: {selected}\nresources: []\n")
    provide = {**PROVIDE, "execution_properties": properties}
    found = site.run(invocation(provide, {"host": "crown_jewls"}, hook="PostCreate"))
    assert said in message(found)
    assert found.public is not None and found.public.startswith("The playbook cannot be used with this entity: ")
    for text in (found.public, site.details(), str(found.result)):
        assert "crown_jew" not in text and "db1" not in text


def test_a_functions_public_error_hides_the_project_path(site: Site) -> None:
    site.write("behaviors/paths.py", "def fails(entity, arguments, context):\n    open(__file__ + 'x')\n")
    found = site.run(invocation(function("fails") | {"id": "paths:fails"}))
    assert str(site.root) in message(found)
    assert found.public is not None and str(site.root) not in found.public and "behaviors/paths.py" in found.public


def test_a_playbook_with_services_is_refused(site: Site) -> None:
    site.write("charms/db/hooks/install", "#!/bin/sh\n")
    (site.root / "charms/db/hooks/install").chmod(0o755)
    site.write("playbooks/site.yml", '- service: db\n  hosts: "@local"\n  charm: ../charms/db\n')
    assert "playbooks/site.yml declares services" in message(site.run(invocation(PROVIDE, {}, hook="PostCreate")))


# Definitions


@pytest.mark.parametrize(
    ("execution", "said"),
    [
        ({"type": "Function", "id": "sites"}, "the id of a Function is MODULE:FUNCTION"),
        ({"type": "Function", "id": "site:create"}, "behaviors/site.py does not exist; did you mean `sites`?"),
        ({"type": "Function", "id": "../sites:create"}, "the id of a Function is MODULE:FUNCTION"),
        ({"type": "Playbook", "id": "playbooks/sites.yml"}, "did you mean `playbooks/site.yml`?"),
        ({"type": "Playbook", "id": "../site.yml"}, "'../site.yml' is outside the project"),
        ({"type": "Playbook", "id": "playbooks/site"}, "the id of a Playbook is the path of one in the project"),
        ({**PROVIDE, "execution_properties": {"limits": "x"}}, "did you mean `limit`?"),
        ({**PROVIDE, "execution_properties": {"destroy": "yes"}}, "it must be true or false"),
        ({**PROVIDE, "execution_properties": {"invocation_timeout": 0}}, "a number of seconds from 1 to 604800"),
        ({"type": "noop", "execution_properties": []}, "execution_properties is not an object"),
        ({"type": "noop", "selectable": "yes"}, "it must be true or false"),
        ({**PROVIDE, "execution_properties": {"hosts": "{{ entity.host }}"}}, "hosts must not be a template"),
        ({**PROVIDE, "execution_properties": {"hosts": " "}}, "hosts is empty"),
    ],
)
def test_a_wrong_behavior_definition_is_refused(site: Site, execution: dict[str, object], said: str) -> None:
    (found,) = behaviors.check(execution, project.find(site.root))
    assert said in found


def test_right_behavior_definitions_are_accepted(site: Site) -> None:
    place = project.find(site.root)
    for execution in (PROVIDE, function("create"), {"type": "noop"}, {"type": "Activity", "id": "x"}, {"type": "MQTT"}):
        assert behaviors.check(execution, place) == []
    assert TOKEN not in json.dumps(behaviors.check(PROVIDE, place))
