"""The verb `hook`, as a user types it."""

from __future__ import annotations

import getpass
import json
import re
from pathlib import Path
from typing import Any

import pytest

from statecfg.cli.hook import arguments as hook_arguments
from statecfg.problems import InvalidInput
from tests.host.command import Ran, statecfg

UPDATES = '{"hook": {"configuration": {"update": {"count": 1}}}, "node": {"metadata": {"update": {"h": 1}}}}'
COUNTER = f"#!/bin/sh\necho '{UPDATES}'\n"
SCHEMA = "count: {description: how often, default: 0}\nword: {}\n"
BOOTED, BOUND = "node-booted", "node-bound-to-policy"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    folder = root / "hooks" / "tally.hook"
    folder.mkdir(parents=True)
    (root / "inventory.yml").write_text("hosts: {web1: {}, web2: {}}\n")
    (folder / "configuration.yaml").write_text(SCHEMA)
    (folder / BOOTED).write_text(COUNTER)
    (folder / BOOTED).chmod(0o755)
    return root


def hook(project: Path, *arguments: str, code: int | None = 0) -> Ran:
    return statecfg("hook", *arguments, cwd=project, code=code, STATECFG_STORE=str(project.parent / "store.db"))


def said(project: Path, *arguments: str, code: int = 0) -> Any:
    return hook(project, *arguments, "--json", code=code).json()


def known(project: Path) -> None:
    statecfg("hosts", "tag", "web1", "blue", cwd=project, STATECFG_STORE=str(project.parent / "store.db"))


def test_types_lists_hook_types_and_marks_unusable_ones(project: Path) -> None:
    listed = hook(project, "types").out
    assert re.search(r"^counter +node-bound-to-policy", listed, re.M)
    assert re.search(r"^tally +node-booted", listed, re.M)
    assert re.search(r"^ +count \(default: 0\) +how often", listed, re.M)
    (_, tally) = said(project, "types")["types"]
    assert (tally["events"], tally["configuration"]["count"]["default"]) == ([BOOTED], 0)
    (project / "hooks" / "tally.hook").chmod(0o777)
    refused = hook(project, "types", code=5)
    assert "can't be used" in refused.out
    assert "chmod go-w" in refused.out


@pytest.mark.parametrize(
    "words",
    [
        ("--name", "mine", "--type", "tally"),
        ("--name", "mine", "--hook-type", "tally"),
        ("mine", "tally"),
        ("mine", "--type", "tally"),
        ("tally", "--name", "mine"),
    ],
)
def test_create_accepts_name_and_type_in_any_form(project: Path, words: tuple[str, ...]) -> None:
    made = 'mine: a hook of type tally, configuration {"word": "é=1", "count": 0}\n'
    assert hook(project, "create", *words, "-c", "word=é=1").out == made
    assert hook(project, "create", *words, "--configuration", "word=é=1", "-c", "count=0").out == made
    (listed,) = said(project, "list")["hooks"]
    assert listed["configuration"] == {"word": "é=1", "count": 0}
    assert listed["access"] == [getpass.getuser()]


# Recorded from the original client, except that JSON values are parsed as JSON.
@pytest.mark.parametrize(
    ("given", "configuration"),
    [
        (["count=0"], {"count": 0}),
        (["a=1", '{"foo":7}'], {"foo": 7}),
        (['{"foo":7}', "a=1"], {"foo": 7, "a": 1}),
        (["a="], {"a": None}),
        (["a=null"], {"a": None}),
        (['a="null"'], {"a": "null"}),
        (["a=b=c"], {"a": "b=c"}),
        (["a=rhubarb", "a=[1]"], {"a": [1]}),
        (["a=NaN"], {"a": "NaN"}),
        (["a=01"], {"a": "01"}),
        (['{"a":"x=y"}'], {"a": "x=y"}),
        (["{a=1"], {"{a": 1}),
    ],
)
def test_configuration_arguments_are_parsed_as_json_or_text(given: list[str], configuration: dict[str, Any]) -> None:
    assert hook_arguments.configuration(given) == configuration


