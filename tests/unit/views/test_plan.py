"""The text output of plan and apply: `reports/` contains each report as JSON and its expected text."""

from __future__ import annotations

import io
import json
import os
import time
from pathlib import Path

import pytest

from statecfg.run.saved import differences
from statecfg.run.saved import hosts as saved_hosts
from statecfg.views import markdown, stream
from statecfg.views.history import history_lines
from statecfg.views.lines import make, plain
from statecfg.views.outcome import duration, outcome_lines
from statecfg.views.plan import Detail, action_text, plan_lines
from statecfg.views.tally import of_changes, pending
from statecfg.views.terminal import render
from statecfg.views.verify import verify_lines
from tests.each import each

REPORTS = Path(__file__).parent / "reports"


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self):
        return True


def lines_of(name, **detail):
    report = json.loads((REPORTS / f"{name}.json").read_text())
    if report["mode"] == "history":
        return list(history_lines(report))
    if report["mode"] == "apply":
        return list(outcome_lines(report, Detail(**detail), 12.3))
    return list((verify_lines if report["mode"] == "verify" else plan_lines)(report, Detail(**detail)))


@pytest.fixture(autouse=True)
def _utc(monkeypatch):
    """Show times in UTC, as in the expected texts."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def shown(lines, monkeypatch, columns, color=False):
    monkeypatch.setenv("COLUMNS", str(columns))
    return render(lines, Terminal(), color)


NAMES = ["plan", "converged", "apply-failed", "lifecycle", "applied-lifecycle", "verify", "history"]


@each("name", NAMES)
def test_plain_text_equals_the_expected_file(name):
    """REGENERATE=1 writes the expected texts again. Read the diff before you commit it."""
    expected = REPORTS / f"{name}.txt"
    text = plain(lines_of(name))
    if os.environ.get("REGENERATE"):
        expected.write_text(text)
    assert text == expected.read_text()


@each("name", NAMES)
@each("columns", [40, 80, 160])
def test_terminal_rows_fit_the_width_and_keep_the_text(columns, name, monkeypatch):
    from rich.cells import cell_len

    lines = lines_of(name, full=True, verbose=True)
    text = shown(lines, monkeypatch, columns)
    assert max(cell_len(row) for row in text.splitlines()) <= columns
    squeezed = "".join(text.replace("─", "").split())
    for line in lines:
        assert "".join(line.text.replace("─", "").split()) in squeezed


def test_terminal_colours_added_changed_and_removed_resources(monkeypatch):
    text = shown(lines_of("plan"), monkeypatch, 100, color=True)
    assert "\x1b[32mfile:/etc/motd" in text
    assert "\x1b[31mfile:/etc/old.conf" in text
    assert "\x1b[33mfile:/etc/nginx/conf.d/site.conf" in text
    assert "\x1b[32m+     listen 8080;" in text
    assert "\x1b[31m-     listen 80;" in text
    assert "\x1b" not in shown(lines_of("plan"), monkeypatch, 100)


def test_plan_ends_with_a_summary_line():
    assert plain(lines_of("plan")).splitlines()[-1] == "Plan: 15 to add, 9 to change, 6 to destroy."


def test_verbose_shows_kept_resources_and_hooks():
    brief, verbose = plain(lines_of("lifecycle")), plain(lines_of("lifecycle", verbose=True))
    assert "- unused" not in brief
    assert "- unused" in verbose
    assert "hook announce" not in plain(lines_of("applied-lifecycle"))
    assert "✓ hook announce  pre-delete of file:/etc/motd, here: done" in plain(
        lines_of("applied-lifecycle", verbose=True)
    )


def test_owed_restarts_removals_and_unresolved_states_are_pending():
    report = json.loads((REPORTS / "converged.json").read_text())
    assert not pending(report)
    host = next(iter(report["hosts"].values()))
    for key, value in (
        ("owed", [{"node": "a", "cause": "b", "since": 1, "run": "r"}]),
        ("removals", [[{"name": "a", "outcome": "unchanged"}]]),
        ("layers", [[{"name": "a", "outcome": "unchanged", "state": "PRE_CREATED"}]]),
    ):
        before = host.get(key)
        host[key] = value
        assert pending(report)
        host[key] = before
    host["left"] = [[{"name": "a", "outcome": "changed"}]]
    host["hooks"] = [{"hook": "h", "event": "pre-reconcile", "name": "a", "where": "host"}]
    assert not pending(report)


def test_plan_mentions_the_dry_run_first_and_last():
    rows = plain(lines_of("converged")).splitlines()
    assert rows[0] == "Dry run: nothing is changed on any host."
    assert rows[-2] == "Dry run: nothing was changed."


def test_plan_shows_unchanged_resources_only_if_verbose():
    assert "file:/etc/app/07.conf" not in plain(lines_of("plan"))
    assert "file:/etc/app/07.conf" in plain(lines_of("plan", verbose=True))


def test_plan_shortens_lists_unless_everything_is_requested():
    assert "… 8 more objects" in plain(lines_of("plan"))
    assert "page19.html" in plain(lines_of("plan", full=True))


def test_terminal_cuts_a_long_line_and_counts_the_rest(monkeypatch):
    text = shown([make("+ " + "x" * 100_000, hang=2)], monkeypatch, 80)
    assert len(text.splitlines()) == 6
    assert "more characters" in text


def test_terminal_counts_wide_characters_as_two_columns(monkeypatch):
    from rich.cells import cell_len

    text = shown([make("+ " + "日本語" * 40, hang=2)], monkeypatch, 80)
    assert all(cell_len(row) <= 80 for row in text.splitlines())


@each(
    ("changes", "kind"),
    [
        ([], "change"),
        ([{"before": None, "after": "x"}], "add"),
        ([{"before": "x", "after": None}], "destroy"),
        ([{"before": "x", "after": "y"}, {"before": None, "after": "z"}], "change"),
        ([{"field": "kind", "before": "file", "after": "symlink"}], "replace"),
        ([{"field": "kind", "before": None, "after": "file"}], "add"),
        ([{"before": False, "after": True}], "change"),
    ],
)
def test_changes_count_as_add_change_destroy_or_replace(changes, kind):
    assert of_changes(changes) == kind


@each(("seconds", "text"), [(0.04, "0.0 s"), (9.94, "9.9 s"), (12.3, "12 s"), (185, "3 min 5 s"), (7260, "2 h 1 min")])
def test_duration_is_shown_in_suitable_units(seconds, text):
    assert duration(seconds) == text


@each(
    ("terminal", "environ", "flag", "expected"),
    [
        (True, {}, False, True),
        (False, {}, False, False),
        (True, {"NO_COLOR": "1"}, False, False),
        (True, {"NO_COLOR": ""}, False, True),
        (False, {"FORCE_COLOR": "1"}, False, True),
        (False, {"FORCE_COLOR": "0"}, False, False),
        (True, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
        (True, {"FORCE_COLOR": "1"}, True, False),
        (True, {"TERM": "dumb"}, False, False),
    ],
)
def test_colours_depend_on_terminal_environment_and_flag(terminal, environ, flag, expected):
    assert stream.coloured(Terminal() if terminal else io.StringIO(), flag, environ) is expected


def test_ascii_stream_gets_ascii_replacements():
    raw = io.BytesIO()
    text = io.TextIOWrapper(raw, encoding="ascii")
    stream.write([make("a → b … ✓ ↳")], text, color=False)
    assert raw.getvalue() == b"a -> b ... ok >\n"


@pytest.mark.parametrize("mode", ["plan", "apply", "verify"])
def test_host_without_resources_is_explained_below_its_heading(mode):
    host = {"status": "ok", "layers": [], "removals": [], "left": [], "summary": {}}
    report = {"format": 1, "mode": mode, "playbook": "p.yml", "hosts": {"web1": host}}
    show = {"plan": plan_lines, "apply": outcome_lines, "verify": verify_lines}[mode]
    texts = plain(show(report)).splitlines()
    (heading,) = (number for number, text in enumerate(texts) if text.startswith("── web1"))
    assert texts[heading + 1].endswith("no resources are defined for this host.")
    host["status"] = "cancelled"
    assert "no resources" not in plain(show(report))


@pytest.mark.parametrize("mode", ["apply", "prune", "destroy"])
def test_failed_run_suggests_the_same_command_again(mode):
    failed = {"name": "file:/x", "type": "file", "outcome": "failed", "reason": "no", "changes": [], "actions": []}
    report = {"mode": mode, "hosts": {"web1": {"status": "failed", "layers": [], "removals": [[failed]]}}}
    text = plain(outcome_lines(report))
    assert f"Next: Fix the cause and run {mode} again" in text


def test_mode_of_an_action_is_octal():
    assert action_text({"op": "mkdir", "args": {"path": "/x", "mode": 493}}) == "mkdir(path: /x, mode: 0755)"
    assert action_text({"op": "mkdir", "args": {"path": "/x", "mode": None}}).startswith("mkdir(path: /x, mode: ")


def test_host_without_a_plan_in_a_saved_plan_is_not_called_changed():
    why = differences.without_plan({"status": "unreachable"})
    host = saved_hosts.without_plan(why)
    text = plain(outcome_lines({"format": 1, "mode": "apply", "playbook": "p.yml", "hosts": {"web1": host}}))
    assert "── web1  refused" in text and "✗ the saved plan has no usable plan for this host" in text
    assert "It could not be reached when the plan was made." in text and "has changed" not in text
    assert differences.without_plan({"status": "ok"}) == ""


def test_excluded_resources_are_shown_with_the_condition_that_is_false():
    report = json.loads((REPORTS / "converged.json").read_text())
    node = next(node for host in report["hosts"].values() for layer in host["layers"] for node in layer)
    node["excluded"] = "its condition is false: the user ann exists"
    for text in (plain(plan_lines(report)), plain(outcome_lines(report)), plain(verify_lines(report))):
        assert f"  · {node['name']}" in text and "↳ its condition is false: the user ann exists\n" in text
    assert not pending(report)
    text = markdown.text(report)
    assert f"`·` **`{node['name']}`**" in text and "`its condition is false: the user ann exists`" in text
