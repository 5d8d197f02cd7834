"""Conditions of nodes are checked on the planned machine: true, false, or not known yet."""

from __future__ import annotations

from typing import Any

import pytest

from statecfg.problems import InvalidInput
from statecfg.remote.run.decisions import fits, order, statement
from statecfg.testing import Definitions
from tests.each import each
from tests.unit.remote.run.playbooks import definitions, planned

__all__ = ["definitions"]

READY: dict[str, Any] = {
    "files": {"/etc/app/app.conf": "mode = live\n", "/etc/issue": "Debian 12\n"},
    "links": {"/etc/app/link": "app.conf", "/etc/app/broken": "nowhere", "/usr/lib64": "/usr/bin"},
    "packages": {"nginx": "1:1.22.1-9+deb12u3", "odd": "imagined"},
    "units": {"nginx": {"active": "active", "enabled": "enabled"}},
    "users": {"ann": {"uid": 1500}},
    "groups": {"staff": {"gid": 50}},
    "commands": {"app --check": 0, "test -e /etc/none": 1},
}
COMMAND = "read_only: true, reads: []"
HOLDING = [
    "path: /etc/app",
    "path: /etc/app/broken",
    "{path: /etc/app, is: directory}",
    "{path: /etc/app/link, is: file}",
    "{path: /etc/app/link, is: link}",
    "{path: /usr/lib64, is: directory}",
    "{path: /etc/app/app.conf, contains: '^mode = (live|test)$'}",
    "{path: /etc/app/link, is: file, contains: live}",
    "package: nginx",
    '{package: nginx, version: ">= 1.20"}',
    '{package: nginx, version: "1.22.1"}',
    '{package: nginx, version: "> 1:1.22.1-8, < 1:1.23"}',
    "unit: nginx",
    "unit: nginx.service",
    "user: ann",
    "group: staff",
    f"{{command: [app, --check], {COMMAND}}}",
    f'{{command: "app --check", {COMMAND}}}',
    "not: {path: /etc/none}",
    "not: [{path: /etc/app}, {path: /etc/none}]",
    "any: [{path: /etc/none}, {user: ann}]",
    "[{path: /etc/app}, {user: ann}]",
]
FALSE = {
    "path: /etc/none": "/etc/none exists",
    "{path: /etc/app, is: file}": "/etc/app is a file",
    "{path: /etc/app/app.conf, is: link}": "/etc/app/app.conf is a link",
    "{path: /etc/app/broken, is: file}": "/etc/app/broken is a file",
    "{path: /etc/none, contains: live}": "/etc/none contains live",
    "{path: /etc/app, contains: live}": "/etc/app contains live",
    "{path: /etc/issue, contains: '^12'}": "/etc/issue contains ^12",
    "package: apache2": "the package apache2 is installed",
    '{package: nginx, version: ">= 1.24"}': "the package nginx is installed in a version >= 1.24",
    '{package: nginx, version: "2:1.22.1"}': "the package nginx is installed in a version == 2:1.22.1",
    "unit: apache2": "the unit apache2.service exists",
    "user: bob": "the user bob exists",
    "group: bobs": "the group bobs exists",
    f"{{command: [test, -e, /etc/none], {COMMAND}}}": "test -e /etc/none succeeds",
    "not: {user: ann}": "not (the user ann exists)",
    "not: [{user: ann}, {path: /etc/app}]": "not (the user ann exists and /etc/app exists)",
    "any: [{user: bob}, {path: /x, is: directory}]": "the user bob exists or /x is a directory",
    "[{user: ann}, {user: bob}]": "the user bob exists",
}


def node(condition: str) -> str:
    written = condition if condition[0] in "{[" else f"{{{condition}}}"
    return f"  - file: /srv/wanted\n    content: hello\n    when_host: {written}\n"


@each("condition", HOLDING)
def test_node_is_planned_where_its_condition_holds(definitions: Definitions, condition: str) -> None:
    plan = planned(definitions, node(condition), **READY)
    assert plan.changed == ["file:/srv/wanted"] and not plan["file:/srv/wanted"].excluded


