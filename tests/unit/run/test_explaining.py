"""Explanations of nodes, variables and hosts: where they come from, what requires them, and why."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from statecfg.run import prepare
from statecfg.run.explaining import Explaining
from statecfg.views.explain import explanation_lines, ledger_lines
from statecfg.views.lines import plain

INVENTORY = """\
hosts:
  h1: {vars: {port: 30}}
  h2:
groups:
  outer: {groups: [inner], vars: {port: 10, zone: a}}
  inner: {hosts: [h1, h2], vars: {port: 20}}
"""
PLAYBOOK = """\
hosts: inner
vars: {zone: b}
resources:
  - package: webd
    requires: [file:/etc/webd/main]
  - service: webd
    running: true
    restart_on: ["file:/etc/webd/*"]
  - include: conf
    vars: {name: main}
    for_each: [1]
    label: sites
  - file: /etc/webd/check
    content: ""
    validate: [webd, "{}"]
  - command: first
    argv: ["true"]
    when: host.name == "h1"
    always: true
    requires: [service:webd, tag:conf]
    when_host: [{path: /srv, is: directory}, {not: {user: webd}}]
  - file: "{{ host_item.home }}/x"
    content: x
    for_each_host: {users: {min_uid: 1000}}
    when_host: {path: "{{ host_item.home }}"}
"""
ROLE = """\
params:
  name: {type: name, required: true}
  owner: {type: user, default: root}
resources:
  - directory: /etc/webd
  - include: base
  - file: "/etc/webd/{{ name }}"
    content: ""
    validate: [webd, "{}"]
    tags: [conf]
