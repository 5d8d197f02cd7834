"""Secrets in nodes of every type: neither reports nor the ledger show them, and undo works without them.

Each text of a node, at any depth, gets a secret as its end. Then either the playbook refuses it, because others could
read it on the host, or the rules below hold.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from statecfg.graph.opaque import Secret
from statecfg.problems import InvalidInput
from statecfg.remote.graph.model import CheckError, HostNode, Unknown
from statecfg.remote.machine.hidden import restored
from statecfg.remote.run.definitions import StoredDefinitions
from statecfg.remote.run.order import Order
from statecfg.remote.run.plan import Step
from statecfg.remote.run.report import step_report
from statecfg.remote.wire.frames import encode_value
from tests.unit.resources.conformance.test_lines import places
from tests.unit.resources.conformance.test_undo import INCOMPLETE, Applied, alone, state_of
from tests.unit.resources.conformance.types import STATE_DIR, TYPES, Example, examples, prepared
from tests.unit.resources.test_cases import Case

SECRET = "zQ9-s3cret-value"
# What the types with secrets must accept. The others refuse secrets, because their files are for all users.
ACCEPTING = {"file", "line_in_file", "block_in_file", "replace", "json_key", "yaml_key", "toml_key", "ini_key", "user"}


def with_secret(value: Any, place: tuple[Any, ...]) -> Any:
    """Return a value in which the text at a place ends with a secret."""
    if not place:
        return value + Secret("tok", SECRET)
    copy = value.copy()
    copy[place[0]] = with_secret(value[place[0]], place[1:])
    return copy


def accepted(case: Case, place: tuple[Any, ...], directory: Path) -> Example | None:
    """Return an example with a secret; None if the playbook or the plan refuses it."""
    node = with_secret(case.data["node"], place)
    try:
        example = prepared(replace(case, data={**case.data, "node": node}), directory)
        step = example.step(example.plan())
    except InvalidInput:
        return None
    return example if step.outcome == "changed" else None


def shown(definitions: StoredDefinitions, step: Step) -> str:
    """Return the report of a node as the host sends it."""
    return json.dumps(definitions.mask(encode_value(step_report(step), -1)), ensure_ascii=False)


def leaks(text: str) -> list[str]:
    """Return the forms of the secret that a text contains: itself, and a digest that anybody could compare."""
    forms = {"the secret": SECRET, "its digest": hashlib.sha256(SECRET.encode()).hexdigest()}
    return [name for name, form in forms.items() if form in text]


def restores(example: Example, stored: Any, definitions: StoredDefinitions) -> list[Any]:
    """Apply an example, and undo it without the secret; return what differs from the state before.

    :param stored: the attributes of the node in the ledger
    """
    try:
        applied = Applied(example)
        node = applied.node
        applied.node = HostNode(node.provides, node.type, (), restored(stored, definitions.secret_digests))
        spec = applied.undo()
    except (CheckError, Unknown):  # the case has no answer of the program that undo asks first
        return []
    now: Any = state_of(applied.machine)
    different = [key for key in {*applied.was, *now} if applied.was.get(key) != now.get(key)]
    return [] if spec.left else different


@pytest.mark.parametrize("name", TYPES)
def test_no_report_and_no_ledger_shows_a_secret(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATECFG_STATE_DIR", STATE_DIR)
    directories: Iterator[Path] = (tmp_path / str(number) for number in itertools.count())
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    order = Order.from_json(
        {"run": "r", "mode": "apply", "who": "", "playbook": "p", "types": {}, "secrets": {"tok": SECRET}}
    )
    definitions = StoredDefinitions(order, "lineage", str(state))
    seen, found = set(), 0
    for case in examples(name):
        for place in places(case.data["node"]):
            kind = tuple("#" if isinstance(part, int) else part for part in place)
            if kind in seen or place[-1] is None:
                continue
            seen.add(kind)
            example = accepted(case, place, next(directories))
            if example is None:
                continue
            found += 1
            where = f"{case.place}: {place}"
            assert leaks(shown(definitions, example.step(example.plan()))) == [], where
            stored = json.loads(json.dumps(definitions.of(example.node()).attrs))
            assert leaks(json.dumps(stored)) == [], where
            if name not in INCOMPLETE and alone(case):
                assert restores(example, stored, definitions) == [], where
    assert found or name not in ACCEPTING
