"""Benchmarks judge their figures, and `script/bench` runs all of them."""

from __future__ import annotations

from bench import figures
from tests import ROOT

SEPARATE = {"peers", "templates"}  # these need other tools


def test_figure_over_its_bar_makes_the_benchmark_fail() -> None:
    bars = figures.Bars()
    assert bars.at_most(1.5, 1.5, "x") == "bar 1.5 x: within"
    assert bars.status == 0
    assert bars.at_most(120.01, 120.0, "MB") == "bar 120 MB: OVER"
    assert bars.at_most(0.05, 0.06, "s") == "bar 0.06 s: within"
    assert bars.status == 1


def test_figure_under_its_bar_makes_the_benchmark_fail() -> None:
    bars = figures.Bars()
    assert bars.at_least(90.0, 90.0, "x") == "bar 90 x: within"
    assert bars.status == 0
    assert bars.at_least(89.99, 90.0, "x") == "bar 90 x: UNDER"
    assert bars.status == 1


def test_memory_is_in_millions_of_bytes() -> None:
    assert figures.megabytes(1_000_000 / 1024) == 1.0


def test_time_is_compared_with_the_better_run_of_the_loop() -> None:
    assert figures.loops(1.0, before=2.0**-30) == 2.0**30
    assert figures.loops(1000.0, before=1e9) > 1000 / 1e9


def test_script_bench_runs_every_benchmark() -> None:
    script = (ROOT / "script/bench").read_text()
    programs = [file for file in (ROOT / "bench").glob("*.py") if "__main__" in file.read_text()]
    missing = {file.stem for file in programs if f" bench/{file.name}" not in script}
    assert missing - {"bare_paramiko"} == SEPARATE
