"""Automatic requirements: what nodes need on the host, and which requirements are left out because of cycles."""

from __future__ import annotations

import random
from typing import Any

import pytest

from statecfg.graph import automatic_cycles
from statecfg.graph.automatic_cycles import LeftOut, without_cycles
from statecfg.graph.graph import Graph, merge_graphs
from statecfg.playbook.compile import Definition, WireContext, compile_graph
from statecfg.remote.graph.nodetype import node_type
from statecfg.remote.graph.values import AbsolutePath, Name
from statecfg.resources import (
    acl,
    archive,
    command,
    cron,
    directory,
    download,
    file,
    group,
    hard_link,
    line_in_file,
    logrotate,
    package,
    remove,
    service,
    ssh_key,
    sudoers,
    symlink,
    systemd_unit,
    tls_certificate,
    tls_key,
    user,
)
from statecfg.run.evaluation import tagged
from tests.each import each
from tests.unit.graph.node_types import of_edges, refused, t_path


@node_type
def t_mount(path: AbsolutePath) -> None:
    """A mount."""


@t_mount.identity
def _mount_identity(attrs: dict[str, Any]) -> list[str]:
    return ["mount:" + attrs["path"]]


@node_type
def t_needing(name: Name, *, wants: list[str]) -> None:
    """A node that needs what it lists."""


@t_needing.needs
def _needs(attrs: dict[str, Any]) -> list[str]:
    return [*attrs["wants"]]


def compiled(*graphs: Graph) -> Definition:
    return compile_graph(merge_graphs(*graphs), WireContext())


def automatic(*graphs: Graph) -> dict[str, dict[str, str]]:
    """Return the automatic requirements, after a check that exactly these are in the layers in addition."""
    definition = compiled(*graphs)
    written = {node.provides: set(node.requires) for node in merge_graphs(*graphs).nodes()}
    earlier: set[str] = set()
    for layer in definition.layers:
        for node in layer:
            more = set(node.get("requires", ())) - written[node["provides"]]
            assert more == set(definition.automatic.get(node["provides"], ()))
            assert earlier.issuperset(node.get("requires", ()))
        earlier |= {node["provides"] for node in layer}
    for name, others in definition.automatic.items():
        assert list(others) == sorted(others), name  # so digests of definitions don't depend on the process
    return definition.automatic


DIRECTORY, OWNER, PROGRAM, UNIT = "its directory", "its owner", "its program", "its unit"
PACKAGE = "its package"


