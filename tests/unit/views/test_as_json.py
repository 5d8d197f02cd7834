"""The JSON of a report is the same, whether it is written at once or host by host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from statecfg.views import as_json
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
