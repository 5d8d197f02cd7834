"""Ansible modules on the host: what their output means, and what a host with an old Python says."""

from __future__ import annotations

from typing import Any

import pytest

from statecfg.remote.graph.model import Blob, CheckError, HostNode
from statecfg.remote.machine.changes import Changes
from statecfg.remote.machine.memory import MemoryMachine
from statecfg.resources.programs import ansible_runs
from tests.each import each

NAME = "ansible.builtin.lineinfile"


def node(**code: Any) -> HostNode:
    attrs = {"module": NAME, "code": {"entry": "a", "content": Blob.of(b""), "check_mode": True, **code}}
    return HostNode("ansible_module:line", "ansible_module", attrs=attrs)


def test_a_python_that_is_too_old_is_named() -> None:
    expected = rf"{NAME} needs Python 9\.9 or newer on the host; .+ is Python 3\.\d+: install a newer one, and set"
    with pytest.raises(CheckError, match=expected):
        ansible_runs.check(node(python=[9, 9]), MemoryMachine())


def test_the_result_is_the_last_object_that_a_module_prints() -> None:
    output = b'warning\n{"a": 1}\n\n  {"changed": true}\n{ not json\n[1]\n'
    assert ansible_runs.answer(NAME, output, b"") == {"changed": True}


def test_the_log_has_what_a_module_says_and_no_arguments() -> None:
    result = {"changed": True, "msg": "line added", "backup": "", "invocation": {"module_args": {"line": "a"}}, "rc": 0}
    assert ansible_runs.log(result) == '{\n "msg": "line added",\n "rc": 0\n}'
    assert ansible_runs.log({"changed": False, "diff": []}) == ""


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ({"changed": False}, ""),
        ({"failed": True, "msg": " no such group \n"}, f"the Ansible module {NAME} failed: no such group"),
        ({"failed": True}, f"the Ansible module {NAME} failed: it gives no reason"),
    ],
)
def test_the_reason_of_a_failure_is_the_message_of_the_module(result: dict[str, Any], reason: str) -> None:
    assert ansible_runs.failure(NAME, result) == reason


@each(
    ("diff", "expected"),
    [
        (None, []),
        ([], []),
        (["text"], []),
        ({"before": "a", "after": "a"}, []),
        (
            {"before_header": "/f", "before": {"mode": "0644", "a": 0}, "after": {"mode": "0600", "a": 0}},
            ["/f mode"],
        ),
        ({"after_header": "/f (content)", "before": "a", "after": "b"}, ["/f content"]),
        ({"before": {}, "after": {"state": "touch"}}, [f"{NAME} state"]),
        ([{"prepared": "+ a"}, {"before_header": "/g", "before": "", "after": "b"}], [f"{NAME} diff", "/g content"]),
    ],
)
def test_each_form_of_a_diff_becomes_changes(diff: object, expected: list[str]) -> None:
    changes = Changes()
    ansible_runs.note(changes, NAME, diff)
    assert [f"{change['object']} {change['field']}" for change in changes.report()] == expected
