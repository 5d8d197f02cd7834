"""Conditions of nodes: what is valid, messages about mistakes, and what conditions need."""

from __future__ import annotations

from typing import Any

from statecfg import when_host
from statecfg.graph import host_conditions
from statecfg.graph.automatic import find
from statecfg.graph.identity import owners
from statecfg.graph.merging import differing
from statecfg.problems import collecting
from statecfg.remote.graph.model import Keyword
from statecfg.resources import directory, file, package, service, user
from tests.each import each
from tests.unit.graph.node_types import refused

COMMAND = {"command": ["nginx", "-t"], "read_only": True, "reads": ["/etc/nginx"]}
WRONG: list[tuple[Any, str]] = [
    ([], "contains no condition"),
    ("/etc/nginx", "write {path: /etc/nginx}"),
    (True, "contains a boolean, not a condition"),
    ({}, "a condition without a kind"),
    ({"paht": "/etc"}, "did you mean `path`"),
    ({"path": "/etc", "user": "ann"}, "`path` and `user` in one condition"),
    ({"path": "/etc", "version": "1"}, "`path` that has the key `version`"),
    ({"user": "ann", "is": "file"}, "`user` takes no other keys"),
    ({"path": "etc"}, "`path` with the value 'etc'"),
    ({"path": "/etc", "is": "dir"}, "it is one of file, directory, link"),
    ({"path": "/etc", "is": "absent"}, "write not: {path: …}"),
    ({"path": "/etc", "is": "directory", "contains": "x"}, "not a file"),
    ({"path": "/etc/motd", "contains": "("}, "not a valid regular expression"),
    ({"package": "nginx", "version": 1.2}, 'put it in quotes: "1.2"'),
    ({"package": "nginx", "version": "~> 1.2"}, 'write limits such as ">= 1.22"'),
    ({"command": ["true"], "reads": []}, "not declared read-only"),
    ({"command": ["true"], "reads": [], "read_only": False}, "not declared read-only"),
    ({"command": ["true"], "read_only": True}, "a condition with a command without `reads`"),
    ({**COMMAND, "reads": ["etc"]}, "`reads` with the value 'etc'"),
    ({**COMMAND, "command": []}, "`command` with the value"),
    ({"not": []}, "`not` without a condition"),
    ({"any": {"path": "/etc"}}, "`any` without a list"),
    ({"any": [{"path": "/etc"}, {"user": 5}]}, "`user` with the value"),
]


@each(("value", "said"), WRONG)
def test_wrong_conditions_are_refused(value: Any, said: str) -> None:
    with refused("SC0122") as problems:
        file("/etc/motd", content="x", when_host=value)
    (found,) = problems
    assert said in f"{found.detail}\n{found.help}"


def test_conditions_nested_too_deeply() -> None:
    value: Any = {"path": "/etc"}
    for _ in range(20):
        value = {"not": value}
    with refused("SC0122") as problems:
        file("/etc/motd", content="x", when_host=value)
    (found,) = problems
    assert "nested more than 10 levels" in found.detail
    with refused("SC0122") as problems:
        file("/etc/motd", content="x", when_host=[{"path": "/etc"}] * 1001)
    (found,) = problems
    assert "more than 1000 conditions" in found.detail


def test_all_dialects_give_the_same_conditions() -> None:
    one = file("/etc/motd", content="x", when_host={"path": "/etc/x", "is": "file"}).node
    condition = {Keyword("path"): "/etc/x", "is": "file"}
    two = file("/etc/motd", {Keyword("content"): "x", Keyword("when-host"): [condition]})
    assert not differing(one, two.node)
    assert differing(one, file("/etc/motd", content="x").node) == ["when_host"]
    assert file("/etc/motd", content="x", when_host=None).node.options == {}
    (script,) = host_conditions.checked({**COMMAND, "command": "nginx -t"})
    assert list(script["command"]) == ["/bin/sh", "-c", "nginx -t"] and list(script["reads"]) == ["/etc/nginx"]
    (unit,) = host_conditions.checked({"unit": "php8.2-fpm"})
    assert unit["unit"] == "php8.2-fpm.service"


def test_checked_conditions_are_valid_conditions() -> None:
    """Hooks that change a graph declare its nodes again."""
    written = [COMMAND, {"not": {"package": "nginx", "version": "1,<2"}}, {"any": [{"unit": "a"}, {"path": "/a"}]}]
    once = host_conditions.checked(written)
    assert host_conditions.checked(once) == once and once[1]["not"][0]["version"] == "== 1, < 2"


def test_node_requires_what_its_conditions_look_at() -> None:
    conditions = [{"path": "/srv/app/x"}, {"not": {"package": "nginx"}}, {"any": [{"user": "ann"}, COMMAND]}]
    graphs = [
        directory("/srv/app"),
        package("nginx"),
        user("ann"),
        file("/etc/nginx/site", content="x"),
        directory("/etc/nginx"),
        service("cron", running=True),
        file("/etc/motd", content="x", when_host=conditions),
    ]
    nodes = [graph.node for graph in graphs]
    required, problems = find(nodes, owners(nodes))
    assert not problems and required["file:/etc/motd"] == {
        "directory:/etc/nginx": "its condition",
        "directory:/srv/app": "its directory",  # the nearest directory above what the condition names
        "package:nginx": "its condition",
        "user:ann": "its condition",
    }


def test_conditions_bring_the_node_types_that_read_facets() -> None:
    with collecting() as problems:
        conditions = host_conditions.checked([{"not": {"package": "nginx"}}, {"any": [{"unit": "cron"}]}])
    assert not problems and host_conditions.readers({"when_host": conditions}) == {"package", "service"}
    assert host_conditions.readers({"when_host": host_conditions.checked({"path": "/etc"})}) == set()


def test_block_gives_its_nodes_conditions() -> None:
    with when_host({"package": "nginx"}):
        one = file("/a", content="x", when_host={"user": "ann"}).node
        with when_host([{"path": "/b"}, {"path": "/c"}]):
            two = file("/b", content="x").node
    assert [dict(item) for item in one.options["when_host"]] == [{"package": "nginx"}, {"user": "ann"}]
    assert [dict(item) for item in two.options["when_host"]] == [{"package": "nginx"}, {"path": "/b"}, {"path": "/c"}]
    assert "when_host" not in file("/c", content="x").node.options
    with refused("SC0122") as problems, when_host({"paht": "/a"}):
        file("/d", content="x")
    assert "the `when_host` of a block contains" in problems[0].detail and problems[0].locations[0].file == __file__
