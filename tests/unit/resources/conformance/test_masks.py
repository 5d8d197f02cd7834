"""Texts that look like the mask of a secret: every node type treats them as any other text.

Each text of a node, at any depth, gets such an end. Then the plan, its differences, the apply and the undo are those of
a text with other letters.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from statecfg.problems import InvalidInput
from statecfg.remote.graph.masks import mask
from statecfg.remote.graph.model import Blob, CheckError, Unknown
from statecfg.remote.machine.changes import as_json
from tests.unit.resources.conformance.test_lines import distinct, extended
from tests.unit.resources.conformance.test_undo import Applied, state_of
from tests.unit.resources.conformance.types import STATE_DIR, TYPES, Example, actions, prepared
from tests.unit.resources.test_cases import Case

LOOKS = mask("goes here")
PLAIN = LOOKS.replace("<secret", "<public")
DIGEST = re.compile(r"\b[0-9a-f]{16,64}\b")


def shown(value: Any) -> Any:
    """Return a value with the text that looks like a mask replaced by the plain one, and content as text."""
    if isinstance(value, Blob):
        return shown(value.read().decode("utf-8", "replace")) if value.data is not None else "…"
    if isinstance(value, str):
        return DIGEST.sub("…", value.replace("<secret", "<public"))
    if isinstance(value, Mapping):
        return {shown(key): shown(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown(item) for item in value]
    return value


def example_with(case: Case, place: tuple[Any, ...], text: str, directory: Path) -> Example | None:
    """Return the example of a case with another end of one text; None if the playbook refuses it."""
    node = extended(case.data["node"], place, text)
    try:
        example = prepared(replace(case, data={**case.data, "node": node}), directory)
        example.layers()
    except InvalidInput:
        return None
    return example


def story(example: Example) -> Any:
    """Return the plan of an example, what an apply and its undo make of the machine, and what they say."""
    plan = example.plan()
    step = example.step(plan)
    ops = [(action.op, shown(action.args)) for action in actions(plan)]
    told: list[Any] = [step.outcome, shown(step.reason), ops, shown(as_json(step.changes)) if step.changes else []]
    if step.outcome != "changed":
        return told
    try:
        applied = Applied(example)
        spec = applied.undo()
    except (CheckError, Unknown) as why:  # the memory machine has no answer of the program that knows it
        return [*told, shown(str(why))]
    told += sorted(map(shown, applied.made.items()), key=str)
    return [*told, shown(spec.left), *sorted(map(shown, state_of(applied.machine).items()), key=str)]


@pytest.mark.parametrize("name", TYPES)
def test_text_that_looks_like_a_mask_is_text(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATECFG_STATE_DIR", STATE_DIR)
    directories: Iterator[Path] = (tmp_path / str(number) for number in itertools.count())
    for case, place in distinct(name):
        looks = example_with(case, place, LOOKS, next(directories))
        plain = example_with(case, place, PLAIN, next(directories))
        if looks is not None and plain is not None:
            assert story(looks) == story(plain), f"{case.place}: {place}"
