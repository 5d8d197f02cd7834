"""Playbooks are planned on imagined hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from statecfg import Unknown
from statecfg.facts import catalogue, recorded
from statecfg.problems import InvalidInput
from statecfg.testing import Definitions, ImaginedHost, fact_set
from statecfg.testing.fact_sets import FACT_SETS
from tests.each import each

INVENTORY = "hosts: {web1: {vars: {port: 80}}, web2: {vars: {port: 81}}}\ngroups: {web: {hosts: [web1, web2]}}\n"
WEB = """
hosts: web
resources:
  - package: nginx
    tags: [base]
  - file: /etc/nginx/site.conf
    template: site.conf.j2
    mode: "0640"
    requires: [package:nginx]
  - service: nginx
    running: true
    restart_on: [file:/etc/nginx/site.conf]
"""
READY = ImaginedHost(
    files={"/etc/nginx/site.conf": "listen 80;\n"},
    modes={"/etc/nginx/site.conf": "0640"},
    packages={"nginx": "1.22"},
    units={"nginx": {"active": "active", "enabled": "enabled"}},
)


@pytest.fixture
def definitions(tmp_path: Path) -> Definitions:
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "inventory.yml").write_text(INVENTORY)
    (tmp_path / "playbooks/web.yml").write_text(WEB)
    (tmp_path / "playbooks/site.conf.j2").write_text("listen {{ port }};\n")
    return Definitions(tmp_path)


def one(definitions: Definitions, entries: str, **host: Any) -> Any:
    """Return the plan of a playbook with these entries for an imagined host."""
    (definitions.root / "playbooks/one.yml").write_text(f"hosts: web1\nresources:\n{entries}")
    return definitions.plan("playbooks/one.yml", on=ImaginedHost(**host))


def test_plan_on_a_bare_host_changes_everything(definitions: Definitions) -> None:
    plan = definitions.plan("playbooks/web.yml", "web2")
    assert plan.changed == ["package:nginx", "file:/etc/nginx/site.conf", "service:nginx"]
    assert plan["file:/etc/nginx/site.conf"].content == "listen 81;\n" == plan.read("/etc/nginx/site.conf")
    assert plan.mode("/etc/nginx/site.conf") == "0640" and plan["package:nginx"].ops == ["install"]
    assert plan.layers == [["package:nginx"], ["file:/etc/nginx/site.conf"], ["service:nginx"]]
    assert not plan.failed and plan.host == "web2" and len(plan) == 3


def test_plan_on_a_ready_host_changes_nothing(definitions: Definitions) -> None:
    plan = definitions.plan("playbooks/web.yml", "web1", on=READY)
    assert plan.unchanged == list(plan) and plan.changed == []


def test_change_of_a_file_restarts_the_service(definitions: Definitions) -> None:
    plan = definitions.plan("playbooks/web.yml", "web2", on=READY)
    assert plan.changed == ["file:/etc/nginx/site.conf", "service:nginx"]
    assert plan["service:nginx"].ops == ["restart"]
    assert plan["service:nginx"].triggered_by == ["file:/etc/nginx/site.conf"]
    (change,) = plan["file:/etc/nginx/site.conf"].changes
    assert "-listen 80;\n+listen 81;" in change["diff"]


def test_variables_override_the_inventory(definitions: Definitions) -> None:
    plan = definitions.plan("playbooks/web.yml", "web1", vars={"port": 443})
    assert plan.read("/etc/nginx/site.conf") == "listen 443;\n"


def test_tags_select_nodes(definitions: Definitions) -> None:
    assert list(definitions.plan("playbooks/web.yml", "web1", tags=["base"])) == ["package:nginx"]


def test_graph_of_a_plan(definitions: Definitions) -> None:
    plan = definitions.plan("playbooks/web.yml", "web1")
    assert plan.requires("service:nginx", "package:nginx")
    assert not plan.requires("package:nginx", "service:nginx")
    assert plan["service:nginx"].requires == ["file:/etc/nginx/site.conf", "package:nginx"]


def test_unknown_name_of_a_node_is_an_error_with_a_suggestion(definitions: Definitions) -> None:
    plan = definitions.plan("playbooks/web.yml", "web1")
    assert "package:nginxx" not in plan
    with pytest.raises(KeyError, match="no node package:nginxx; did you mean `package:nginx`"):
        plan["package:nginxx"]


def test_plans_of_all_hosts(definitions: Definitions) -> None:
    plans = definitions.plans("playbooks/web.yml")
    assert [plan.read("/etc/nginx/site.conf") for plan in plans.values()] == ["listen 80;\n", "listen 81;\n"]
    assert list(definitions.plans("playbooks/web.yml", "web2")) == ["web2"]
    with pytest.raises(InvalidInput, match="is for the hosts web1, web2"):
        definitions.plan("playbooks/web.yml")


def test_second_plan_starts_where_the_first_ends(definitions: Definitions) -> None:
    first = one(definitions, "  - file: /etc/motd\n    content: hello\n  - directory: /srv/data\n")
    assert first.changed and definitions.plan("playbooks/one.yml", on=first).changed == []
    assert first.exists("/srv/data") and not first.exists("/srv/other")


def test_plan_shows_its_nodes_if_an_assertion_fails(definitions: Definitions) -> None:
    plan = one(definitions, "  - file: /nowhere/motd\n    content: hello\n  - package: nginx\n")
    assert list(plan.failed) == ["file:/nowhere/motd"]
    assert "/nowhere does not exist" in plan.failed["file:/nowhere/motd"]
    first, *lines = repr(plan).splitlines()
    assert first == "<plan for web1>" and "changed   package:nginx  install" in lines


def test_what_a_command_changes_is_unknown(definitions: Definitions) -> None:
    entries = "  - command: build\n    argv: [make]\n    unless: test -e /done\n"
    plan = one(definitions, entries + "  - file: /etc/motd\n    mode: '0600'\n    requires: [command:build]\n")
    assert plan.changed == ["command:build"] and plan.unknown == ["file:/etc/motd"]
    assert plan["file:/etc/motd"].known_after == "command:build"
    with pytest.raises(Unknown):
        plan.read("/etc/motd")
    assert one(definitions, entries, commands={"test -e /done": 0}).unchanged == ["command:build"]
    assert one(definitions, entries, commands={"test -e /done": (1, "no")}).changed == ["command:build"]


def test_users_groups_and_links_of_an_imagined_host(definitions: Definitions) -> None:
    entries = "  - user: ann\n    groups: [adm]\n  - symlink: /etc/localtime\n    target: /usr/share/zoneinfo/UTC\n"
    host = {"users": {"ann": {"uid": 1500, "groups": ["adm"]}}, "groups": {"adm": {"gid": 4}}}
    assert one(definitions, entries, **host).changed == ["symlink:/etc/localtime"]
    assert not one(definitions, entries, **host, links={"/etc/localtime": "/usr/share/zoneinfo/UTC"}).changed


def test_units_of_users_of_an_imagined_host(definitions: Definitions) -> None:
    """The unit of a user is not that of the host, and it runs only if the user lingers."""
    entries = "  - service: app\n    user: ann\n    running: true\n"
    units = {"ann/app": {"active": "inactive"}, "app": {"active": "active"}}
    assert one(definitions, entries, users={"ann": {"linger": True}}, units=units).changed == ["service:app"]
    running = {"ann/app": {"active": "active"}}
    assert not one(definitions, entries, users={"ann": {"linger": True}}, units=running).changed
    assert "linger: true" in one(definitions, entries, users={"ann": {}}, units=units)["service:app"].reason
    both = "  - user: bob\n    linger: true\n" + entries.replace("ann", "bob")
    plan = one(definitions, both, units={"bob/app": {}})
    assert plan.changed == ["user:bob", "service:app"] and plan.layers == [["user:bob"], ["service:app"]]


def test_packages_of_an_imagined_host(definitions: Definitions) -> None:
    entries = "  - package: nginx\n    version: 1.*\n  - package: telnetd\n    absent: true\n"
    bare = one(definitions, entries)
    assert bare.changed == ["package:nginx"] and bare["package:nginx"].changes[0]["after"] == "1.0"
    ready = one(definitions, entries, packages={"nginx": "1.22", "telnetd": "2"})
    assert ready.changed == ["package:telnetd"] and ready["package:telnetd"].ops == ["remove"]
    old = one(definitions, entries, packages={"nginx": "0.9"}, available={"nginx": "1.30"})
    assert old["package:nginx"].changes[0]["after"] == "1.30"


def test_packages_that_apt_does_not_have(definitions: Definitions) -> None:
    missing = one(definitions, "  - package: nginx\n", available={"nginy": "1"})
    assert "apt" in missing.failed["package:nginx"]
    version = one(definitions, "  - package: nginx\n    version: 2.*\n", available={"nginx": "1"})
    assert "apt" in version.failed["package:nginx"]


def test_a_mistake_in_the_playbook_is_reported(definitions: Definitions) -> None:
    with pytest.raises(InvalidInput, match="has no attribute `moed`"):
        one(definitions, "  - file: /etc/motd\n    moed: '0644'\n")


def test_mode_of_nothing_is_an_error(definitions: Definitions) -> None:
    with pytest.raises(FileNotFoundError):
        one(definitions, "  - directory: /srv/www\n").mode("/etc/motd")


def test_missing_secrets_have_placeholders(definitions: Definitions, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = "  - file: /etc/key\n    content: !secret {env: IMAGINED_KEY}\n"
    assert one(definitions, entries).changed == ["file:/etc/key"]
    monkeypatch.setenv("IMAGINED_KEY", "0123456789abc")
    assert one(definitions, entries).read("/etc/key") == "0123456789abc"


FACTS = """  - file: /etc/system
    content: "{{ host.facts.os.family }} {{ host.facts.os.version }} {{ hosts.web2.facts.ipv4 }}"
