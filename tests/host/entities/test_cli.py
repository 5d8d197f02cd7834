"""`statecfg entity`: the operations of the API on the command line, with exit codes and suggestions."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from statecfg.entities.model import Query
from tests.host.entities.sites import INTERFACE, ME, Sites, behavior

FAILING = "def refuse(entity, arguments, context):\n    raise RuntimeError('not now')\n"
TYPE = """
name: {name}
vendor: acme
nss: {name}
version: "1.0.0"
interfaces: ["urn:vcloud:interface:acme:sites:1.0.0"]
schema: {{type: object, required: [title], properties: {{title: {{type: string}}}}}}
hooks: {hooks}
"""


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """Give a project with an interface and two types. The hooks of one type echo, and those of the other fail."""
    found = Sites(tmp_path_factory.mktemp("cli"), ())
    found.write("behaviors/guard.py", FAILING)
    for name, text in (
        ("echo", "execution: {type: noop}"),
        ("refuse", "execution: {type: Function, id: 'guard:refuse'}"),
    ):
        found.write(f"{name}.yml", f"name: {name}\n{text}\n")
    found.write("site.yml", TYPE.format(name="site", hooks=f"{{PostCreate: '{behavior('echo')}'}}"))
    found.write("frail.yml", TYPE.format(name="frail", hooks=f"{{PostCreate: '{behavior('refuse')}'}}"))
    for name in ("echo", "refuse"):
        assert found.run("behavior", "create", "sites", f"{name}.yml").out == f"{behavior(name)}\n"
    for name in ("site", "frail"):
        assert found.run("type", "create", f"{name}.yml").out == f"urn:vcloud:type:acme:{name}:1.0.0\n"
    yield found
    found.close()


def test_commands_manage_an_entity_from_creation_to_deletion(sites: Sites) -> None:
    made = sites.run("create", "site", "blog", "--set", "title=Blog", "--set", "deep.n=1").out.splitlines()
    assert made[0].startswith("success  Invoked echo blog")
    assert made[-1].startswith("blog  resolved  urn:vcloud:entity:acme:site:")
    shown = sites.run("show", "blog", "--json").json()
    assert shown["entity"] == {"title": "Blog", "deep": {"n": 1}} and shown["entityState"] == "RESOLVED"
    content = sites.write("new.json", '{"title": "News"}')
    sites.run("update", shown["id"], "--file", str(content), "--name", "news", "--external-id", "7")
    changed = sites.run("show", shown["id"].rpartition(":")[2], "--json").json()
    assert (changed["name"], changed["entity"], changed["externalId"]) == ("news", {"title": "News"}, "7")
    stale = sites.run("update", "news", "--set", "title=x", "--if-match", shown["etag"].strip('"'), code=5)
    assert "error[SC0803]: modified by another client" in stale.err
    refused = sites.run("invoke", "news", "echo", code=5)
    assert "`statecfg entity access allow TYPE BEHAVIOR LEVEL` allows users to invoke it" in refused.err
    for name in ("echo", "refuse"):
        sites.run("access", "allow", "site", name, "FullControl")
    invoked = sites.run("invoke", "news", "echo", "--set", "grace=5", "--json").json()
    assert json.loads(invoked["result"]["resultContent"])["arguments"] == {"grace": 5}
    failed = sites.run("invoke", "news", "refuse", code=1).out
    assert "RDE_BEHAVIOR_FAILED (500)" in failed and "not now" in failed
    assert "at behaviors/guard.py:2 in refuse" in failed
    listed = sites.run("list", "--type", "site", "--filter", "entityState==RESOLVED").out.splitlines()
    assert listed[1].split()[:3] == ["news", "resolved", "acme:site:1.0.0"] and listed[-1] == "1 entity"
    assert sites.run("delete", "news").out.startswith("success")
    assert sites.run("list", "--type", "site").out.splitlines()[-1] == "0 entities"


def test_a_failed_entity_command_exits_with_status_1(sites: Sites) -> None:
    ran = sites.run("create", "frail", "one", "--set", "title=x", code=1)
    assert ran.out.splitlines()[-1].startswith("one  could not be resolved")
    ran = sites.run("create", "site", "two", "--no-hooks", code=1)
    assert "two  could not be resolved: " in ran.out and "title" in ran.out
    assert sites.run("resolve", "two", code=1).out.startswith("two  could not be resolved")
    sites.run("update", "two", "--set", "title=now")
    assert sites.run("resolve", "two").out.startswith("two  resolved")
    tasks = sites.run("task", "list", "--filter", "status==error", "--json").json()
    assert {task["operationName"] for task in tasks["values"]} >= {"executeBehavior"}
    task = sites.run("task", "show", tasks["values"][0]["id"]).out
    assert task.startswith("error  ")


def test_a_task_created_with_no_wait_runs_later(sites: Sites) -> None:
    queued = sites.run("create", "site", "late", "--set", "title=x", "--no-wait", "--json").json()
    assert queued["status"] in ("queued", "running") and sites.state("late") == "PRE_CREATED"
    assert sites.run("task", "wait", queued["id"], "--json").json()["status"] == "success"
    assert sites.state("late") == "RESOLVED"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "nowhere"], "error[SC0802]: not found\n  entity `nowhere` does not exist"),
        (["delete", "las*"], "entity `las*` does not exist"),
        (["create", "sit", "x"], "did you mean `site`?"),
        (["invoke", "last", "ecko"], "did you mean `echo`?"),
        (["type", "create", "-"], "error[SC0801]: refused\n  vendor is missing. (BAD_REQUEST)"),
        (["behavior", "create", "sites", "wrong.yml"], "wrong behavior\n  execution: behaviors/gard.py does not exist"),
        (["type", "create", "list.json"], "list.json:1"),
        (["type", "create", "none.yml"], "error[SC0301]"),
        (["list", "--filter", "nme==x"], "error[SC0801]"),
        (["access", "revoke", "type", "site", "nobody"], "nobody was not granted access to urn:vcloud:type:acme:site"),
        (["token", "delete", "999"], "token 999 does not exist"),
        (["token", "create", "bob", "--expires", "soon"], "`soon` is not an ISO 8601 duration"),
        (["token", "create", "bob"], "Name the organization of bob with --org, or use --role administrator."),
        (["create", "site", "x", "--set", "novalue"], "'novalue' is not KEY=VALUE"),
    ],
)  # fmt: skip
def test_error_messages_explain_the_mistake(sites: Sites, words: list[str], said: str) -> None:
    sites.write("wrong.yml", "name: wrong\nexecution: {type: Function, id: 'gard:refuse'}\n")
    sites.write("list.json", "[1]\n")
    if sites.state("last") == "gone":
        sites.create("site", "last", title="x")
    assert said in sites.run(*words, code=5, stdin='{"name": "x"}').err


def test_access_and_token_commands_grant_and_revoke(sites: Sites) -> None:
    sites.run("access", "grant", "type", "site", "alice", "ReadWrite", "--org", "shop")
    assert (
        sites.run("access", "allow", "site", "echo", "ReadWrite").out
        == f"{behavior('echo')}: requires ReadWrite or higher\n"
    )
    found = sites.run("access", "list", "type", "site", "--json").json()
    assert [each["accessLevelId"] for each in found["values"]].count("urn:vcloud:accessLevel:ReadWrite") == 1
    assert {each["behaviorId"]: each["accessLevelId"].rpartition(":")[2] for each in found["behaviors"]} == {
        behavior("echo"): "ReadWrite", behavior("refuse"): "FullControl"
    }  # fmt: skip
    for name in ("echo", "refuse"):
        sites.run("access", "disallow", "site", name)
    sites.run("access", "revoke", "type", "site", "alice", "--org", "shop")
    assert sites.run("access", "list", "type", "site", "--json").json()["behaviors"] == []

    secret = sites.run("token", "create", "alice", "--role", "author", "--org", "shop", "--expires", "P1D").out.strip()
    who = sites.calls.principal_of(secret)
    assert who is not None and (who.name, who.org, who.role) == ("alice", "shop", "author")
    (token,) = sites.run("token", "list", "--json").json()["tokens"]
    assert round(token["expires"] - token["created"]) == 86_400 and secret not in json.dumps(token)
    sites.run("token", "delete", str(token["id"]))
    assert sites.calls.principal_of(secret) is None


def test_behavior_commands_create_update_override_and_delete(sites: Sites) -> None:
    execution = {"type": "WebHook", "href": "https://example.com/", "_internal_key": "s3cret-key"}
    hook = {"name": "tell", "execution": execution}
    sites.run("behavior", "create", "sites", "-", stdin=json.dumps(hook))
    shown = sites.run("behavior", "show", "tell", "sites", "--json")
    assert "s3cret-key" not in shown.out and shown.json()["execution"]["href"] == "https://example.com/"
    # An update keeps a secret that it doesn't give, because the behavior needs it.
    del execution["_internal_key"]
    execution["href"] = "https://example.com/2"
    sites.run("behavior", "update", "sites", "tell", "-", stdin=json.dumps(hook))
    (stored,) = [each for each in sites.calls.list_behaviors(ME, INTERFACE, Query()).values if each.name == "tell"]
    assert stored.execution == {"type": "WebHook", "href": "https://example.com/2", "_internal_key": "s3cret-key"}

    sites.run("behavior", "override", "site", "tell", "-", stdin='{"execution": {"type": "noop"}}')
    rows = sites.run("behavior", "list", "--type", "site").out
    assert "urn:vcloud:behavior-type:tell:acme:site:1.0.0:acme:sites:1.0.0" in rows
    sites.run("behavior", "restore", "site", "tell")
    assert "behavior-type" not in sites.run("behavior", "list", "--type", "site").out
    assert sites.run("behavior", "delete", "sites", "tell").out == f"{behavior('tell')}: deleted\n"
    assert sites.run("type", "list").out.splitlines()[1].split()[:3] == ["site", "acme/site/1.0.0", "PostCreate"]
    assert sites.run("type", "show", "site").out.count("PostCreate") == 1
    refused = sites.run("interface", "delete", "sites", code=5)
    assert "error[SC0801]" in refused.err
