"""`host.facts`: what definitions read, what is recorded, and which names exist."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from statecfg.facts import catalogue, view
from statecfg.facts.catalogue import Facts
from statecfg.facts.view import HostFacts, MissingFact, UnknownFact
from statecfg.remote import facts as collectors
from tests.each import each

OS = {"family": "debian", "id": "ubuntu", "version": "24.04", "codename": "noble", "name": "Ubuntu 24.04 LTS"}
MOUNT = {"path": "/", "device": "/dev/sda1", "type": "ext4", "options": ["rw"], "size": 9000}
USER = {"uid": 33, "gid": 33, "comment": "", "home": "/var/www", "shell": "/bin/false"}
KNOWN = {
    "os": OS, "cpus": 4, "mounts": [MOUNT], "packages": {"nginx": "1.22", "libc6": "2.36"},
    "users": {"www-data": USER}, "own.rack": {"name": "r7"},
}  # fmt: skip


def facts(**more: Any) -> HostFacts:
    return HostFacts({**KNOWN, **more}, ["rack", "zone"])


def test_values_are_read_by_attribute_and_by_key() -> None:
    read = facts().view
    assert read.os.family == "debian"
    assert read["os"]["family"] == "debian"  # type: ignore[index]  # templates and Hy read by key
    assert read.cpus == 4
    assert read.users["www-data"].uid == 33
    assert read.packages["nginx"] == "1.22"
    assert [mount.path for mount in read.mounts] == ["/"]
    assert read.own["rack"] == {"name": "r7"}
    assert read.own.rack == {"name": "r7"}  # type: ignore[attr-defined]  # as templates read it


def test_each_read_is_recorded_with_its_path() -> None:
    known = facts()
    read = known.view
    assert (read.os.id, read.packages["nginx"], "apache2" in read.packages) == ("ubuntu", "1.22", False)
    assert read.users["www-data"].home == "/var/www"
    assert known.used == {
        "os.id": "ubuntu", "packages[nginx]": "1.22", "packages[apache2]": None, "users[www-data].home": "/var/www",
    }  # fmt: skip
    assert known.names == {"os", "packages", "users"}
    assert dict(read.packages) == KNOWN["packages"]
    assert known.used["packages"] == KNOWN["packages"]


def test_reading_a_missing_fact_records_it_and_reports_nothing() -> None:
    known = HostFacts({}, ["rack"])
    for read in (lambda: known.view.cpus, lambda: known.view.os.family, lambda: known.view.own["rack"]):
        with pytest.raises(MissingFact) as caught:
            read()
        assert caught.value.problems == []
    with pytest.raises(MissingFact):
        assert "nginx" in known.view.packages
    assert set(known.missing) == {"cpus", "os", "own.rack", "packages"}
    assert known.used == {}


@each(
    ("read", "detail", "hint"),
    [
        (lambda read: read.cpu, "a host has no fact `cpu`", "did you mean `cpus`?"),
        (lambda read: read.os.familly, "`os` has no fact `familly`", "did you mean `family`?"),
        (lambda read: read.own["rak"], "the project has no fact `rak`", "did you mean `rack`?"),
        (lambda read: read.mounts[0].paht, "a host has no fact `paht`", "did you mean `path`?"),
    ],
)
def test_unknown_names_are_errors_even_if_the_fact_is_missing(read: Any, detail: str, hint: str) -> None:
    with pytest.raises(UnknownFact) as caught:
        read(facts().view)
    assert (caught.value.problems[0].code, caught.value.problems[0].detail) == ("SC0520", detail)
    assert caught.value.problems[0].help.startswith(hint)
    with pytest.raises(UnknownFact):
        _ = HostFacts({}).view.os.familly  # type: ignore[attr-defined]  # on purpose


def test_parts_become_data_where_a_definition_uses_them_as_a_value() -> None:
    known = facts()
    assert view.plain(known.view.os) == OS
    assert view.plain(known.view.mounts) == [MOUNT]
    assert view.plain(known.view.users) == {"www-data": USER}
    assert view.plain([1, {"a": 2}]) == [1, {"a": 2}]


def test_the_catalogue_describes_every_fact_that_hosts_collect() -> None:
    assert set(collectors.NAMES) == set(catalogue.NAMES)
    for name, cls in vars(catalogue).items():
        if dataclasses.is_dataclass(cls):
            assert set(catalogue.described(cls)) == set(catalogue.fields_of(cls)), name


@each(
    ("name", "value", "wrong"),
    [
        ("cpus", 4, ""),
        ("cpus", "4", "cpus must be a number"),
        ("cpus", True, "cpus must be a number"),
        ("os", {**OS, "more": 1}, ""),
        ("os", {"id": "x"}, "os has no family"),
        ("os", {**OS, "id": None}, "os.id must be text"),
        ("os", [], "os must be a map"),
        ("mounts", [{**MOUNT, "options": [1]}], "mounts[0].options[0] must be text"),
        ("mounts", {}, "mounts must be a list"),
        ("users", {"a": {**USER, "uid": "0"}}, "users[a].uid must be a number"),
        ("packages", {"nginx": 1}, "packages[nginx] must be text"),
        ("packages", {1: "x"}, "packages must be a map"),
        ("own.rack", [{"any": None}], ""),
    ],
)
def test_values_of_the_wrong_type_are_refused(name: str, value: Any, wrong: str) -> None:
    assert catalogue.wrong_fact(name, value) == wrong


def test_facts_have_types_for_type_checkers() -> None:
    read: Facts = facts().view
    family: str = read.os.family
    count: int = read.cpus
    assert (family, count) == ("debian", 4)
