"""Facts with two owners in one definition are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from statecfg import resources as r
from statecfg.graph.graph import merge_graphs
from statecfg.playbook.compile import WireContext, compile_graph
from statecfg.problems import InvalidInput
from tests.each import each

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
Nodes = tuple[str, str, dict[str, Any]]


def compiled(nodes: tuple[Nodes, ...], base: Path) -> None:
    graphs = [getattr(r, kind)(name, **attrs) for kind, name, attrs in nodes]
    compile_graph(merge_graphs(*graphs), WireContext(base=base))


@each(
    "nodes, text",
    [
        ((("user", "a", {"uid": 1500}), ("user", "b", {"uid": 1500})), "user:a and user:b have the same uid: 1500"),
        ((("group", "a", {"gid": 1500}), ("group", "b", {"gid": 1500})), "have the same gid: 1500"),
        (
            (("group", "docker", {"members": ["m2"]}), ("user", "m1", {"groups": ["docker"]})),
            "group:docker manages all of the members of docker, and user:m1 adds m1",
        ),
        ((("group", "docker", {"members": ["m1"]}), ("user", "m1", {"groups": ["docker"]})), "user:m1 adds m1"),
        (
            (("group", "docker", {"members": ["m1"]}), ("user", "m1", {"groups": ["a"], "exact_groups": True})),
            "user:m1 manages all of the groups of m1, and group:docker adds docker",
        ),
        (
            (
                ("authorized_key", "all", {"user": "ann", "all_keys": [KEY]}),
                ("authorized_key", "one", {"user": "ann", "key": KEY}),
            ),
            "authorized_key:all manages all of the keys of ann",
        ),
        (
            (
                ("remove", "/etc/cron.d", {"recursive": True}),
                ("cron", "job", {"command": "true", "schedule": "@daily"}),
            ),
            "cron:job creates something in /etc/cron.d, which remove:/etc/cron.d removes",
        ),
    ],
)
def test_two_owners_of_a_fact_are_refused(nodes: tuple[Nodes, ...], text: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        compiled(nodes, tmp_path)
    assert any(text in found.detail for found in caught.value.problems), caught.value.problems


@each(
    "nodes",
    [
        (("user", "a", {"uid": 1500}), ("user", "b", {"uid": 1501}), ("user", "c", {"absent": True})),
        (("group", "docker", {}), ("user", "a", {"groups": ["docker"]}), ("user", "b", {"groups": ["docker"]})),
        (("group", "docker", {"members": ["b"]}), ("user", "a", {"groups": ["audio"]})),
        (("user", "a", {"groups": ["docker"], "exact_groups": True}), ("group", "docker", {"gid": 999})),
    ],
)
def test_separate_facts_are_accepted(nodes: tuple[Nodes, ...], tmp_path: Path) -> None:
    compiled(nodes, tmp_path)


def test_several_archives_can_be_unpacked_into_one_directory(tmp_path: Path) -> None:
    archives = (("archive", "/srv/a", {"host_source": f"/srv/{name}.tar", "provides": name}) for name in "bc")
    compiled(tuple(archives), tmp_path)
