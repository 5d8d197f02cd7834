"""Snapshots in ledgers of 0.4.0 of types that have got their undo from a facet entry since: they are undone."""

from __future__ import annotations

from typing import Any

from statecfg.remote.graph.model import HostNode
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.machine.memory import MemoryMachine
from statecfg.remote.run.planning import normalised
from statecfg.resources import available
from tests.each import each
from tests.unit.resources.conformance.test_undo import declared_type

SERVER = {"port": 5432, "name": "shop"}
ROLE, PG = "role shop on 5432", "server on 5432"
USER, SOCKET = "user shop@localhost on /run/mysqld/mysqld.sock", "/run/mysqld/mysqld.sock"
FLAGS: dict[str, Any] = dict.fromkeys(
    ("login", "superuser", "create_databases", "create_roles", "replication", "bypass_rls"), False
)


def file_of(path: str) -> dict[str, Any]:
    """Return the snapshot of a file that did not exist."""
    return {"path": path, "was": None, "written": True}


@each(
    "name, attrs, memory, facets, restored, left",
    [
        (
            "group", {"name": "app", "gid": 7, "members": ["b"]}, {"entry": {"gid": 5, "members": ["a"]}},
            {"groups": {"app": {"gid": 7, "members": ["b"]}}, "users": {"a": {}, "b": {}}},
            ("groups", "app", {"gid": 5, "members": ["a"]}), [],
        ),
        (
            "user", {"name": "ann", "uid": 7, "group": "app", "password_hash": "***"},
            {
                "entry": {"uid": 5, "gid": 5, "home": "/h", "shell": "/s", "comment": "", "groups": []}, "own": None,
                "password": True, "home": "/h", "had_home": True, "group": "ann",
            },
            {
                "users": {"ann": {"uid": 7, "gid": 9, "home": "/h", "shell": "/s", "comment": "", "groups": []}},
                "groups": {"app": {"gid": 9}},
            },
            ("users", "ann", {"uid": 5, "gid": 5, "home": "/h", "shell": "/s", "comment": "", "groups": []}),
            ["the password of the user ann stays: statecfg does not record passwords"],
        ),
        (
            "postgresql_user", {**SERVER, "login": True, "member_of": ["b"], "password": "***"},
            {"entry": {**FLAGS, "connection_limit": -1, "member_of": ["a"]}, "password": True},
            {"postgresql": {
                PG: {"user": "postgres", "version": 150000}, "role a on 5432": {}, "role b on 5432": {},
                ROLE: {**FLAGS, "login": True, "connection_limit": -1, "member_of": ["b"]},
            }},
            ("postgresql", ROLE, {**FLAGS, "connection_limit": -1, "member_of": ["a"]}),
            ["the password of the role shop stays: statecfg does not record passwords"],
        ),
        (
            "mariadb_user",
            {"name": "shop", "host": "localhost", "socket": SOCKET, "locked": True, "unix_socket": True},
            {"entry": {"login": [], "locked": False, "max_connections": 0, "tls": "none"}, "login": True},
            {"mariadb": {
                f"server on {SOCKET}": {"version": "10.11.6-MariaDB", "all": []},
                USER: {"login": ["unix_socket"], "locked": True, "max_connections": 0, "tls": "none"},
            }},
            ("mariadb", USER, {"login": [], "locked": False, "max_connections": 0, "tls": "none"}), [],
        ),
        (
            "hostname", {"name": "web1", "path": "/etc/hostname", "content": "web1\n"},
            {**file_of("/etc/hostname"), "name": "old"}, {"hostname": {"running": {"name": "web1"}}},
            ("hostname", "running", {"name": "old"}), [],
        ),
        (
            "sysctl", {"name": "vm.swappiness", "value": 5, "path": "/etc/sysctl.d/a.conf"},
            {"path": "/etc/sysctl.d/a.conf", "exists": False, "lines": [], "last": None, "value": "60"},
            {"sysctl": {"vm.swappiness": {"value": "5"}}}, ("sysctl", "vm.swappiness", {"value": "60"}), [],
        ),
        (
            "kernel_module", {"name": "dummy"},
            {
                "loaded": False, "boot": file_of("/etc/modules-load.d/dummy.conf"),
                "options": file_of("/etc/modprobe.d/dummy.conf"),
            },
            {"module": {"dummy": {"loaded": True}}}, ("module", "dummy", None), [],
        ),
    ],
)  # fmt: skip
def test_snapshots_of_0_4_0_are_undone(
    name: str, attrs: Any, memory: Any, facets: Any, restored: tuple[str, str, Any], left: list[str]
) -> None:
    assert name in available()
    assert declared_type(name)
    machine = MemoryMachine({"/proc/modules": "", "/h": None}, facets)
    node = HostNode(f"{name}:x", name, attrs=attrs)
    spec = normalised(REGISTRY[name].run_undo(node, memory, machine, {}), node)
    for step in spec.steps:
        assert step.perform(machine)["status"] == "ok"
    facet, key, fields = restored
    assert machine.entry(facet, key) == fields
    assert spec.left == left
    assert normalised(REGISTRY[name].run_undo(node, memory, machine, {}), node).steps == []
