"""Wrong content fails in the plan, for every node type that lets a program check what it writes."""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from statecfg.problems import InvalidInput
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.machine.memory import MemoryMachine
from statecfg.remote.machine.world import Probe
from tests.unit.resources.conformance.types import STATE_DIR, TYPES, Case, examples, prepared

# The types that have a validator of their own. All types with an attribute `validate` follow from their parameters.
OWN = {"ca_certificate", "nftables", "ssh_config", "sshd_config", "sudoers", "systemd_unit"}
# Types with the attribute whose plan does not run it.
LATER = {
    "download": "its content is known only in the apply",
    "release_binary": "its content is known only in the apply",
}


def refusing(machine: MemoryMachine) -> None:
    """Let every validator refuse what it gets."""
    former = machine.base.probe

    def probe(argv: list[str], timeout: float = 60.0, **options: Any) -> Probe:
        if argv[0] != sys.executable:
            return former(argv, timeout, **options)
        started = json.loads(options["input"])["started"]
        return Probe(1, b"", f"{started} whole\nit is wrong".encode())

    machine.base.probe = probe


def validated(name: str) -> bool:
    return "validate" in inspect.signature(REGISTRY[name].function).parameters


@pytest.mark.parametrize("name", TYPES)
def test_wrong_content_fails_in_the_plan(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATECFG_STATE_DIR", STATE_DIR)
    outcomes = set()
    for number, case in enumerate(examples(name)):
        data = case.data
        if data["node"].get("absent"):
            continue
        if validated(name) and "validate" not in data["node"]:
            data = {**data, "node": {**data["node"], "validate": ["checker", "{}"]}}
        try:
            example = prepared(Case(case.place, data), tmp_path / str(number))
        except InvalidInput:
            continue  # this case can't have a validator
        refusing(example.machine)
        step = example.step(example.plan())
        outcomes.add("refused" if "it is wrong" in step.reason else step.outcome)
    expected = (validated(name) or name in OWN) and name not in LATER
    assert ("refused" in outcomes) == expected, outcomes