@each(("condition", "said"), FALSE.items())
def test_node_is_excluded_where_its_condition_is_false(definitions: Definitions, condition: str, said: str) -> None:
    plan = planned(definitions, node(condition), **READY)
    assert plan.unchanged == ["file:/srv/wanted"] and not plan.exists("/srv/wanted")
    assert plan["file:/srv/wanted"].excluded == f"its condition is false: {said}"


def test_condition_sees_what_required_nodes_will_do(definitions: Definitions) -> None:
    entries = """\
  - directory: /srv/app
  - file: /srv/app/conf
    content: "live\\n"
  - user: ann
  - package: nginx
  - file: /srv/conf
    content: hello
    when_host: [{path: /srv/app, is: directory}, {path: /srv/app/conf, contains: live}, {user: ann}]
  - file: /srv/site
    content: hello
    when_host: {package: nginx}
  - file: /srv/version
    content: hello
    when_host: {package: nginx, version: "< 2"}
"""
    plan = planned(definitions, entries, available={"nginx": "2.1"})
    assert {"file:/srv/conf", "file:/srv/site"} < {*plan.changed} and plan["file:/srv/version"].excluded
    assert plan.requires("file:/srv/conf", "user:ann") and plan.requires("file:/srv/version", "package:nginx")
    again = planned(definitions, entries, on=plan)
    assert not again.changed and again["file:/srv/version"].excluded


def test_what_a_command_may_change_is_known_after_it(definitions: Definitions) -> None:
    entries = """\
  - command: build
    argv: [make]
    always: true
  - file: /srv/built
    content: hello
    when_host: {path: /srv/result}
    requires: [command:build]
  - file: /srv/apart
    content: hello
    when_host: {path: /srv/result}
  - file: /srv/decided
    content: hello
    when_host: [{path: /srv/result}, {user: nobody-else}]
    requires: [command:build]
  - file: /srv/read
    content: hello
    when_host: {command: [app, --check], read_only: true, reads: [/etc/app]}
    requires: [command:build]
"""
    plan = planned(definitions, entries, commands={"app --check": 0})
    assert plan.unknown == ["file:/srv/built", "file:/srv/decided", "file:/srv/read"]
    assert {plan[name].known_after for name in plan.unknown} == {"command:build"}
    assert plan["file:/srv/apart"].excluded  # it does not require the command


def test_read_only_command_waits_only_for_what_it_reads(definitions: Definitions) -> None:
    entries = """\
  - directory: /etc/app
    absent: true
    requires: [file:/etc/app/conf]
  - file: /etc/app/conf
    absent: true
  - file: /etc/other
    content: x
  - file: /srv/{name}
    content: hello
    when_host: {{command: [app], read_only: true, reads: [{reads}]}}
    requires: [file:/etc/other, directory:/etc/app]
"""
    host: dict[str, Any] = {"files": {"/etc/app/conf": "x"}, "links": {"/etc/link": "app"}, "commands": {"app": 0}}
    for reads, known_after in (
        ("/var/lib/app", None),
        ("/etc/other", "file:/etc/other"),
        ("/etc", "file:/etc/app/conf"),
        ("/etc/app/conf", "file:/etc/app/conf"),
        ("/etc/app/deep/file", "directory:/etc/app"),
        ("/etc/link/conf", "file:/etc/app/conf"),
    ):
        plan = planned(definitions, entries.format(name="it", reads=reads), **host)
        found = plan["file:/srv/it"]
        assert (found.known_after is None) == (known_after is None), (reads, found)
        assert found.outcome == ("changed" if known_after is None else "unknown"), (reads, found)


def test_excluded_nodes_neither_trigger_nor_stop_others(definitions: Definitions) -> None:
    entries = """\
  - file: /etc/app.conf
    content: hello
    when_host: {path: /etc/none}
  - command: reload
    argv: [reload]
    restart_on: [file:/etc/app.conf]
  - file: /etc/after
    content: hello
    requires: [file:/etc/app.conf]
"""
    plan = planned(definitions, entries)
    assert plan.changed == ["file:/etc/after"]


