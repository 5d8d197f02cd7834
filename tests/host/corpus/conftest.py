"""Prints the table of the corpus after a run, for docs/measured.md."""

from __future__ import annotations

import pytest

HEAD = ("| playbook | bare | again | drifted | destroyed |", "| --- | --- | --- | --- | --- |")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the numbers of exact, known after and wrong nodes of each role."""
    reports = terminalreporter.stats.get("passed", [])
    rows = [value for report in reports for key, value in report.user_properties if key == "corpus"]
    if rows:
        terminalreporter.section("exact / known after / wrong")
        for line in (*HEAD, *sorted(rows)):
            terminalreporter.write_line(line)
