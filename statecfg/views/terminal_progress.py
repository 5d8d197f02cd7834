"""Live progress on a terminal: a row per busy host with a bar, its current step, its last output, and the time."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from statecfg.remote.graph.events import RunEvent
from statecfg.remote.graph.names import HostStatus, Outcome
from statecfg.views import safe
from statecfg.views.outcome import duration
from statecfg.views.progress import Masking, ShownEvent, doing, event_text, masked
from statecfg.views.tally import plural

ROWS = 12
_BAR = 12
_SPIN = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class _Row:
    """The progress of one busy host."""

    def __init__(self) -> None:
        self.total = 0
        self.done: set[str] = set()
        self.doing = "connecting"
        self.output = ""
        self.since = time.monotonic()


class LiveProgress:
    """Draws the busy hosts repeatedly until the run ends, then removes the drawing.

    :param stream: a terminal
    :param total: number of hosts in the run
    :param redactor: masks secrets
    :param color: whether to use colors
    :param verbose: 1 to print a line for each finished node above the drawing, 2 for all output, too
    """

    def __init__(self, stream: TextIO, total: int, redactor: Masking, color: bool, verbose: int = 0) -> None:
        self._total, self._redactor, self._verbose = total, redactor, verbose
        self._lock = threading.Lock()
        self._rows: dict[str, _Row] = {}
        self._finished = self._bad = 0
        self._started = time.monotonic()
        self._console = Console(file=stream, no_color=not color, force_terminal=True)
        self._live: Live | None = None

    def __enter__(self) -> LiveProgress:
        self.resume()
        return self

    def __exit__(self, *exc: object) -> None:
        self.pause()

    def pause(self) -> None:
        """Remove the drawing."""
        if self._live:
            self._live.stop()
            self._live = None

    def resume(self) -> None:
        """Start drawing (again)."""
        self._live = Live(console=self._console, get_renderable=self.draw, refresh_per_second=8, transient=True)
        self._live.start()

    def __call__(self, event: ShownEvent) -> None:
        event = masked(event, self._redactor)
        with self._lock:
            self._take(event)
        for text in event_text(event, self._verbose):
            if self._verbose or event.name in (
                RunEvent.WARNING,
                RunEvent.ACTION_FINISHED,
                RunEvent.FIRED,
                RunEvent.FINISHED,
            ):
                clean = safe.line(f"{event.host}: {text}")
                self._console.print(Text(clean), highlight=False)

    def _take(self, event: ShownEvent) -> None:
        row = self._rows.setdefault(event.host, _Row())
        if event.name == RunEvent.FINISHED:
            del self._rows[event.host]
            self._finished += 1
            self._bad += event.data.get("status") != HostStatus.OK
        elif event.name == RunEvent.PLANNED:
            row.total = _planned(event.data)
            row.doing = "planned"
        elif event.name in (RunEvent.NODE_FINISHED, RunEvent.ACTION_FINISHED):
            # The host reports the end of a node when its layer ends. So the end of an action already moves the bar.
            row.done.add(str(event.data.get("name") or event.data.get("node")))
        elif event.name == RunEvent.OUTPUT:
            row.output = (str(event.data.get("text", "")).strip().splitlines() or [row.output])[-1]
        elif event.name in (
            RunEvent.CONNECTING,
            RunEvent.CONNECTED,
            RunEvent.UPLOADING,
            RunEvent.NODE_STARTED,
            RunEvent.HOOK_STARTED,
        ):
            row.doing, row.output = doing(event), ""
            row.since = time.monotonic() - float(
                event.data.get("seconds", 0) if event.name == RunEvent.UPLOADING else 0
            )

    def draw(self) -> Group:
        """Return the current drawing."""
        with self._lock:
            rows = [(host, row) for host, row in self._rows.items()][:ROWS]
            hidden = len(self._rows) - len(rows)
            table = Table.grid(padding=(0, 1), expand=True)
            for width, ratio in ((None, None), (_BAR, None), (None, 2), (None, 3), (None, None)):
                table.add_column(width=width, ratio=ratio, no_wrap=True, overflow="ellipsis")
            for host, row in rows:
                table.add_row(*self._cells(host, row))
            return Group(table, self._footer(hidden))

    def _cells(self, host: str, row: _Row) -> list[Text]:
        filled = round(_BAR * min(1.0, len(row.done) / row.total)) if row.total else 0
        bar = Text("━" * filled, "green") + Text("─" * (_BAR - filled), "dim")
        now, output = (safe.line(text) for text in (row.doing, row.output))
        spent = time.monotonic() - row.since
        return [
            Text(safe.line(host), "bold"),
            bar,
            Text(now),
            Text(output, "dim"),
            Text(duration(spent) if spent >= 1 else "", "cyan"),
        ]

    def _footer(self, hidden: int) -> Text:
        spin = _SPIN[int(time.monotonic() * 8) % len(_SPIN)]
        more = f", {hidden} more in progress" if hidden else ""
        text = Text(f"{spin} ", "cyan")
        spent = duration(time.monotonic() - self._started)
        text.append(f"{self._finished} of {plural(self._total, 'host')} done{more}, {spent}", "dim")
        if self._bad:
            text.append(f", {self._bad} with errors", "red")
        return text


def _planned(data: Mapping[str, Any]) -> int:
    """Return how many nodes of a host have something to do.

    :param data: the data of the event `planned`
    """
    summary = data.get("summary")
    if isinstance(summary, Mapping):
        return sum(value for outcome, value in summary.items() if outcome in Outcome.ACTS)
    return 0
