"""The JSON of a report is the same, whether it is written at once, host by host, or during the run."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from statecfg.views import as_json
from statecfg.views.json_document import JsonDocument
from statecfg.views.json_lines import JsonLines
from tests.each import each

REPORTS = sorted((Path(__file__).parent / "reports").glob("*.json"))


def _pieces(report: Any) -> str:
    return "".join(as_json.pieces(report))


@each("path", REPORTS)
def test_a_report_in_pieces_is_the_whole_report(path: Path) -> None:
    report = json.loads(path.read_text())
    assert _pieces(report) == as_json.text(report)


@each(
    "hosts",
    [{}, {"web1": {}}, {"web1": {"status": "ok", "layers": []}, "web\x7f\u202e2": {"log": "a\nb\x7f", "n": [1, {}]}}],
)
def test_unusual_hosts_in_pieces(hosts: dict[str, Any]) -> None:
    report: Any = {"format": 1, "run": "a\nb", "hosts": hosts, "left_hosts": [{"host": "x"}]}
    assert _pieces(report) == as_json.text(report)
    assert json.loads(_pieces(report)) == report


def test_there_is_a_piece_for_each_host_and_shared_values_are_written_for_all_hosts() -> None:
    layers = [[{"name": f"file:/f{number}", "outcome": "unchanged"} for number in range(50)]]
    hosts: Any = {f"host{number}": {"status": "ok", "layers": layers, "own": [number]} for number in range(300)}
    report: Any = {"format": 1, "hosts": hosts}
    pieces = list(as_json.pieces(report))
    assert json.loads("".join(pieces)) == report
    assert max(map(len, pieces)) < 2 * len(as_json.text(hosts["host0"]))


def test_a_document_that_is_written_during_the_run_is_the_whole_report() -> None:
    report: Any = {"format": 1, "run": "a", "hosts": {}, "left_hosts": []}
    head = {"format": 1, "run": "a", "hosts": ["web1", "web2"]}
    for hosts in ({}, {"web1": {"status": "ok"}, "web2": {"status": "refused"}}):
        whole, stream = {**report, "hosts": hosts}, io.StringIO()
        document = JsonDocument(stream)
        document.begin(head)
        for name, host in hosts.items():
            document.host(name, lambda host=host: host, host["status"] == "ok")  # type: ignore[misc]  # mypy can't infer it
        document.begin({**head, "run": "b"})
        document.end(whole)
        assert stream.getvalue() == as_json.text(whole)


def test_an_error_ends_a_document() -> None:
    error = {"format": 1, "error": "store", "problems": []}
    for begun in (False, True):
        stream = io.StringIO()
        document = JsonDocument(stream)
        if begun:
            document.begin({"format": 1, "run": "a", "hosts": ["web1", "web2"]})
            document.host("web1", lambda: {"status": "ok"}, False)  # type: ignore[typeddict-item]  # a short report
        document.fail(error)
        more = {"run": "a", "hosts": {"web1": {"status": "ok"}}} if begun else {}
        assert json.loads(stream.getvalue()) == {**error, **more}
        assert document.ended


def test_a_failed_write_is_raised_at_the_end() -> None:
    def broken() -> Any:
        raise OSError("no space")

    for stream in (JsonDocument(io.StringIO()), JsonLines(io.StringIO())):
        stream.begin({"format": 1, "hosts": ["web1"]})
        stream._put(broken)
        with pytest.raises(OSError, match="no space"):
            stream.end({"format": 1, "hosts": {}})  # type: ignore[typeddict-item]  # a short report
