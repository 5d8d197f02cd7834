"""A new number of a user or a group: files keep the old one, and the plan says which."""

from __future__ import annotations

from statecfg.remote.graph.model import HostNode
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.machine.memory import MemoryMachine
from statecfg.resources import group, user

FACETS = {
    "users": {"app": {"uid": 2000, "gid": 2000, "home": "/srv/app", "shell": "/bin/sh", "comment": "", "groups": []}},
    "groups": {"app": {"gid": 2000, "members": []}},
}


def left(kind: str, **attrs: object) -> list[str]:
    node = HostNode(f"{kind}:app", kind, (), {"name": "app", **attrs})
    check = REGISTRY[kind].methods["check"]
    return list(check(node, {node.provides: node}, MemoryMachine(facets=FACETS)).left)


def test_a_new_number_names_the_files_that_keep_the_old_one() -> None:
    assert user and group  # their import registers them
    assert left("user", uid=2001) == [
        "files outside of /srv/app that belong to UID 2000 keep this number; to find them: find / -xdev -uid 2000"
    ]
    assert left("group", gid=2001) == [
        "files that belong to GID 2000 keep this number; to find them: find / -xdev -gid 2000"
    ]
    assert left("user", uid=2000) == left("group", gid=2000) == left("user") == []
