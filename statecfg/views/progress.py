"""Progress as plain lines, for logs and pipes: events of the hosts, and a regular heartbeat."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TextIO

from statecfg.hooks import waited
from statecfg.remote.graph.events import RunEvent
from statecfg.remote.graph.names import ActionStatus, HookStatus, HostStatus, Outcome
from statecfg.views import safe
from statecfg.views.outcome import HOOK_ENDS, duration
from statecfg.views.tally import plural

HEARTBEAT = 30.0  # seconds
# After these events, a host does something new.
_BEGINNINGS = (
    RunEvent.CONNECTING,
    RunEvent.UPLOADING,
    RunEvent.PLANNED,
    RunEvent.NODE_STARTED,
    RunEvent.HOOK_STARTED,
    RunEvent.UNIT_HOOK,
)
_SHOWN = (RunEvent.CONNECTING, RunEvent.CONNECTED, RunEvent.UPLOADING)


class ShownEvent(Protocol):
    """An event of a run: the host's name, the name of the event, and data that depends on it."""

    @property
    def host(self) -> str:
        """Return the host's name."""

    @property
    def name(self) -> str:
        """Return the name of the event."""

    @property
    def data(self) -> Mapping[str, Any]:
        """Return the data."""


class Masking(Protocol):
    """Masks secrets. A run may add secrets while it runs."""

    def report(self, value: Any) -> Any:
        """Return a copy of the data of an event with the secrets masked."""


class Progress(Protocol):
    """Shows the progress of a run. It is a context manager that surrounds the run."""

    def __enter__(self) -> Progress:
        """Start showing progress."""

    def __exit__(self, *exc: object) -> None:
        """Stop showing progress, and restore the stream."""

    def __call__(self, event: ShownEvent) -> None:
        """Process one event."""

    def pause(self) -> None:
        """Leave the stream to other output, such as a question, until `resume`."""

    def resume(self) -> None:
        """Continue showing progress."""


class _MaskedEvent(NamedTuple):
    host: str
    name: str
    data: Mapping[str, Any]


def masked(event: ShownEvent, redactor: Masking) -> ShownEvent:
    """Return an event with the secrets in its data masked; statecfg's own names and words stay."""
    return _MaskedEvent(event.host, event.name, redactor.report(event.data))


class _Waits:
    """Reports after a moment that a host still waits for a hook.

    :param moment: seconds that a hook may take before a line reports it
    """

    def __init__(self, moment: float, say: Callable[[str], None]) -> None:
        self._moment, self._say = moment, say
        self._timers: dict[str, threading.Timer] = {}

    def begin(self, host: str, text: str) -> None:
        """Write the text after a moment, unless the wait ends before."""
        timer = self._timers[host] = threading.Timer(self._moment, self._say, [text])
        timer.daemon = True
        timer.start()

    def end(self, host: str) -> None:
        """End the wait of a host, if it waits."""
        timer = self._timers.pop(host, None)
        if timer is not None:
            timer.cancel()

    def close(self) -> None:
        """End the waits of all hosts."""
        for host in list(self._timers):
            self.end(host)


class _Hosts:
    """What the hosts of a run do now, and how many are done.

    :param total: number of hosts in the run
    """

    def __init__(self, total: int) -> None:
        self._total, self._finished = total, 0
        self._current: dict[str, str] = {}

    def note(self, event: ShownEvent) -> None:
        """Process one event."""
        if event.name == RunEvent.FINISHED:
            self._finished += 1
            self._current.pop(event.host, None)
        elif event.name in _BEGINNINGS:
            self._current[event.host] = doing(event)

    def text(self) -> str:
        """Return the state of the run in a few words."""
        busy = ", ".join(f"{host}: {what}" for host, what in list(self._current.items())[:3]) or "working"
        return f"{self._finished} of {plural(self._total, 'host')} done; {busy}"


class PlainProgress:
    """Writes a line for each important event, and a heartbeat after 30 s without output.

    :param stream: usually stderr
    :param total: number of hosts in the run
    :param redactor: masks secrets
    :param verbose: 0 for changes and failures only, 1 for every node, 2 for all output
    :param heartbeat: seconds without output before a heartbeat
    :param moment: seconds that a hook may take before a line says that the host waits for it
    """

    def __init__(
        self,
        stream: TextIO,
        total: int,
        redactor: Masking,
        verbose: int = 0,
        heartbeat: float = HEARTBEAT,
        moment: float = waited.MOMENT,
    ) -> None:
        self._stream, self._redactor, self._verbose, self._heartbeat = stream, redactor, verbose, heartbeat
        self._write_lock = threading.Lock()
        self._ended = threading.Event()
        self._started = self._last = time.monotonic()  # when the run started, and when the last line was written
        self._hosts, self._waits = _Hosts(total), _Waits(moment, self._say)
        self._failed: set[tuple[str, str]] = set()  # host and node of each failed action
        self._thread = threading.Thread(target=self._beat, name="statecfg-heartbeat", daemon=True)

    def __enter__(self) -> PlainProgress:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._waits.close()
        self._ended.set()
        self._thread.join()

    def pause(self) -> None:
        """Do nothing: lines stay where they are."""

    def resume(self) -> None:
        """Do nothing."""

    def __call__(self, event: ShownEvent) -> None:
        event = masked(event, self._redactor)
        self._hosts.note(event)
        if event.name in (RunEvent.HOOK_STARTED, RunEvent.FIRED, RunEvent.FINISHED):
            self._waits.end(event.host)
        if event.name == RunEvent.HOOK_STARTED:
            self._waits.begin(event.host, f"{event.host}: {doing(event)}")
        if event.name == RunEvent.ACTION_FINISHED and event.data.get("status") == ActionStatus.ERROR:
            self._failed.add((event.host, str(event.data.get("node"))))
        elif event.name == RunEvent.NODE_FINISHED and (event.host, str(event.data.get("name"))) in self._failed:
            return  # the line about its action reported this, with the reason
        for text in event_text(event, self._verbose):
            self._say(f"{event.host}: {text}")

    def _say(self, text: str) -> None:
        with self._write_lock:
            self._stream.write(safe.line(text) + "\n")
            self._stream.flush()
            self._last = time.monotonic()

    def _beat(self) -> None:
        while not self._ended.wait(max(0.01, self._last + self._heartbeat - time.monotonic())):
            if time.monotonic() - self._last >= self._heartbeat:
                self._say(f"… {duration(time.monotonic() - self._started)}, {self._hosts.text()}")


