"""The table of docs/measured.md about what every node type must pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from statecfg import resources
from tests import ROOT
from tests.unit.resources.conformance import test_claims, test_effect, test_undo, test_validators
from tests.unit.resources.conformance.types import TYPES, WITHOUT

PAGE = ROOT / "docs" / "measured.md"
OVERWRITING = {name: getattr(resources, name).overwriting for name in TYPES if getattr(resources, name).overwriting}


def reasons(exempt: Mapping[str, str]) -> str:
    """Return the exempt types, grouped by their reason."""
    found: dict[str, list[str]] = {}
    for name, reason in sorted(exempt.items()):
        found.setdefault(reason, []).append(f"`{name}`")
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in found.items())


def row(what: str, test: str, types: Iterable[str], exempt: Mapping[str, str]) -> str:
    return f"| {what} | `{test}` | {len(list(types))} | {reasons(exempt) or '–'} |"


def without(exempt: Iterable[str]) -> list[str]:
    return [name for name in TYPES if name not in set(exempt)]


def table() -> str:
    """Return the table, made from the tests."""
    untested = {**test_undo.UNSEEN, **{name: f"it declares that {why}" for name, why in OVERWRITING.items()}}
    checked = [
        name
        for name in TYPES
        if (test_validators.validated(name) or name in test_validators.OWN) and name not in test_validators.LATER
    ]
    rows = [
        "| what | test | types | not for these types |",
        "| --- | --- | --- | --- |",
        row("undo restores the former state", "test_undo", without(test_undo.INCOMPLETE), test_undo.INCOMPLETE),
        row("undo keeps what others changed since, and reports it", "test_undo", without(untested), untested),
        row("a purged directory keeps its files, in three applies", "test_claims", TYPES, {}),
        row(
            "the same thing in another playbook fails in the plan, unless `take_over` is set",
            "test_claims",
            without(test_claims.SHARED),
            test_claims.SHARED,
        ),
        row("a run that leaves its nodes out with `--tags` removes nothing of them", "test_claims", TYPES, {}),
        row("content that its validator refuses fails in the plan", "test_validators", checked, test_validators.LATER),
        row("another source that wins fails the plan", "test_effect", test_effect.asking(), test_effect.ALONE),
        row("no report and no ledger shows a secret, and undo works without it", "test_secrets", TYPES, {}),
        row("text that looks like a mask is text", "test_masks", TYPES, {}),
        row("no text ends or continues its line, and no fact becomes shell code", "test_lines", TYPES, {}),
    ]
    return "\n".join(rows)


def test_the_page_has_the_table() -> None:
    assert table() in PAGE.read_text(encoding="utf-8"), f"write this into {PAGE.name}:\n{table()}"
    for name, reason in WITHOUT.items():
        assert f"`{name}` ({reason})" in PAGE.read_text(encoding="utf-8")
