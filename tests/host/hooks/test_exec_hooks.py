"""The engine of exec hooks: what it queues, what a program reads, and what it stores of the result."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from statecfg.hooks.exec.call import MOST
from statecfg.hooks.exec.engine import HookEngine
from statecfg.hooks.exec.types import HookTypes
from statecfg.hooks.registration.model import ExecHook, Registration
from statecfg.problems import InvalidInput
from statecfg.remote.graph.events import HostEvent
from statecfg.remote.hooks.run import RUNNING
from statecfg.store import Busy, hosts, locks
from statecfg.store.connection import Connection
from statecfg.store.database import Store
from statecfg.store.hooks import log as hook_log
from statecfg.store.hooks import objects as hook_objects
from statecfg.store.hooks import queue
from statecfg.store.hooks.records import Spec
from tests.host.hooks.exec.workshop import BOOTED, BOUND, COUNTER, Workshop
from tests.lab import processes

ECHO = "#!/bin/sh\nprintf '{\"output\": '; cat; echo }\n"
QUIET = "#!/bin/sh\nexit 0\n"


@pytest.fixture
def shop(store: Store, tmp_path: Path) -> Workshop:
    return Workshop(store, tmp_path / "hooks")


def seen(shop: Workshop) -> Any:
    """Return the input that the last ECHO program read."""
    return shop.entries()[-1][1]["msg"]


def test_an_event_calls_its_hooks_in_order(shop: Workshop) -> None:
    shop.simple("first", ECHO)
    shop.simple("second", ECHO)
    shop.simple("other", ECHO, BOUND)
    places = shop.engine.trigger(BOOTED, shop.host)
    assert len(places) == queue.waiting(shop.store) == 2
    assert shop.entries() == []
    done = shop.engine.drain()
    assert [(item.id, item.hook.name) for item, _ in done] == list(zip(places, ["first", "second"], strict=True))
    assert queue.waiting(shop.store) == 0
    assert [entry["msg"]["hook"]["name"] for _, entry in shop.entries()] == ["first", "second"]
    assert [event.invocation for event in hook_log.events(shop.store, invocations=places)] == places[::-1]


def test_an_event_without_a_hook_queues_nothing(shop: Workshop) -> None:
    shop.simple("other", ECHO, BOUND)
    assert shop.engine.trigger(BOOTED, shop.host) == []
    assert (shop.engine.drain(), shop.entries()) == ([], [])


def test_a_program_reads_the_node_the_hook_and_the_policy(shop: Workshop) -> None:
    facts = {"hostname": "web1.example", "serialnumber": "ABC1", "uuid": "U-1", "macaddress": "52:54:00:AA:00:01"}
    hosts.check_in(shop.store, "web1", facts, "", "boot")
    hosts.bind(shop.store, "web1", "playbooks/web.yml")
    hosts.bind(shop.store, "web2", "playbooks/web.yml")
    hosts.set_metadata(shop.store, "web1", {"m": {"deep": [1, None]}})
    host = hosts.get(shop.store, "web1")
    assert host is not None
    made = shop.simple("h", ECHO, schema="counter: {default: 4}")
    shop.engine.trigger(BOOTED, host)
    shop.engine.drain()
    found = seen(shop)
    assert list(found) == ["node", "hook", "policy"]
    checked_in = found["node"].pop("last_checkin")
    assert checked_in.startswith("20")
    assert checked_in.endswith("+00:00")
    assert found == {
        "node": {
            "id": host.id,
            "name": "web1",
            "hw_info": {"mac": ["52-54-00-aa-00-01"], "serial": "abc1", "uuid": "u-1"},
            "tags": ["blue"],
            "facts": facts,
            "state": {"installed": False},
            "hostname": "web1.example",
            "metadata": {"m": {"deep": [1, None]}},
        },
        "hook": {"id": made.id, "name": "h", "type": "h", "configuration": {"counter": 4}, "cause": BOOTED},
        "policy": {
            "id": "playbooks/web.yml",
            "name": "playbooks/web.yml",
            "enabled": True,
            "tags": [],
            "nodes": {"count": 2},
        },
    }


def test_the_policy_is_the_given_installed_or_first_bound_one(shop: Workshop) -> None:
    shop.simple("h", ECHO)
    shop.engine.run("h", BOOTED, shop.host)
    assert seen(shop)["policy"] is None
    for name in ("b.yml", "a.yml", "c.yml"):
        hosts.bind(shop.store, "web1", name)
    for expected, given in (("a.yml", None), ("z.yml", "z.yml")):
        shop.engine.run("h", BOOTED, _host(shop), given)
        assert seen(shop)["policy"]["name"] == expected
    with shop.store.transaction() as connection:
        hosts.installed_in(connection, shop.store.project, "web1", "c.yml")
    shop.engine.run("h", BOOTED, _host(shop))
    assert seen(shop)["policy"]["name"] == "c.yml"
    assert seen(shop)["node"]["state"]["installed"] == "c.yml"


def _host(shop: Workshop) -> hosts.HostRecord:
    found = hosts.get(shop.store, "web1")
    assert found is not None
    return found


def test_a_program_sees_changes_made_after_the_event(shop: Workshop) -> None:
    shop.simple("h", ECHO, schema="a: {default: 1}")
    hosts.bind(shop.store, "web1", "p.yml")
    shop.engine.trigger(BOOTED, _host(shop))
    hosts.set_metadata(shop.store, "web1", {"new": True})
    hosts.bind(shop.store, "web2", "p.yml")
    hook_objects.set_keys(shop.store, "h", {"a": 2}, {"a": {}})
    shop.engine.drain()
    found = seen(shop)
    assert found["node"]["metadata"] == {"new": True}
    assert found["hook"]["configuration"] == {"a": 2}
    assert found["policy"]["nodes"] == {"count": 2}


def test_a_program_sees_a_forgotten_host_as_it_was(shop: Workshop) -> None:
    update = '{"node": {"metadata": {"update": {"x": 1}}}}'
    shop.simple("echo", ECHO)
    shop.simple("writes", f"#!/bin/sh\necho '{update}'\n")
    hosts.set_metadata(shop.store, "web1", {"old": 1})
    shop.engine.trigger(BOOTED, _host(shop))
    hosts.forget(shop.store, "web1")
    hosts.tag(shop.store, "web1", ["another host of that name"])
    shop.engine.drain()
    assert shop.entries()[0][1]["msg"]["node"]["metadata"] == {"old": 1}
    assert [event.host for event in hook_log.events(shop.store)] == [None, None]
    assert shop.metadata() == {}
    assert [severity for severity, _ in shop.entries()] == ["info", "info"]


def test_node_deleted_passes_the_deleted_host_to_the_program(shop: Workshop) -> None:
    shop.simple("h", ECHO, "node-deleted")
    gone = hosts.forget(shop.store, "web1")
    assert gone is not None
    shop.engine.trigger("node-deleted", gone)
    shop.engine.drain()
    assert seen(shop)["node"]["tags"] == ["blue"]


def test_a_deleted_hook_does_not_run_but_keeps_its_log(shop: Workshop) -> None:
    shop.simple("h", ECHO)
    shop.engine.run("h", BOOTED, shop.host)
    shop.engine.trigger(BOOTED, shop.host)
    assert hook_objects.remove(shop.store, "H") == "hook H destroyed"
    assert hook_objects.remove(shop.store, "h") == "no changes; hook h does not exist"
    assert shop.engine.drain() == []
    (left,) = hook_log.events(shop.store)
    assert left.hook is None


def test_a_non_executable_program_is_logged_as_a_warning(shop: Workshop) -> None:
    folder = shop.type("h", **{BOOTED: "#!/bin/sh\ntouch ran\n"})
    (folder / BOOTED).chmod(0o644)
    shop.hook("h", "h")
    assert shop.engine.trigger(BOOTED, shop.host) == []
    entry = {"event": BOOTED, "msg": f"file {folder / BOOTED} is not executable"}
    assert shop.entries() == [("warn", entry)]
    assert not (folder / "ran").exists()


def test_trigger_reports_non_executable_programs_to_its_caller(shop: Workshop) -> None:
    folder = shop.type("h", **{BOOTED: "#!/bin/sh\n"})
    (folder / BOOTED).chmod(0o644)
    shop.hook("h", "h")
    told: list[tuple[str, Any]] = []
    shop.engine.trigger(BOOTED, shop.host, refused=lambda hook, judged: told.append((hook.name, judged.entry["msg"])))
    assert told == [("h", f"file {folder / BOOTED} is not executable")]


def test_an_event_and_its_change_are_stored_in_one_transaction(shop: Workshop) -> None:
    unbound = "node-unbound-from-policy"
    shop.simple("h", ECHO, unbound)
    for name in ("web1", "web2"):
        hosts.bind(shop.store, name, "p.yml")
        with shop.store.transaction() as connection:
            hosts.installed_in(connection, shop.store.project, name, "p.yml")

    def unbind(connection: Connection) -> None:
        hosts.unbind_in(connection, shop.store.project, "web1", "p.yml")

    def breaks(connection: Connection) -> None:
        unbind(connection)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        shop.engine.trigger(unbound, _host(shop), "p.yml", breaks)
    assert (queue.waiting(shop.store), _host(shop).installed) == (0, "p.yml")
    shop.engine.trigger(unbound, _host(shop), "p.yml", unbind)
    assert (queue.waiting(shop.store), _host(shop).installed, _host(shop).playbooks) == (1, None, [])
    shop.engine.drain()
    found = seen(shop)
    assert found["policy"] == {"id": "p.yml", "name": "p.yml", "enabled": True, "tags": [], "nodes": {"count": 1}}
    assert found["node"]["state"] == {"installed": False}


def test_a_missing_interpreter_is_logged_as_an_error(shop: Workshop) -> None:
    shop.simple("test", "#! /something/that/does/not/exist\n")
    shop.engine.trigger(BOOTED, shop.host)
    shop.engine.drain()
    ((severity, entry),) = shop.entries()
    assert (severity, entry["exit_status"]) == ("error", 127)
    assert "test.hook/node-booted" in entry["error"]


def test_an_unusable_hook_type_is_logged_as_an_error(shop: Workshop) -> None:
    folder = shop.type("h", **{BOOTED: QUIET})
    shop.hook("h", "h")
    shop.engine.trigger(BOOTED, shop.host)
    (folder / BOOTED).unlink()
    shop.engine.drain()
    (folder / "configuration.yaml").write_text("[")
    shop.engine.trigger(BOOTED, shop.host)
    (folder / "configuration.yaml").unlink()
    folder.chmod(0o777)
    shop.engine.trigger(BOOTED, shop.host)
    folder.rmdir()
    shop.engine.trigger(BOOTED, shop.host)
    said = [(severity, entry["error"].split(":")[0]) for severity, entry in shop.entries()]
    assert said == [
        ("error", "the hook type h no longer has the program node-booted"),
        ("error", "not YAML"),
        ("error", "others could change this"),
        ("error", "unknown hook type"),
    ]
    assert queue.waiting(shop.store) == 0


def test_a_program_that_hangs_is_an_error_and_changes_nothing(shop: Workshop) -> None:
    script = '#!/bin/sh\necho \'{"hook": {"configuration": {"update": {"a": 2}}}}\'\nexec >&- 2>&-\nsleep 1000\n'
    shop.type("h", "a: {default: 1}", **{BOOTED: script})
    shop.hook("h", "h", Spec(deadline="PT0.3S"))
    shop.engine.trigger(BOOTED, shop.host)
    shop.engine.drain()
    ((severity, entry),) = shop.entries()
    assert (severity, entry["error"]) == ("error", "still running after 0.3 s, stopped")
    assert shop.configuration("h") == {"a": 1}


def test_a_failed_program_is_not_run_again(shop: Workshop) -> None:
    folder = shop.type("h", **{BOOTED: "#!/bin/sh\necho x >>ran\necho '{\"hook\": null}'\nexit 1\n"})
    shop.hook("h", "h")
    shop.engine.trigger(BOOTED, shop.host)
    shop.engine.drain()
    shop.engine.drain()
    assert (folder / "ran").read_text() == "x\n"
    assert len(shop.entries()) == 1


def test_settings_changed_while_a_program_runs_are_kept(shop: Workshop) -> None:
    update = '{"hook": {"configuration": {"update": {"a": 2}}}}'
    script = f"#!/bin/sh\ntouch began; while [ ! -e go ]; do sleep 0.01; done; echo '{update}'\n"
    folder = shop.type("h", "a: {default: 1}\nb: {default: 1}", **{BOOTED: script})
    shop.hook("h", "h")
    shop.engine.trigger(BOOTED, shop.host)
    runs = threading.Thread(target=shop.engine.drain)
    runs.start()
    processes.wait_until((folder / "began").exists, 60, "the program to begin")
    hook_objects.set_keys(shop.store, "h", {"b": 5}, {"a": {}, "b": {}})
    (folder / "go").touch()
    runs.join(60)
    assert shop.configuration("h") == {"a": 2, "b": 5}


def test_run_calls_the_program_at_once(shop: Workshop) -> None:
    shop.simple("counter", COUNTER, schema="count: {default: 0}\nagain: {default: 0}")
    judged = shop.engine.run("Counter", BOOTED, shop.host)
    assert judged is not None
    assert shop.configuration("counter") == {"count": 1, "again": 1}
    assert shop.metadata() == {"count": 1}
    assert judged.entry["actions"].count("updating ") == 2
    assert set(judged.entry) == {"event", "exit_status", "actions"}
    judged = shop.engine.run("counter", BOOTED, shop.host, debug=True)
    assert judged is not None
    assert json.loads(judged.entry["input"])["hook"]["configuration"]["count"] == 1
    assert json.loads(judged.entry["output"])["hook"]["configuration"]["update"]["count"] == 2
    assert shop.entries()[-1][1] == judged.entry
    assert shop.engine.run("counter", BOUND, shop.host) is None


def test_run_refuses_an_unknown_hook_or_event(shop: Workshop) -> None:
    shop.simple("counter", QUIET)
    with pytest.raises(InvalidInput) as caught:
        shop.engine.run("conter", BOOTED, shop.host)
    assert (caught.value.problems[0].code, caught.value.problems[0].help) == ("SC0624", "did you mean `counter`?")
    with pytest.raises(InvalidInput) as caught:
        shop.engine.run("counter", "node-boted", shop.host)
    assert caught.value.problems[0].detail == f"event must refer to one of {', '.join(HostEvent.ALL)}"


def test_the_engine_stores_the_input_if_told_to(shop: Workshop) -> None:
    shop.simple("h", ECHO)
    engine = HookEngine(shop.store, HookTypes((shop.folder,)), keep=frozenset({"input"}))
    engine.trigger(BOOTED, shop.host)
    engine.drain()
    assert set(shop.entries()[0][1]) == {"event", "exit_status", "msg", "input"}


def test_a_hook_runs_only_for_its_hosts_and_events(shop: Workshop) -> None:
    shop.type("h", **{BOOTED: QUIET, BOUND: QUIET})
    for name, spec in {
        "all": Spec(),
        "here": Spec(hosts="web1"),
        "there": Spec(hosts="web2"),
        "glob": Spec(hosts="web*"),
        "bound": Spec(events=(BOUND,)),
    }.items():
        shop.hook(name, "h", spec)
    shop.engine.trigger(BOOTED, shop.host)
    assert [item.hook.name for item, _ in shop.engine.drain()] == ["all", "here", "glob"]
    shop.engine.trigger(BOUND, shop.host)
    assert [item.hook.name for item, _ in shop.engine.drain()] == ["all", "here", "glob", "bound"]


def test_resource_events_run_hooks_and_return_their_results(shop: Workshop) -> None:
    shop.simple("h", ECHO, "pre-reconcile")
    shop.simple("fails", "#!/bin/sh\nexit 3\n", "pre-reconcile")
    resource = {"name": "file:/etc/motd", "type": "file", "state": "RESOLVED", "playbook": "p.yml"}
    given = shop.engine.caller.hook_input(shop.host, "p.yml", resource)
    judged = shop.engine.resource("h", "pre-reconcile", given)
    assert judged is not None
    found = judged.entry["msg"]
    assert found["resource"] == resource
    assert (found["node"]["name"], found["policy"]["name"], found["hook"]["cause"]) == (
        "web1",
        "p.yml",
        "pre-reconcile",
    )
    failed = shop.engine.resource("fails", "pre-reconcile", given, 10)
    assert failed is not None
    assert (failed.severity, failed.sound, failed.entry["exit_status"]) == ("error", False, 3)
    (shop.folder / "h.hook" / "pre-reconcile").chmod(0o644)
    refused = shop.engine.resource("h", "pre-reconcile", given)
    assert refused is not None
    assert (refused.severity, refused.sound) == ("warn", False)
    assert shop.engine.resource("h", "post-create", given) is None
    assert [event.playbook for event in hook_log.events(shop.store)] == ["p.yml"] * 3


def test_inside_a_hook_events_are_queued_and_run_is_refused(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.simple("h", QUIET)
    monkeypatch.setenv(RUNNING, "outer")
    assert len(shop.engine.trigger(BOOTED, shop.host)) == 1
    assert shop.engine.drain() == []
    with pytest.raises(Busy, match="hooks run one at a time"):
        shop.engine.run("h", BOOTED, shop.host)
    monkeypatch.delenv(RUNNING)
    assert len(shop.engine.drain()) == 1


def test_invocations_not_begun_in_time_stay_queued(shop: Workshop) -> None:
    shop.simple("h", "#!/bin/sh\nsleep 0.2\n")
    for _ in range(5):
        shop.engine.trigger(BOOTED, shop.host)
    done = shop.engine.drain(0.3)
    assert 0 < len(done) < 5
    assert queue.waiting(shop.store) == 5 - len(done)
    assert len(shop.engine.drain()) == 5 - len(done)


def test_an_invocation_stays_queued_while_another_engine_runs(shop: Workshop) -> None:
    shop.simple("h", QUIET)
    shop.engine.trigger(BOOTED, shop.host)
    with locks.taken(shop.store, "hooks", 0):
        assert shop.engine.drain(0.2) == []
    assert queue.waiting(shop.store) == 1


def test_an_invocation_that_repeatedly_kills_its_engine_is_given_up(shop: Workshop) -> None:
    folder = shop.type("h", **{BOOTED: "#!/bin/sh\ntouch ran\n"})
    shop.hook("h", "h")
    (place,) = shop.engine.trigger(BOOTED, shop.host)
    for _ in range(MOST):  # begun but never finished
        shop.store.attempt(lambda connection: queue.begin(connection, place))
    shop.engine.drain()
    ((severity, entry),) = shop.entries()
    assert severity == "error"
    assert entry["error"] == f"abandoned: it was started {MOST} times, and each time the process that ran it was killed"
    assert (queue.waiting(shop.store), (folder / "ran").exists()) == (0, False)


def test_a_declared_hook_is_created_on_first_use(shop: Workshop) -> None:
    shop.type("counter", "count: {default: 0}", **{BOOTED: QUIET})
    declared = Registration("mine", (BOOTED,), exec=ExecHook("counter", {"count": 3}), deadline=2.5)
    made = shop.engine.hooks.adopt(declared, "alice")
    assert (made.configuration, made.spec.deadline, made.access) == ({"count": 3}, "PT2.5S", ("alice",))
    hook_objects.set_keys(shop.store, "mine", {"count": 9}, {"count": {}})
    assert shop.engine.hooks.adopt(declared, "bob").configuration == {"count": 9}
    shop.type("other")
    with pytest.raises(InvalidInput, match="SC0623"):
        shop.engine.hooks.adopt(Registration("mine", (), exec=ExecHook("other")), "alice")


def test_a_declared_hook_runs_only_for_its_project_and_events(shop: Workshop) -> None:
    shop.type("counter", "count: {default: 0}", **{BOOTED: QUIET, BOUND: QUIET})
    declared = Registration("Mine", (BOOTED,), exec=ExecHook("counter"))
    shop.engine.hooks.adopt(declared, "alice")
    other = HookEngine(shop.store, shop.engine.types)
    assert other.trigger(BOOTED, shop.host) == other.hooks.registrations() == []
    assert [each.name for each in other.hooks.registrations(["mine"])] == ["Mine"]
    assert len(shop.engine.trigger(BOOTED, shop.host)) == 1
    other.hooks.adopt(Registration("Mine", (BOUND,), exec=ExecHook("counter")), "alice")
    assert other.trigger(BOOTED, shop.host) == []
    assert len(other.trigger(BOUND, shop.host)) == 1


def test_registrations_contain_what_each_hook_specifies(shop: Workshop) -> None:
    shop.type("counter", "count: {default: 0}", **{BOOTED: QUIET, "post-create": QUIET, "stray": QUIET})
    shop.hook("late", "counter", Spec(order=200, types=("file",), on_failure="retry", where="host"))
    shop.hook("early", "counter", Spec(events=("post-create", BOUND), deadline="PT1M"))
    early, late = shop.engine.hooks.registrations()
    assert (early.name, early.events, early.deadline, early.full_control) == ("early", ("post-create",), 60.0, ("me",))
    assert (late.events, late.select.types, late.on_failure, late.where) == (
        (BOOTED, "post-create"),
        ("file",),
        "retry",
        "host",
    )
    shop.folder.joinpath("counter.hook").chmod(0o777)
    early, late = shop.engine.hooks.registrations()
    assert (early.events, late.events) == (("post-create", BOUND)[::-1], ())
    assert early.warnings[0].code == "SC0601"


def test_creating_a_hook_again_reports_the_fields_that_differ(shop: Workshop) -> None:
    shop.type("h", "a: {default: 1}")
    kind = shop.engine.types.find("h")

    def create(name: str, type: str = "h", spec: Spec | None = None, **given: Any) -> list[str]:
        made, differs = hook_objects.create(
            shop.store, name, type, str(kind.folder), kind.configured(given), spec or Spec(), "me"
        )
        assert made.name == "Hook"
        return differs

    assert create("Hook", spec=Spec(tags=("x",))) == []
    assert create("Hook", spec=Spec(tags=("x",)), a=1) == []
    assert create("hook", spec=Spec(tags=("x",))) == ["name"]
    assert create("Hook", spec=Spec(tags=("x",)), a=2) == ["configuration"]
    assert create("Hook", spec=Spec(tags=("x",)), a=True) == ["configuration"]
    assert create("HOOK", "other", Spec(order=1)) == ["name", "hook_type", "tags", "order"]


def test_setting_and_unsetting_keys_changes_the_configuration(shop: Workshop) -> None:
    schema: dict[str, dict[str, Any]] = {"a": {"default": 1}, "b": {}, "must": {"required": True}}
    shop.type("h", json.dumps(schema))
    shop.hook("h", "h", must=1)

    def set_keys(**values: Any) -> tuple[list[str], list[str]]:
        return hook_objects.set_keys(shop.store, "h", values, schema)

    def unset(*keys: str) -> tuple[list[str], list[str]]:
        return hook_objects.unset_keys(shop.store, "h", keys, schema)

    assert set_keys(a=[1], b=None) == (["value for key a updated", "value for key b updated"], [])
    refused = "configuration key alien is not in the schema and must be cleared"
    assert set_keys(a=5, alien=1) == ([], [refused])
    assert shop.configuration("h") == {"must": 1, "a": [1], "b": None}
    assert unset("a", "b") == (["value for key a reset to default", "key b removed from configuration"], [])
    assert unset("b", "alien") == (["no changes; key b already absent", "no changes; key alien already absent"], [])
    assert unset("must", "a") == ([], ["cannot clear required configuration key must"])
    assert shop.configuration("h") == {"must": 1, "a": 1}
    assert hook_objects.set_keys(shop.store, "none", {"a": 1}, schema) == ([], ["hook none does not exist"])


def test_full_control_can_be_granted_and_revoked(shop: Workshop) -> None:
    shop.simple("h", QUIET)
    assert hook_objects.grant(shop.store, "H", "alice")
    assert not hook_objects.grant(shop.store, "h", "alice")
    assert hook_objects.grant(shop.store, "h", "me", False)
    assert not hook_objects.grant(shop.store, "none", "me")
    found = hook_objects.get(shop.store, "h")
    assert found is not None
    assert found.access == ("alice",)


def test_values_with_nul_and_surrogates_are_stored(shop: Workshop) -> None:
    output = '{"output": "\\u0000 \\ud800", "hook": {"configuration": {"update": {"a": "\\u0000\\udfff"}}}}'
    shop.simple("h", f"#!/bin/bash\ncat <<'EOF'\n{output}\nEOF\nprintf '\\0\\377' >&2\n", schema="a: {}")
    shop.engine.trigger(BOOTED, shop.host)
    shop.engine.drain()
    ((severity, entry),) = shop.entries()
    assert (severity, entry["msg"], entry["error"]) == ("error", "\0 \ud800", "\0\ufffd")
    assert shop.configuration("h") == {"a": "\0\udfff"}


def test_the_log_is_read_newest_first_in_pages(shop: Workshop) -> None:
    shop.simple("h", ECHO)
    shop.simple("other", QUIET)
    for number in range(4):
        hosts.set_metadata(shop.store, "web1", {"n": number})
        shop.engine.run("h", BOOTED, _host(shop))
    shop.engine.run("other", BOOTED, _host(shop))

    def numbers(**asked: Any) -> list[int]:
        return [event.entry["msg"]["node"]["metadata"]["n"] for event in hook_log.events(shop.store, "H", **asked)]

    assert numbers() == [3, 2, 1, 0]
    assert numbers(limit=2) == [3, 2]
    assert numbers(limit=2, start=1) == [2, 1]
    assert numbers(start=3) == [0]
    assert len(hook_log.events(shop.store)) == 5