def doing(event: ShownEvent) -> str:
    """Return in a few words what a host does after this event."""
    if event.name == RunEvent.NODE_STARTED:
        return str(event.data.get("name", ""))
    if event.name == RunEvent.HOOK_STARTED:
        data, seconds = event.data, event.data.get("seconds")
        if seconds is None:
            return f"waits for hook {_hook(data)}: other hooks run before it"
        return waited.text(str(data["hook"]), str(data["event"]), str(data["name"]), int(data["attempt"]), seconds)
    if event.name == RunEvent.UNIT_HOOK:
        return f"{event.data['unit']} {event.data['hook']}"
    return _sending(event.data) if event.name == RunEvent.UPLOADING else event.name


def _sending(data: Mapping[str, Any]) -> str:
    """Return what is sent; for content, also how much of it, and how fast."""
    if "sent" not in data:
        return "sending the executor"
    if not data["sent"]:
        return f"sending {amount(data['bytes'])}"
    rate = data["sent"] / data["seconds"]
    return f"sending {amount(data['bytes'])}: {100 * data['sent'] // data['bytes']} %, {amount(rate)}/s"


def amount(count: float) -> str:
    """Return a number of bytes in words, such as `512 B`, `1.4 kB` or `500 MB`."""
    units = ["B", "kB", "MB", "GB"]
    while count >= 999.5 and len(units) > 1:
        count /= 1000
        units.pop(0)
    return f"{count:.1f} {units[0]}" if count < 9.95 and units[0] != "B" else f"{count:.0f} {units[0]}"


def _hook(data: Mapping[str, Any]) -> str:
    return f"{data.get('hook', '')} ({data.get('event', '')} of {data.get('name') or 'the playbook'})"


def event_text(event: ShownEvent, verbose: int) -> Iterator[str]:
    """Yield the lines of a log for an event, none if it is not important enough."""
    data = event.data
    if event.name == RunEvent.WARNING:
        yield f"warning: {data.get('text', '')}"
    elif event.name == RunEvent.NODE_FINISHED:
        outcome = data.get("outcome")
        if verbose or outcome not in (Outcome.UNCHANGED, None):
            yield f"{outcome} {data.get('name', '')}"
    elif event.name == RunEvent.ACTION_FINISHED and data.get("status") == ActionStatus.ERROR:
        yield f"failed {data.get('node', '')}: {data.get('op', '')}: {data.get('reason', '')}"
    elif event.name == RunEvent.FIRED and (verbose or data.get("status") != HookStatus.OK):
        why = f": {data['error']}" if data.get("error") else ""
        yield f"hook {_hook(data)}: {HOOK_ENDS.get(str(data.get('status')), ('', '', '?'))[2]}{why}"
    elif event.name == RunEvent.UNIT_HOOK:
        failed = f" failed: {data['error']}" if data.get("error") else ""
        if verbose or data["status"] != HookStatus.OK:
            yield f"{data['unit']} {data['hook']}{failed or (' done' if data['status'] == HookStatus.OK else '')}"
    elif event.name == RunEvent.UNIT_LOG and (verbose or int(data["level"]) >= 30):
        for text in str(data.get("text", "")).splitlines():
            yield f"{data['unit']} {data['hook']} | {text}"
    elif event.name == RunEvent.OUTPUT and verbose > 1:
        for text in str(data.get("text", "")).splitlines():
            yield f"{data.get('node', '')} | {text}"
    elif event.name == RunEvent.FINISHED and data.get("status") not in (HostStatus.OK, None):
        error = (data.get("report") or {}).get("error") or {}
        # Earlier lines have reported the failures of a host whose status is only `failed`.
        if error.get("summary") or data["status"] != HostStatus.FAILED:
            yield f"{data['status']}{': ' + str(error['summary']) if error.get('summary') else ''}"
    elif verbose and event.name in _SHOWN and not data.get("sent"):  # content in transfer is not reported again
        yield event.name