def test_excluded_packages_are_not_installed_with_the_others(definitions: Definitions) -> None:
    entries = "  - package: nginx\n  - package: apache2\n    when_host: {path: /etc/none}\n"
    plan = planned(definitions, entries)
    assert plan.changed == ["package:nginx"] and plan["package:apache2"].excluded
    (action,) = plan["package:nginx"].actions
    assert "apache2" not in str(action.args)


def test_condition_that_its_own_node_makes_false(definitions: Definitions) -> None:
    entries = "  - file: /srv/once\n    content: hello\n    when_host: {not: {path: /srv/once}}\n"
    plan = planned(definitions, entries)
    assert plan.changed == ["file:/srv/once"]
    assert planned(definitions, entries, on=plan)["file:/srv/once"].excluded


def test_versions_are_compared_as_debian_does() -> None:
    ascending = ["0.9~rc1", "0.9~rc2-1", "0.9", "0.9-1", "0.9a", "0.9+b", "0.9.1", "0.10", "1.0-1", "1.0-1.1", "1:0.1"]
    descending = [*reversed(ascending)]
    assert sorted(descending, key=order) == ascending
    assert order("1.0") == order("1.0-0") == order("0:1.0")


@each(
    ("version", "limit", "within"),
    [
        ("1:9.2p1-2+deb12u3", ">= 9.2", True), ("1:9.2p1-2+deb12u3", "== 9.2p1", True),
        ("1:9.2p1-2+deb12u3", "== 9.2p1-2", False), ("1:9.2p1-2+deb12u3", "< 1:9.3", True),
        ("9.2", ">= 1:1", False), ("2.0~rc1", ">= 2.0", False), ("1.22.1-9", "!= 1.22.1", False),
        ("1.2-3-4", "== 1.2-3", False), ("1.2-3-4", "<= 1.2-3-4", True), ("15+248", "> 15", True),
    ],
)  # fmt: skip
def test_epoch_and_revision_count_only_if_the_limit_has_them(version: str, limit: str, within: bool) -> None:
    operator, text = limit.split()
    assert fits(version, operator, text) is within


def test_statement_of_a_script() -> None:
    assert statement({"command": ["/bin/sh", "-c", "test -e /x"], "reads": []}) == "test -e /x succeeds"


def test_blocks_files_and_roles_give_their_nodes_conditions(definitions: Definitions) -> None:
    root = definitions.root
    (root / "roles/web").mkdir(parents=True)
    (root / "roles/web/role.yml").write_text("resources:\n  - file: /srv/role\n    content: x\n")
    (root / "playbooks/part.yml").write_text("- file: /srv/part\n  content: x\n")
    entries = """\
  - when_host: {user: "{{ name }}"}
    for_each: [ann, bob]
    as: name
    resources:
      - file: "/srv/{{ name }}"
        content: x
      - file: "/srv/{{ name }}-2"
        content: x
        when_host: {path: /etc/none}
  - include: web
    when_host: {path: /etc/none}
  - include: part.yml
    when_host: {path: /etc}
  - file: /srv/apart
    content: x
"""
    plan = planned(definitions, entries, **READY)
    assert sorted(plan.changed) == ["file:/srv/ann", "file:/srv/apart", "file:/srv/part"]
    said = {name: plan[f"file:/srv/{name}"].excluded.partition(": ")[2] for name in ("ann-2", "bob", "role")}
    assert said == {"ann-2": "/etc/none exists", "bob": "the user bob exists", "role": "/etc/none exists"}
    with pytest.raises(InvalidInput, match="of a block contains"):
        planned(definitions, "  - include: part.yml\n    when_host: {paht: /etc}\n")


@each("condition", ["{command: [app], %s}", "{not: {command: [app], %s}}"])
def test_stopped_command_is_no_answer(definitions: Definitions, condition: str) -> None:
    when = condition % "read_only: true, reads: []"
    entries = f"  - file: /srv/a\n    content: x\n    when_host: {when}\n"
    plan = planned(definitions, entries, commands={"app": (-9, "")})
    assert "its condition can't be checked" in plan.failed["file:/srv/a"]