@pytest.mark.parametrize(
    ("given", "detail"),
    [
        ("a", "`a` is not KEY=VALUE"),
        ("=1", "`=1` is not KEY=VALUE"),
        ("", "`` is not KEY=VALUE"),
        ('"a=b"', "configuration should be a object, but was actually a string"),
        ("[1]", "configuration should be a object, but was actually a array"),
        ("5", "configuration should be a object, but was actually a number"),
        ("null", "configuration should be a object, but was actually a null"),
    ],
)
def test_invalid_configuration_arguments_are_refused(given: str, detail: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        hook_arguments.configuration([given])
    assert caught.value.problems[0].detail == detail


def test_the_short_option_needs_one_dash(project: Path) -> None:
    refused = hook(project, "create", "a", "tally", "--c", "count=3", code=5)
    assert "No such option '--c'" in refused.err
    hook(project, "create", "a", "tally", "-c", "count=3")
    assert said(project, "show", "a")["configuration"] == {"count": 3}


def test_create_refuses_invalid_hooks_with_a_hint(project: Path) -> None:
    hook(project, "create", "mine", "tally")
    for arguments, detail, help_text in (
        (("x", "taly"), "hook_type must be the name of an existing hook type, but is 'taly'", "did you mean `tally`?"),
        (("Mine", "tally", "-c", "count=2"), "The hook Mine already exists, and the name, configuration fields", ""),
        (("mine", "tally", "--order", "5"), "The hook mine already exists, and the order fields do not match", ""),
        (("x", "tally", "-c", "cuont=2"), "configuration key 'cuont' is not defined", "did you mean `count`?"),
        (("x", "tally", "-c", "count"), "`count` is not KEY=VALUE", ""),
        (("x", "tally", "--events", "node-boted"), "unknown event `node-boted`", "did you mean `node-booted`?"),
        (("x", "tally", "--deadline", "30"), "`30` is not an ISO 8601 duration", "PT30S"),
        (("x", "tally", "--hosts", "wbe1"), "wbe1", "web1"),
        (("a/b", "tally"), "`a/b` contains a slash", ""),
        ((" a", "tally"), "begins or ends with a space", ""),
        (("a\nb", "tally"), "control character", ""),
        (("a" * 251, "tally"), "has 251 letters", ""),
        (("",), "the hook has no name", ""),
        (("x",), "the hook has no type", ""),
        (("x", "tally", "more"), "Too many arguments: more", ""),
        (("x", "tally", "--where", "moon"), "'moon' is not one of", ""),
    ):
        ran = hook(project, "create", *arguments, code=5)
        assert detail in ran.err, ran.err
        assert help_text in ran.err, ran.err
    several = hook(project, "create", "a/b", "taly", "--events", "x,y", "--deadline", "0", code=5)
    assert "5 problems found" in several.err
    assert [each["name"] for each in said(project, "list")["hooks"]] == ["mine"]


def test_create_warns_of_programs_that_cannot_start(project: Path) -> None:
    program = project / "hooks" / "tally.hook" / BOOTED
    program.chmod(0o644)
    made = hook(project, "create", "mine", "tally")
    assert made.err == f"warning: {program} is not executable, so it can't be started: chmod +x {program}\n"
    assert made.out.startswith("mine: a hook of type tally")
    program.chmod(0o755)
    assert hook(project, "create", "well", "tally").err == ""


def test_create_stores_the_selection_and_options(project: Path) -> None:
    options = ("--hosts", "web*", "--types", "file,user", "--types", "group", "--names", "file:*", "--tags", "x")
    more = (
        "--events",
        "node-booted",
        "--where",
        "host",
        "--order",
        "7",
        "--deadline",
        "PT1M30S",
        "--on-failure",
        "retry",
    )
    hook(project, "create", "mine", "tally", *options, *more)
    assert said(project, "show", "mine")["spec"] == {
        "hosts": "web*",
        "types": ["file", "user", "group"],
        "names": ["file:*"],
        "tags": ["x"],
        "events": ["node-booted"],
        "where": "host",
        "order": 7,
        "deadline": "PT1M30S",
        "on_failure": "retry",
    }
    assert re.search(r"^  deadline +PT1M30S$", hook(project, "show", "mine").out, re.M)


def test_run_log_set_and_unset_report_what_they_did(project: Path) -> None:
    hook(project, "create", "mine", "tally")
    assert "the store has no host `web1`" in hook(project, "run", "mine", BOOTED, "web1", code=5).err
    known(project)
    ran = said(project, "run", "Mine", BOOTED, "web1", "--policy", "p.yml")
    assert (ran["node"], ran["policy"], ran["hook"], ran["severity"]) == ("web1", "p.yml", "mine", "info")
    assert ran["actions"] == (
        'updating hook configuration: {"update"=>{"count"=>1}} and updating node metadata: {"update"=>{"h"=>1}}'
    )
    assert "input" not in ran
    debugged = said(project, "run", "mine", BOOTED, "web1", "--debug")
    assert json.loads(debugged["input"])["hook"]["configuration"] == {"count": 1}
    assert hook(project, "run", "mine", BOUND, "web1").out == "no event handler exists for hook mine\n"
    unknown = hook(project, "run", "mine", "node-boted", "web1", code=5).err
    assert "event must refer to one of node-booted, node-registered, node-bound-to-policy," in unknown
    assert "did you mean `node-booted`?" in unknown
    log = said(project, "log", "mine", "--limit", "1", "--start", "1")["events"]
    assert [event["policy"] for event in log] == ["p.yml"]
    assert "updating node metadata" in hook(project, "log").out
    assert hook(project, "set", "mine", "count=5", 'word="7"').out == (
        "value for key count updated\nvalue for key word updated\n"
    )
    assert said(project, "show", "mine")["configuration"] == {"count": 5, "word": "7"}
    assert hook(project, "unset", "mine", "count", "word", "word").out == (
        "value for key count reset to default\nkey word removed from configuration\n"
        "no changes; key word already absent\n"
    )
    refused = hook(project, "set", "mine", "conut=1", code=5).err
    assert "configuration key conut is not in the schema and must be cleared" in refused
    assert "did you mean `count`?" in refused


def test_a_failed_hook_gives_exit_status_1(project: Path) -> None:
    (project / "hooks" / "tally.hook" / BOOTED).write_text("#!/bin/sh\nprintf '{]'\nprintf '\\033[31m' >&2\nexit 3\n")
    hook(project, "create", "mine", "tally")
    known(project)
    ran = hook(project, "run", "mine", BOOTED, "web1", code=1)
    assert "exit 3" in ran.out
    assert "invalid JSON returned from hook" in ran.out
    assert "line 1, column 2" in ran.out
    assert "\033" not in ran.out


def test_every_verb_refuses_an_unknown_hook(project: Path) -> None:
    hook(project, "create", "mine", "tally")
    known(project)
    for arguments in (
        ("show", "mien"),
        ("log", "mien"),
        ("run", "mien", BOOTED, "web1"),
        ("set", "mien", "a=1"),
        ("unset", "mien", "a"),
        ("grant", "mien", "alice"),
        ("revoke", "mien", "alice"),
    ):
        ran = hook(project, *arguments, code=5)
        assert "hook `mien` does not exist" in ran.err
        assert "did you mean `mine`?" in ran.err


def test_delete_removes_a_hook_once(project: Path) -> None:
    hook(project, "create", "mine", "tally")
    assert hook(project, "delete", "mine").out == "hook mine destroyed\n"
    assert hook(project, "delete", "mine").out == "no changes; hook mine does not exist\n"
    assert "0 hooks" in hook(project, "list").out


def test_grant_and_revoke_change_full_control(project: Path) -> None:
    hook(project, "create", "mine", "tally")
    assert hook(project, "grant", "mine", "alice").out == "mine: alice has Full Control\n"
    assert hook(project, "grant", "mine", "alice").out == "mine: alice has Full Control, as before\n"
    assert said(project, "show", "mine")["access"] == [getpass.getuser(), "alice"]
    assert hook(project, "revoke", "mine", "alice").out == "mine: alice does not have Full Control\n"


def test_binding_a_playbook_calls_the_hook(project: Path) -> None:
    script = project / "hooks" / "tally.hook" / BOOTED
    script.rename(script.with_name(BOUND))
    hook(project, "create", "mine", "tally")
    (project / "playbooks").mkdir()
    (project / "playbooks" / "p.yml").write_text("- hosts: all\n")
    environment = {"STATECFG_STORE": str(project.parent / "store.db")}
    statecfg("hosts", "bind", "web1", "playbooks/p.yml", cwd=project, **environment)
    (event,) = said(project, "log")["events"]
    assert (event["event"], event["policy"], event["severity"]) == (BOUND, "project/playbooks/p.yml", "info")
    assert said(project, "show", "mine")["configuration"]["count"] == 1


@pytest.mark.parametrize("way", ["fails", "can't start"])
def test_changing_a_host_warns_of_failed_hooks(project: Path, way: str) -> None:
    """Each command that fires the event warns on standard error, if the program fails or can't start."""
    directory = project / "hooks" / "tally.hook"
    script = directory / BOOTED
    for event in (BOUND, "node-unbound-from-policy", "node-deleted"):
        made = directory / event
        made.write_text("#!/bin/sh\necho no room >&2; exit 3\n")
        made.chmod(0o755)
    script.unlink()
    hook(project, "create", "mine", "tally")
    if way != "fails":
        for made in directory.iterdir():
            made.chmod(0o644)
    (project / "p.yml").write_text("hosts: all\nresources: []\n")
    environment = {"STATECFG_STORE": str(project.parent / "store.db")}
    for words in (["bind", "web1", "p.yml"], ["unbind", "web1", "p.yml"], ["forget", "web1", "--yes"]):
        ran = statecfg("hosts", *words, cwd=project, **environment)
        assert ran.err.startswith("warning: hook mine failed at node-"), ran.err
        assert ("no room" in ran.err) == (way == "fails")
        assert ran.err.endswith(" (statecfg hook log mine)\n")
        assert ran.err.count("\n") == 1


def test_unbinding_clears_the_playbook_and_the_installed_policy(project: Path) -> None:
    from statecfg.playbook.project import find
    from statecfg.store import hosts, opened

    script = project / "hooks" / "tally.hook" / BOOTED
    script.write_text("#!/bin/sh\nprintf '{\"output\": '; cat; echo }\n")
    script.rename(script.with_name("node-unbound-from-policy"))
    hook(project, "create", "mine", "tally")
    (project / "p.yml").write_text("hosts: all\nresources: []\n")
    environment = {"STATECFG_STORE": str(project.parent / "store.db")}
    statecfg("hosts", "bind", "web1", "p.yml", cwd=project, **environment)
    with opened(find(project), environment["STATECFG_STORE"]) as store, store.transaction() as connection:
        hosts.installed_in(connection, store.project, "web1", "project/p.yml")
    listed = statecfg("hosts", "--json", cwd=project, **environment).json()["hosts"]["web1"]
    assert (listed["playbooks"], listed["installed"]) == (["project/p.yml"], "project/p.yml")
    statecfg("hosts", "unbind", "web1", "p.yml", cwd=project, **environment)
    (event,) = said(project, "log")["events"]
    assert (event["policy"], event["msg"]["policy"]["nodes"]) == ("project/p.yml", {"count": 0})
    assert event["msg"]["node"]["state"] == {"installed": False}
    listed = statecfg("hosts", "--json", cwd=project, **environment).json()["hosts"]["web1"]
    assert (listed["playbooks"], listed["installed"]) == ([], None)


def test_lists_without_rows_have_no_heading(project: Path) -> None:
    environment = {"STATECFG_STORE": str(project.parent / "store.db")}
    assert hook(project, "list").out == "0 hooks\n"
    for words, out in (
        (("hosts",), "0 hosts\n"),
        (("service", "list"), "0 services, 0 units, 0 relations\n"),
        (("entity", "list"), "0 entities\n"),
        (("entity", "type", "list"), "0 types\n"),
        (("entity", "task", "list"), "0 tasks\n"),
    ):
        assert statecfg(*words, cwd=project, **environment).out == out


def test_retry_runs_queued_invocations(project: Path) -> None:
    from statecfg.hooks.exec.engine import HookEngine
    from statecfg.hooks.exec.types import HookTypes
    from statecfg.playbook import project as projects
    from statecfg.store import hosts, opened

    hook(project, "create", "mine", "tally")
    known(project)
    with opened(projects.find(project), str(project.parent / "store.db")) as store:
        record = hosts.get(store, "web1")
        assert record is not None
        HookEngine(store, HookTypes((project / "hooks",))).trigger(BOOTED, record)
    assert "1 hook, 1 invocation queued" in hook(project, "list").out
    assert hook(project, "retry").out.endswith("1 run, 0 still queued\n")
    assert hook(project, "retry").out == "0 run, 0 still queued\n"


def test_retry_lists_what_is_pending(project: Path) -> None:
    """Inside a hook's program, queued calls stay queued. An owed call stays until its next attempt is due."""
    from statecfg.hooks.exec.engine import HookEngine
    from statecfg.hooks.exec.types import HookTypes
    from statecfg.playbook import project as projects
    from statecfg.remote.hooks.run import RUNNING
    from statecfg.store import hosts, objects, opened

    hook(project, "create", "mine", "tally")
    known(project)
    url = str(project.parent / "store.db")
    with opened(projects.find(project), url) as store:
        record = hosts.get(store, "web1")
        assert record is not None
        HookEngine(store, HookTypes((project / "hooks",))).trigger(BOOTED, record, "project/p.yml")
        applied = objects.ensure(store, "project/p.yml", "web1", {}, "0" * 64)
        objects.owe(store, applied, "greet", "finalize", 3, 3600, "guests")
    pending = statecfg("hook", "retry", cwd=project, STATECFG_STORE=url, **{RUNNING: "outer"}).out
    queued, owed, count = pending.splitlines()
    assert queued == f"queued  mine  {BOOTED}  web1  project/p.yml"
    assert re.fullmatch(r"owed    greet  finalize  web1  project/p.yml  tried 3 times, next from .+: guests", owed)
    assert count == "0 run, 1 still queued"


def test_list_includes_hooks_declared_by_the_project(project: Path) -> None:
    hook(project, "create", "mine", "tally")
    (project / "hooks/greet.yml").write_text(
        "metadata: {name: greet}\n"
        "spec:\n  hook: {version: v1, address: {uri: 'http://127.0.0.1:9/v1'}, capabilities: [finalize]}\n"
    )
    (project / "hooks/count.yml").write_text(
        "metadata: {name: count}\nspec:\n  exec: {type: tally}\n  events: [node-booted]\n"
    )
    listed = hook(project, "list").out.splitlines()
    assert [line.split()[:2] for line in listed[1:4]] == [["mine", "tally"], ["count", "tally"], ["greet", "http"]]
    assert "http://127.0.0.1:9/v1" in listed[3] and listed[4] == "3 hooks"
    declared = said(project, "list")["declared"]
    assert [(each["name"], each["protocol"]) for each in declared] == [("count", "exec"), ("greet", "http")]