"""
BASE = "resources: [{directory: /etc/webd}]\n"


@pytest.fixture
def explaining(tmp_path: Path) -> Explaining:
    for name, text in (
        ("inventory.yml", INVENTORY),
        ("site.yml", PLAYBOOK),
        ("roles/conf/role.yml", ROLE),
        ("roles/base/role.yml", BASE),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text))
    work = prepare.playbook(tmp_path / "site.yml", prepare.Choice(sources=True, extra={"extra": "e"}))
    return Explaining(work, {"extra": "e"}, lambda location: str(location).removeprefix(f"{tmp_path}/"))


def text(**found: list[Any]) -> str:
    return plain(explanation_lines({"nodes": [], "variables": [], "hosts": [], **found}))


def test_node_has_its_places_roles_and_requirements(explaining: Explaining) -> None:
    (both,) = explaining.nodes("directory:/etc/webd")
    assert both["hosts"] == ["h1", "h2"] and both["playbook"] == "site.yml"
    conf = {"name": "conf", "position": "site.yml:9:5"}
    assert both["declared"] == [
        {"position": "roles/conf/role.yml:5:5", "roles": [conf]},
        {
            "position": "roles/base/role.yml:1:14",
            "roles": [{"name": "base", "position": "roles/conf/role.yml:6:5"}, conf],
        },
    ]
    assert both["labels"] == ["loop:sites", "include:conf", "include:base"]
    assert {(item["name"], item["why"], item["detail"]) for item in both["required_by"]} == {
        ("file:/etc/webd/main", "automatic", "its directory"),
        ("file:/etc/webd/check", "automatic", "its directory"),
    }
    assert not both["requires"]
    shown = text(nodes=[both])
    assert "in the role base, which roles/conf/role.yml:6:5 includes\n" in shown
    assert "  requires     nothing\n" in shown and "⇠ file:/etc/webd/main\n" in shown


def test_explanation_says_why_a_node_requires_another(explaining: Explaining) -> None:
    one, other = explaining.nodes("service:webd")
    assert (one["hosts"], other["hosts"]) == (["h1"], ["h2"])
    assert [(item["name"], item["why"], item["detail"], item["triggers"]) for item in one["requires"]] == [
        ("file:/etc/webd/check", "reference", "file:/etc/webd/*", True),
        ("file:/etc/webd/main", "reference", "file:/etc/webd/*", True),
        ("package:webd", "automatic", "its unit", False),
    ]
    assert one["requires"][0]["position"] == "site.yml:8:18"
    assert [(item["name"], item["why"], item["position"]) for item in one["required_by"]] == [
        ("command:first", "written", "site.yml:20:16")
    ]
    assert not other["required_by"]
    shown = text(nodes=[one])
    assert "↻ file:/etc/webd/check\n" in shown
    assert "through file:/etc/webd/* in site.yml:8:18, and triggers\n" in shown
    assert "written in site.yml:20:16\n" in shown


def test_requirement_that_was_left_out_shows_the_cycle(explaining: Explaining) -> None:
    for name in ("file:/etc/webd/main", "package:webd"):
        (item,) = explaining.nodes(name)[0]["left_out"]
        assert (item["node"], item["required"]) == ("file:/etc/webd/main", "package:webd")
    shown = text(nodes=explaining.nodes("package:webd"))
    assert "file:/etc/webd/main would require package:webd: its program\n" in shown
    assert "it would close the cycle file:/etc/webd/main → package:webd → file:/etc/webd/main\n" in shown


def levels(item: dict[str, Any]) -> list[tuple[str, str]]:
    return [(level["level"], level["value"]) for level in item["levels"]]


def test_variable_shows_which_level_won(explaining: Explaining) -> None:
    one, other = explaining.variables("port")
    assert one["hosts"] == ["h1"] and one["value"] == "30"
    assert levels(one) == [("group outer", "10"), ("group inner", "20"), ("host", "30")]
    assert other["hosts"] == ["h2"] and levels(other)[-1] == ("group inner", "20")
    (zone,) = explaining.variables("zone")
    assert levels(zone) == [("group outer", "'a'"), ("play site", "'b'")] and zone["hosts"] == ["h1", "h2"]
    (extra,) = explaining.variables("extra")
    assert levels(extra) == [("command line", "'e'")]
    (name,), (owner,) = explaining.variables("name"), explaining.variables("owner")
    assert levels(name) == [("role conf (passed)", "'main'")] and name["inside"] == "role conf"
    assert levels(owner) == [("role conf (its own value)", "'root'")]
    places = [item["levels"][0]["position"] for item in (name, owner)]
    assert places == ["site.yml:10:12", "roles/conf/role.yml:3:3"]
    shown = text(variables=[one])
    assert "  set by       host: 30" in shown and "  overrides    group inner: 20" in shown
    assert explaining.variables("nope") == []


def test_variable_inside_includes_shows_all_levels(tmp_path: Path) -> None:
    conf = "{include: conf, vars: {port: '{{ port + 1 }}'}}"
    for name, content in (
        ("inventory.yml", "hosts: {h1: {vars: {port: 1}}, h2: {}}\n"),
        ("outer.yml", "vars: {zone: own, port: 2}\nresources: [{include: inner.yml, vars: {port: 3}}]\n"),
        (
            "inner.yml",
            f"resources: [{{file: /x, content: '{{{{ port }}}}'}}, {conf}]\n",
        ),
        ("roles/conf/role.yml", "params: {port: {type: port}, zone: {default: '{{ zone }}'}}\nresources: []\n"),
        ("site.yml", "hosts: all\nvars: {zone: play}\nresources: [{include: outer.yml}]\n"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    work = prepare.playbook(tmp_path / "site.yml", prepare.Choice(sources=True))
    found = {(item["inside"], *item["hosts"]): levels(item) for item in Explaining(work, {}, str).variables("port")}
    outer, inner = ("include outer.yml (its own value)", "2"), ("include inner.yml (passed)", "3")
    assert found == {
        ("", "h1"): [("host", "1")],
        ("include outer.yml", "h1"): [("host", "1"), outer],
        ("include inner.yml", "h1"): [("host", "1"), outer, inner],
        ("role conf", "h1"): [("host", "1"), ("role conf (passed)", "4")],
        ("include outer.yml", "h2"): [outer],
        ("include inner.yml", "h2"): [outer, inner],
        ("role conf", "h2"): [("role conf (passed)", "4")],
    }
    zones = Explaining(work, {}, str).variables("zone")
    assert [(item["inside"], item["value"], item["hosts"]) for item in zones] == [
        ("", "'play'", ["h1", "h2"]),
        ("include outer.yml", "'own'", ["h1", "h2"]),
        ("role conf", "'play'", ["h1", "h2"]),
    ]
    assert "  inside       role conf\n" in text(variables=zones)


def test_host_shows_its_plays_and_groups(explaining: Explaining) -> None:
    (host,) = explaining.hosts("h1")
    assert (host["groups"], host["plays"], host["resources"]) == (["inner", "outer"], ["site"], 7)
    assert host["variables"] == ["port", "zone"] and len(host["left_out"]) == 1
    shown = text(hosts=[host])
    assert "  groups       inner, outer\n" in shown and "  resources    7 resources\n" in shown
    assert {"h1", "port", "zone", "extra", "owner", "service:webd"} <= explaining.names()


def test_ledger_shows_who_manages_a_node() -> None:
    resource = {
        "playbook": "shop/site.yml", "type": "file", "state": "RESOLVED", "since": 1.0, "first_run": "r1",
        "last_run": "r2", "position": "site.yml:3", "protect": 1,
    }  # fmt: skip
    base: dict[str, Any] = {"status": "ok", "layers": [], "summary": {}}
    report: Any = {"hosts": {"h1": {**base, "managed": [resource]}, "h2": {**base, "managed": []}}}
    report["hosts"]["h3"] = {**base, "owners": {"shop/site.yml": 3, "shop/db.yml": 1}}
    shown = plain(ledger_lines(report))
    assert "  manages      3 resources  (shop/site.yml)\n" in shown and "1 resource  (shop/db.yml)\n" in shown
    assert "  managed by   shop/site.yml" in shown and "RESOLVED, protected\n" in shown
    assert "The ledger knows nothing about it." in shown


def test_node_has_its_conditions(explaining: Explaining) -> None:
    (first,) = explaining.nodes("command:first")
    assert first["conditions"] == ["/srv is a directory", "not (the user webd exists)"]
    shown = text(nodes=[first])
    (repeated,) = explaining.nodes("file:{host_item.home}/x")
    assert repeated["items"] == "users with min_uid 1000" and repeated["conditions"] == ["{host_item.home} exists"]
    assert "  for each of  users with min_uid 1000\n" in text(nodes=[repeated])
    assert "  if           /srv is a directory\n" in shown and "  and          not (the user webd exists)\n" in shown