@each(
    ("graphs", "expected"),
    [
        pytest.param(
            lambda: [directory("/srv/a"), file("/srv/a/b/c", content="")],
            {"file:/srv/a/b/c": {"directory:/srv/a": DIRECTORY}},
            id="the nearest directory above",
        ),
        pytest.param(
            lambda: [directory("/srv"), directory("/srv/a"), file("/srv/a/x", content="")],
            {"directory:/srv/a": {"directory:/srv": DIRECTORY}, "file:/srv/a/x": {"directory:/srv/a": DIRECTORY}},
            id="only the nearest of several directories",
        ),
        pytest.param(
            lambda: [
                user("a"),
                file("/srv/a", content="x\n"),
                line_in_file("/srv/a", line="y"),
                acl("/srv/a", entries=["user:a:r--"]),
            ],
            {
                "line_in_file:/srv/a": {"file:/srv/a": "its path"},
                "acl:/srv/a": {"file:/srv/a": "its path", "user:a": "its user"},
            },
            id="the node that makes a path which other nodes edit",
        ),
        pytest.param(
            lambda: [directory("/srv"), file("/srv/a", mode="0600"), line_in_file("/srv/a", line="y", create=True)],
            {name: {"directory:/srv": DIRECTORY} for name in ("file:/srv/a", "line_in_file:/srv/a")},
            id="a file that only sets a mode does not make the path",
        ),
        pytest.param(
            lambda: [
                directory("/srv"),
                download("/srv/a.tar", url="https://x.test/a.tar", checksum="sha256:" + "0" * 64),
                archive("/srv/a", host_source="/srv/a.tar"),
                hard_link("/srv/b", target="/srv/a.tar"),
                remove("/srv/c"),
                user("u", home="/srv/c/u"),
            ],
            {
                "archive:/srv/a": {"directory:/srv": DIRECTORY, "download:/srv/a.tar": "its source"},
                "download:/srv/a.tar": {"directory:/srv": DIRECTORY},
                "hard_link:/srv/b": {"directory:/srv": DIRECTORY, "download:/srv/a.tar": "its path"},
                "user:u": {"directory:/srv": DIRECTORY},
            },
            id="the source of an archive, the target of a hard link, and nothing that is removed",
        ),
        pytest.param(
            lambda: [symlink("/srv/a", target="b"), line_in_file("/srv//a/./x", line="y")],
            {"line_in_file:/srv//a/./x": {"symlink:/srv/a": DIRECTORY}},
            id="a link to a directory, and a path in another spelling",
        ),
        pytest.param(
            lambda: [directory("/srv/run"), t_path("/var/run/x"), directory("/run")],
            {"t_path:/var/run/x": {"directory:/run": DIRECTORY}},
            id="a path below a link that all systems have, in a type that has only the identity of a path",
        ),
        pytest.param(
            lambda: [directory("/srv"), t_mount("/srv"), file("/srv/x", content="")],
            {"t_mount:/srv": {"directory:/srv": "its path"}, "file:/srv/x": {"t_mount:/srv": "its mount"}},
            id="a mount, which requires its own directory",
        ),
        pytest.param(
            lambda: [
                user("a"),
                package("git"),
                directory("/d"),
                t_needing("x", wants=["user:a", "package:git", "path:/d"]),
            ],
            {"t_needing:x": {"user:a": "its user", "package:git": "its package", "directory:/d": "its path"}},
            id="what a node type says",
        ),
        pytest.param(
            lambda: [user("a"), group("b"), file("/x", content="", owner="a", group="b")],
            {"file:/x": {"user:a": OWNER, "group:b": "its group"}},
            id="owner and group",
        ),
        pytest.param(
            lambda: [group("b"), group("c"), user("a", group="b", groups=["c"]), group("d", members=["a"])],
            {"user:a": {"group:b": "its group", "group:c": "its group"}, "group:d": {"user:a": "its member"}},
            id="groups of a user, and members of a group",
        ),
        pytest.param(
            lambda: [user("a"), file("/x", content="", owner="1000"), user("b")], {}, id="an owner without a node"
        ),
        pytest.param(
            lambda: [package("webd"), service("webd"), service("webd.timer"), service("webd@1")],
            {name: {"package:webd": UNIT} for name in ("service:webd", "service:webd.timer", "service:webd@1")},
            id="units of the package with the same name",
        ),
        pytest.param(
            lambda: [
                package("openssh-server", provides_units=["ssh", "job@"]),
                *map(service, ["ssh", "cron", "job@1"]),
            ],
            {name: {"package:openssh-server": UNIT} for name in ("service:ssh", "service:job@1")},
            id="a unit that a package lists",
        ),
        pytest.param(
            lambda: [
                package("webd"),
                file("/etc/systemd/system/webd.service", content=""),
                file("/usr/lib/systemd/system/job@.service", content=""),
                service("webd"),
                service("job@1"),
            ],
            {
                "service:webd": {"file:/etc/systemd/system/webd.service": UNIT},
                "service:job@1": {"file:/usr/lib/systemd/system/job@.service": UNIT},
            },
            id="a unit file is closer than a package",
        ),
        pytest.param(
            lambda: [
                package("webd"),
                file("/etc/systemd/system/webd.service.d/limits.conf", content=""),
                file("/etc/systemd/system/job@.service.d/a.conf", content=""),
                file("/run/systemd/system/job@1.service.d/b.conf", content=""),
                file("/etc/systemd/system/webd.service.d/README", content=""),
                service("webd"),
                service("job@1"),
            ],
            {
                "service:webd": {"package:webd": UNIT, "file:/etc/systemd/system/webd.service.d/limits.conf": UNIT},
                "service:job@1": {
                    "file:/etc/systemd/system/job@.service.d/a.conf": UNIT,
                    "file:/run/systemd/system/job@1.service.d/b.conf": UNIT,
                },
            },
            id="the drop-ins of a unit",
        ),
        pytest.param(
            lambda: [
                user("app"),
                group("web"),
                file("/opt/run", content=""),
                systemd_unit("app", sections={"Service": {"User": "app", "SupplementaryGroups": "a web"}}),
                systemd_unit(
                    "app", drop_in="more", provides="more", sections={"Service": {"ExecStop": ["-/opt/run x"]}}
                ),
                systemd_unit("app.timer", sections={"Timer": {"OnCalendar": "daily"}}),
                systemd_unit("other.socket", sections={"Socket": {"Service": "app.service"}}),
                service("app"),
                service("app.timer"),
            ],
            {
                "systemd_unit:app": {"user:app": "its user", "group:web": "its group"},
                "more": {"systemd_unit:app": UNIT, "file:/opt/run": PROGRAM},
                "systemd_unit:app.timer": {"systemd_unit:app": UNIT},
                "systemd_unit:other.socket": {"systemd_unit:app": UNIT},
                "service:app": {"systemd_unit:app": UNIT, "more": UNIT},
                "service:app.timer": {"systemd_unit:app.timer": UNIT},
            },
            id="what the files of units name",
        ),
        pytest.param(
            lambda: [
                *(package(name) for name in ("cron", "sudo", "logrotate")),
                user("app"),
                file("/opt/run", content=""),
                cron("job", schedule="@daily", command="/opt/run --all", user="app"),
                sudoers("rule", users=["app"], commands=["ALL"]),
                logrotate("app", paths=["/var/log/app.log"]),
            ],
            {
                "cron:job": {"package:cron": PACKAGE, "user:app": "its user", "file:/opt/run": PROGRAM},
                "sudoers:rule": {"package:sudo": PACKAGE},
                "logrotate:app": {"package:logrotate": PACKAGE},
            },
            id="the packages that read a file, and the user and program of a cron job",
        ),
        pytest.param(
            lambda: [
                package("openssl"),
                package("openssh-client", provides_programs=["ssh-keygen"]),
                user("app"),
                directory("/srv/tls"),
                tls_key("/srv/tls/a.key", owner="app"),
                tls_certificate("/srv/tls/a.pem", key="/srv/tls/a.key", names=["a.test"]),
                ssh_key("/srv/tls/id"),
            ],
            {
                "tls_key:/srv/tls/a.key": {
                    "directory:/srv/tls": DIRECTORY,
                    "package:openssl": PROGRAM,
                    "user:app": "its user",
                },
                "tls_certificate:/srv/tls/a.pem": {
                    "directory:/srv/tls": DIRECTORY,
                    "package:openssl": PROGRAM,
                    "tls_key:/srv/tls/a.key": "its path",
                },
                "ssh_key:/srv/tls/id": {"directory:/srv/tls": DIRECTORY, "package:openssh-client": PROGRAM},
            },
            id="keys and certificates, and the programs that create them",
        ),
        pytest.param(
            lambda: [
                package("git"),
                package("sudo:amd64", provides_programs=["visudo"]),
                file("/opt/tool", content=""),
                directory("/opt/work"),
                command("clone", argv=["/usr/bin/git", "clone"], cwd="/opt/work"),
                command("tool", argv=["/opt/tool", "git"]),
                file("/etc/sudoers.d/x", content="", validate=["visudo", "-cf", "{}"]),
            ],
            {
                "command:clone": {"package:git": PROGRAM, "directory:/opt/work": "its working directory"},
                "command:tool": {"file:/opt/tool": PROGRAM},
                "file:/etc/sudoers.d/x": {"package:sudo:amd64": PROGRAM},
            },
            id="programs",
        ),
        pytest.param(
            lambda: [
                file("/etc/apt/sources.list.d/x.sources", content=""),
                file("/etc/apt/a", content=""),
                package("x1"),
            ],
            {"package:x1": {"file:/etc/apt/sources.list.d/x.sources": "its repository"}},
            id="repositories",
        ),
        pytest.param(
            lambda: [package("zsh"), directory("/home"), user("a", home="/home/a", shell="/usr/bin/zsh")],
            {"user:a": {"directory:/home": DIRECTORY, "package:zsh": PROGRAM}},
            id="the home directory and the shell of a user",
        ),
        pytest.param(
            lambda: [
                package("webd", absent=True),
                service("webd"),
                directory("/srv/a"),
                file("/srv/a/b", absent=True),
                user("u", absent=True),
                file("/srv/c", content="", owner="u"),
            ],
            {},
            id="nothing that is absent",
        ),
        pytest.param(
            lambda: [directory("/srv/a"), file("/srv/a/b", content="", requires=["directory:/srv/a"])],
            {},
            id="requirements in the playbook stay as they are",
        ),
    ],
)
def test_node_requires_what_it_needs(graphs: Any, expected: dict[str, dict[str, str]]) -> None:
    assert automatic(*graphs()) == expected