"""


@pytest.mark.parametrize(
    ("facts", "content"),
    [
        ("debian-12", "debian 12 192.0.2.10"),
        ("ubuntu-24.04", "debian 24.04 192.0.2.10"),
        ("alma-9", "redhat 9.6 192.0.2.10"),
        ({**fact_set("debian-12"), "ipv4": "192.0.2.99"}, "debian 12 192.0.2.99"),
    ],
)
def test_a_definition_reads_the_facts_of_an_imagined_host(definitions: Definitions, facts: Any, content: str) -> None:
    first = one(definitions, FACTS, facts=facts)
    assert first.read("/etc/system") == content
    assert definitions.plan("playbooks/one.yml", on=first).changed == []


def test_recorded_facts_are_those_of_their_host(definitions: Definitions) -> None:
    hosts = {"web1": fact_set("debian-12"), "web2": {**fact_set("alma-9"), "ipv4": "192.0.2.2"}}
    (definitions.root / "facts.json").write_text(recorded.text(hosts))
    assert one(definitions, FACTS, facts="facts.json").read("/etc/system") == "debian 12 192.0.2.2"
    (definitions.root / "facts.json").write_text(recorded.text({"other": hosts["web2"]}))
    assert one(definitions, FACTS, facts="facts.json").read("/etc/system") == "redhat 9.6 192.0.2.2"


@each(
    ("facts", "error"),
    [
        ({}, "the definition of web1 reads ipv4, os"),
        ({"ipv4": 7}, "ipv4 must be text"),
        ({"ipv5": ""}, "unknown fact `ipv5`"),
        ("debian-11", "no set of facts 'debian-11'"),
        ("nothing.json", "can't be read"),
    ],
)
def test_facts_that_are_missing_or_wrong_are_an_error(definitions: Definitions, facts: Any, error: str) -> None:
    with pytest.raises((InvalidInput, ValueError), match=error):
        one(definitions, FACTS, facts=facts)


@pytest.mark.parametrize("name", FACT_SETS)
def test_each_set_has_every_fact_with_its_type(name: str) -> None:
    facts = fact_set(name)
    assert sorted(facts) == sorted(catalogue.NAMES)
    assert not [wrong for fact, value in facts.items() if (wrong := catalogue.wrong_fact(fact, value))]
