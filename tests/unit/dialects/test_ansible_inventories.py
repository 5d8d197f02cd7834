"""Ansible's inventories: the same hosts, groups and variables as `ansible-inventory --list`, which was recorded.

The directory `ansible/` has the inventories and the recordings; `ansible/record.py` makes them again.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from statecfg.graph.value import Value
from statecfg.playbook.inventory import Inventory
from statecfg.problems import InvalidInput
from tests.each import each
from tests.unit.dialects.ansible import comparing
from tests.unit.dialects.ansible.comparing import REFUSED

CASES = [case.name for case in comparing.cases()]


def load(case: str) -> Inventory:
    directory = comparing.HERE / case
    return comparing.load(comparing.sources(directory), directory)


def test_thirty_inventories_are_the_same_as_in_ansible():
    assert len(CASES) - len(REFUSED) == 30


@each("case", [case for case in CASES if case not in REFUSED])
def test_inventory_is_the_same_as_in_ansible(case):
    assert not list(comparing.differences(comparing.recorded(comparing.HERE / case), load(case)))


@each("case", REFUSED)
def test_inventory_that_differs_is_refused_with_its_place(case):
    with pytest.raises(InvalidInput) as caught:
        load(case)
    assert sorted(item.code for item in caught.value.problems) == sorted(REFUSED[case])
    assert all(item.locations[0].line for item in caught.value.problems)


def test_variables_say_which_file_and_line_set_them():
    found = load("14-host-files")
    won = {name: f"{Path(at.file).name}:{at.line}" for name, (_, at) in found.who_won("h1").items()}
    assert won == {"a": "hosts.ini:2", "b": "all.yml:1", "c": "hosts.ini:7", "d": "h1.yml:1", "e": "g.yml:1"}


def test_connection_variables_become_settings():
    box = load("05-vagrant").hosts["box-2"]
    assert (box.address, box.port, box.login.user) == ("127.0.0.1", 2200, "vagrant")
    assert box.login.identity_files == ("/home/me/.vagrant.d/key",)
    jump = load("17-jump").hosts
    assert [jump[name].proxy_jump for name in ("bastion", "app1", "app2", "app3", "old1")] == [
        None, "ubuntu@198.51.100.7", "ubuntu@198.51.100.7", None, "admin@198.51.100.8",
    ]  # fmt: skip
    assert (jump["old1"].address, jump["old1"].port, jump["old1"].login.user) == ("10.2.0.1", 22, "admin")
    local = load("18-local").hosts
    assert [(host.transport, host.python) for host in local.values()] == [
        ("local", None), ("local", "/usr/bin/python3"), ("ssh", None),
    ]  # fmt: skip
    become = load("19-become").hosts
    assert {name: (host.login.become, host.login.become_user) for name, host in become.items()} == {
        "w1": ("sudo", "root"), "w2": (None, "root"), "w3": ("doas", "app"), "r1": (None, "root"),
    }  # fmt: skip


def test_passwords_are_secrets():
    host = load("26-passwords").hosts["w1"]
    shown = {name: str(value) for name, value in host.vars.items() if isinstance(value, Value)}
    assert sorted(shown) == ["ansible_become_pass", "ansible_password", "ansible_ssh_pass", "db_password"]
    assert not any(word in repr(host) for word in ("correct horse", "battery-staple", "tr0ub4dor"))
    assert host.vars["password_file"] == "/etc/app/password"
    assert host.login.become_password is not None and host.login.become_password.reveal() == "battery-staple"