def test_node_type_that_needs_an_unknown_kind_is_an_error() -> None:
    with refused("SC0119") as found:
        compiled(t_needing("x", wants=["usr:a"]))
    assert "needs of t_needing returned 'usr:a' for t_needing:x" in found[0].detail


def test_tags_select_what_the_selected_nodes_require_automatically() -> None:
    graph = merge_graphs(directory("/srv/a"), directory("/srv/b"), file("/srv/a/x", content="", tags=["t"]))
    assert [node.provides for node in tagged(graph, ["t"]).nodes()] == ["directory:/srv/a", "file:/srv/a/x"]


def test_a_package_keeps_its_lists_on_the_controller() -> None:
    ((node,),) = compiled(package("tool", provides_units=["a"], provides_programs=["b"])).layers
    assert "tool" in node["attrs"].values() and not {"provides_units", "provides_programs"} & set(node["attrs"])


def test_requirement_that_would_close_a_cycle_is_left_out() -> None:
    definition = compiled(
        file("/etc/webd.conf", content="", validate=["webd", "-t", "{}"]),
        package("webd", requires=["file:/etc/webd.conf"]),
        service("webd"),
    )
    assert definition.automatic == {"service:webd": {"package:webd": UNIT}}
    left_out = LeftOut("file:/etc/webd.conf", "package:webd", PROGRAM, ("package:webd", "file:/etc/webd.conf"))
    assert definition.left_out == [left_out]


