"""Progress during a run: plain lines with a heartbeat, and live rows."""

from __future__ import annotations

import io
import re
import threading
from dataclasses import dataclass, field

from rich.console import Console

from statecfg.remote.machine.redact import Redactor
from statecfg.views.choose import progress
from statecfg.views.progress import PlainProgress, amount, doing
from statecfg.views.terminal_progress import LiveProgress
from tests.lab.processes import wait_until


@dataclass
class Event:
    host: str
    name: str
    data: dict = field(default_factory=dict)


class Watched(io.StringIO):
    """A stream with an event that is set once a text was written."""

    def __init__(self, awaited):
        super().__init__()
        self.awaited, self.seen = awaited, threading.Event()

    def write(self, text):
        written = super().write(text)
        if self.awaited in self.getvalue():
            self.seen.set()
        return written


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_plain_progress_reports_changes_and_failures():
    stream = io.StringIO()
    with PlainProgress(stream, 2, Redactor({"db": "hunter22"})) as show:
        show(Event("web1", "connecting"))
        show(Event("web1", "node-finished", {"name": "file:/a", "outcome": "unchanged"}))
        show(Event("web1", "node-finished", {"name": "file:/b", "outcome": "changed"}))
        show(
            Event(
                "web1", "action-finished", {"node": "c", "op": "run", "status": "error", "reason": "hunter22\n\x1b[1m"}
            )
        )
        show(Event("web1", "warning", {"text": "slow"}))
        show(Event("web1", "finished", {"status": "failed", "report": {"error": {"summary": "c failed"}}}))
    assert stream.getvalue().splitlines() == [
        "web1: changed file:/b",
        "web1: failed c: run: <secret db>\\n\\x1b[1m",
        "web1: warning: slow",
        "web1: failed: c failed",
    ]


def test_progress_reports_failed_hooks_and_the_hook_it_waits_for():
    about = {"hook": "gate", "event": "pre-delete", "name": "file:/a", "where": "controller"}
    for verbose, expected in ((0, []), (1, ["web1: hook gate (pre-delete of file:/a): done"])):
        stream = io.StringIO()
        with PlainProgress(stream, 1, Redactor({"db": "hunter22"}), verbose) as show:
            show(Event("web1", "hook-started", about))
            show(Event("web1", "fired", {**about, "status": "ok"}))
            show(Event("web1", "fired", {**about, "status": "owed", "error": "hunter22\n\x1b[1m"}))
        last = "hook gate (pre-delete of file:/a): failed; a later run retries it: <secret db>\\n\\x1b[1m"
        assert stream.getvalue().splitlines() == [*expected, f"web1: {last}"]
    live = LiveProgress(Terminal(), 1, Redactor({}), color=False)
    live(Event("web1", "planned", {"summary": {"changed": 1}}))
    live(Event("web1", "hook-started", about))
    assert "waits for hook gate (pre-delete of" in drawn(live, 160)


def test_progress_names_a_slow_hook_with_its_attempt_and_deadline():
    about = {"hook": "gate", "event": "pre-delete", "name": "file:/a"}
    stream = io.StringIO()
    with PlainProgress(stream, 2, Redactor({}), moment=0.01) as show:
        show(Event("web1", "hook-started", about))
        wait_until(lambda: "other hooks run before it" in stream.getvalue(), 20, "the message about the waiting hook")
        show(Event("web1", "hook-started", {**about, "seconds": 30.0, "attempt": 2}))
        wait_until(lambda: "attempt" in stream.getvalue(), 20, "the message with the hook's name")
        show(Event("web1", "fired", {**about, "status": "ok"}))
    first, second = stream.getvalue().splitlines()
    assert first == "web1: waits for hook gate (pre-delete of file:/a): other hooks run before it"
    assert re.fullmatch(r"web1: waits for hook gate \(pre-delete of file:/a\), attempt 2, until \d\d:\d\d:\d\d", second)
    quick = io.StringIO()
    with PlainProgress(quick, 1, Redactor({}), moment=600) as show:
        show(Event("web1", "hook-started", {**about, "seconds": 30.0, "attempt": 1}))
    assert quick.getvalue() == ""


