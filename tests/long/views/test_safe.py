"""Hostile text in all places of all reports: no view outputs control characters."""

from __future__ import annotations

import json

import pytest

from statecfg.views import as_json, markdown
from statecfg.views.history import history_lines
from statecfg.views.lines import plain
from statecfg.views.outcome import outcome_lines
from statecfg.views.plan import Detail, plan_lines
from statecfg.views.terminal import render
from statecfg.views.verify import verify_lines
from tests.unit.views.test_safe import HOSTILE, REPORTS, Terminal, assert_harmless, poisoned


@pytest.mark.parametrize("name", sorted(path.name for path in REPORTS.glob("*.json")))
@pytest.mark.parametrize("full", [False, True])
def test_every_view_escapes_hostile_characters(name, full):
    report = poisoned(json.loads((REPORTS / name).read_text()), HOSTILE)
    detail = Detail(verbose=full, full=full)
    for make in (plan_lines, outcome_lines, verify_lines, lambda given, _: history_lines(given, HOSTILE)):
        lines = list(make(report, detail))
        assert_harmless(plain(lines))
        assert_harmless(render(lines, Terminal(), color=False))
    assert_harmless(markdown.text(report))
    assert_harmless(as_json.text(report))