def test_an_owner_is_better_than_a_directory() -> None:
    definition = compiled(user("app", home="/srv/app"), directory("/srv", owner="app"), file("/srv/x", content=""))
    assert definition.automatic == {
        "directory:/srv": {"user:app": OWNER},
        "file:/srv/x": {"directory:/srv": DIRECTORY},
    }
    assert [(item.node, item.required) for item in definition.left_out] == [("user:app", "directory:/srv")]


def test_a_cycle_in_the_playbook_stays_an_error() -> None:
    with refused("SC0113") as found:
        compiled(
            file("/srv/a", content="", requires=["directory:/srv"]),
            directory("/srv", requires=["file:/srv/a"]),
            file("/srv/b", content=""),
        )
    assert "directory:/srv → file:/srv/a → directory:/srv" in found[0].detail


def random_case(seed: int) -> tuple[dict[str, list[str]], dict[str, dict[str, str]]]:
    rng = random.Random(seed)
    names = [f"n{index}" for index in range(rng.randint(2, 12))]
    written = {name: [other for other in names[:i] if rng.random() < 0.2] for i, name in enumerate(names)}
    more = {name: {other: "x" for other in names if other != name and rng.random() < 0.2} for name in names}
    return written, {name: others for name, others in more.items() if others}


def reaches(edges: dict[str, set[str]], start: str, end: str) -> bool:
    seen, waiting = {start}, [start]
    while waiting:
        for other in edges[waiting.pop()] - seen:
            seen.add(other)
            waiting.append(other)
    return end in seen


@each("seed", range(150))
def test_only_requirements_that_close_a_cycle_are_left_out(seed: int) -> None:
    written, more = random_case(seed)
    nodes = list(of_edges(written).nodes())
    kept, left_out = without_cycles(nodes, more)
    edges = {name: {*written[name], *kept.get(name, ())} for name in written}
    assert not any(reaches(edges, other, name) for name in edges for other in edges[name])
    for item in left_out:
        assert item.required not in kept.get(item.node, ()) and more[item.node][item.required] == item.reason
        assert (item.path[0], item.path[-1]) == (item.required, item.node)
        assert all(after in edges[before] for before, after in zip(item.path, item.path[1:], strict=False))
    assert sum(map(len, kept.values())) + len(left_out) == sum(map(len, more.values()))
    shuffled = random.Random(seed + 1).sample(sorted(more.items()), len(more))
    assert without_cycles(nodes[::-1], dict(shuffled)) == (kept, left_out)


def test_a_search_that_takes_too_long_leaves_out_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automatic_cycles, "MAX_STEPS", 1)
    nodes = list(of_edges({"a": ["b"], "b": ["c"], "c": [], "d": ["a"]}).nodes())
    kept, left_out = without_cycles(nodes, {"c": {"a": "x", "d": "x"}, "b": {"d": "x"}})
    assert not kept
    assert {(item.node, item.required): bool(item.path) for item in left_out} == {
        ("c", "a"): False,
        ("c", "d"): True,
        ("b", "d"): True,
    }