def test_verbose_progress_shows_command_output():
    for verbose, expected in ((0, ""), (2, "web1: c | one\nweb1: c | two\n")):
        stream = io.StringIO()
        with PlainProgress(stream, 1, Redactor({}), verbose) as show:
            show(Event("web1", "output", {"node": "c", "text": "one\ntwo\n"}))
        assert stream.getvalue() == expected


def test_a_silent_run_prints_a_heartbeat():
    stream = Watched("0 of 3 hosts done; web1: package:nginx")
    with PlainProgress(stream, 3, Redactor({}), heartbeat=0.02) as show:
        show(Event("web1", "node-started", {"name": "package:nginx"}))
        assert stream.seen.wait(10)


def drawn(show: LiveProgress, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(show.draw())
    return console.file.getvalue()


def test_live_rows_show_bar_node_and_last_output():
    show = LiveProgress(Terminal(), 3, Redactor({"pw": "hunter22"}), color=False)
    show(Event("web1", "connecting"))
    show(Event("web1", "planned", {"summary": {"changed": 3, "unknown": 1, "unchanged": 20}}))
    show(Event("web1", "node-finished", {"name": "a", "outcome": "changed"}))
    show(Event("web1", "node-started", {"name": "package:nginx"}))
    show(Event("web1", "output", {"node": "package:nginx", "text": "one\nUnpacking \x1b[1m hunter22\n"}))
    for width in (80, 160):
        text = drawn(show, width)
        assert "web1 ━━━─────────" in text
        assert "package:nginx" in text
        assert "Unpacking \\x1b[1m <secret pw>" in text
        assert "0 of 3 hosts done" in text
        assert all(len(row) <= width for row in text.splitlines())
    show(Event("web1", "finished", {"status": "failed", "report": {}}))
    text = drawn(show, 80)
    assert "1 of 3 hosts done" in text
    assert "1 with errors" in text
    assert "package:nginx" not in text


def test_live_progress_folds_many_busy_hosts():
    show = LiveProgress(Terminal(), 200, Redactor({}), color=False)
    for number in range(50):
        show(Event(f"web{number:03}", "connecting"))
    text = drawn(show, 80)
    assert len(text.splitlines()) == 13
    assert "38 more in progress" in text


def test_live_progress_needs_a_terminal_outside_ci():
    for stream, environ, kind in (
        (Terminal(), {}, LiveProgress),
        (Terminal(), {"CI": "true"}, PlainProgress),
        (Terminal(), {"TERM": "dumb"}, PlainProgress),
        (io.StringIO(), {}, PlainProgress),
    ):
        assert type(progress(stream, 1, Redactor({}), False, 0, environ)) is kind


def test_progress_shows_how_much_content_is_sent_and_how_fast():
    assert doing(Event("web1", "uploading", {"bytes": 96_000})) == "sending the executor"
    assert doing(Event("web1", "uploading", {"bytes": 0, "sent": 0})) == "sending 0 B"
    start = Event("web1", "uploading", {"bytes": 500_000_000, "sent": 0})
    half = Event("web1", "uploading", {"bytes": 500_000_000, "sent": 250_000_000, "seconds": 2.5})
    assert doing(start) == "sending 500 MB"
    assert doing(half) == "sending 500 MB: 50 %, 100 MB/s"
    stream = io.StringIO()
    with PlainProgress(stream, 1, Redactor({}), verbose=1, heartbeat=0.01) as show:
        show(start)
        show(half)
        wait_until(lambda: "50 %, 100 MB/s" in stream.getvalue(), 10, "a heartbeat")
    assert stream.getvalue().splitlines().count("web1: uploading") == 1


def test_amounts_have_two_or_three_digits():
    written = {
        0: "0 B",
        999: "999 B",
        1000: "1.0 kB",
        9940: "9.9 kB",
        9960: "10 kB",
        999_600: "1.0 MB",
        4e12: "4000 GB",
    }
    assert {count: amount(count) for count in written} == written
