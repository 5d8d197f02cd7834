"""What --json and --json-lines add to a run: they write each host as soon as it has finished."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.events import RunEvent
from statecfg.remote.graph.names import HostStatus
from statecfg.run import hook_failure

if TYPE_CHECKING:
    from statecfg.cli.lifecycle import Later
    from statecfg.hooks.bus import Bus
    from statecfg.hooks.preview import Preview
    from statecfg.remote.machine.redact import Redactor
    from statecfg.run.fleet import Event, Options
    from statecfg.run.prepare import Work
    from statecfg.run.report_model import Host
    from statecfg.views.json_stream import JsonStream

    Listen = Callable[[Event], None]


class Streamed:
    """Writes the hosts of one run.

    :param stream: None to write none
    :param events: knows the hooks that were called for a host as a whole
    """

    def __init__(
        self, stream: JsonStream | None, work: Work, redactor: Redactor, events: Bus | Preview | Later | None
    ) -> None:
        self.began = time.time()
        self._stream, self._work, self._redactor, self._events = stream, work, redactor, events
        self._lock = threading.Lock()
        self._early: list[Event] | None = []  # hosts that finish before `settled`

    def begin(self, options: Options, listen: Listen) -> tuple[Listen, Callable[[], None]]:
        """Begin to write lines. A document begins when the run is settled: before, an error is the whole document.

        :param listen: processes the events of the run
        :returns: what processes the events and writes the hosts, and what to call when the run is settled
        """
        stream = self._stream
        if stream is None:
            return listen, lambda: None
        playbook = self._work.jobs[0].playbook if self._work.jobs else ""
        names = [job.host.name for job in self._work.jobs]
        head = {"format": 1, "run": options.run, "mode": options.mode, "playbook": playbook, "hosts": names}
        write = partial(self._write, stream, options)

        def settled() -> None:
            stream.begin(head)
            with self._lock:
                early, self._early = self._early or [], None
            for event in early:
                write(event)

        def process(event: Event) -> None:
            listen(event)
            if event.kind == RunEvent.FINISHED:
                with self._lock:
                    if self._early is not None:
                        self._early.append(event)
                        return
                write(event)

        if not stream.at_once:
            return process, settled
        settled()
        return process, lambda: None

    def _write(self, stream: JsonStream, options: Options, event: Event) -> None:
        """Write the host that an event is about."""
        from statecfg.cli import known_facts

        name = event.host
        report: Any = {"hosts": {name: event.data["report"]}}
        host: Any = dict(known_facts.with_ages(report, self._work, self.began)["hosts"][name])
        host.pop("collected", None)  # for `facts --record`, which takes it out of the report
        later = self._events is not None and self._events.waits_for_hooks(name)
        if self._events is not None:
            hook_failure.add_called(host, name, options.mode, self._events)
        stream.host(name, lambda: self._masked(name, host), not later and not _may_change(host, options))

    def _masked(self, name: str, host: Any) -> Host:
        masked: Host = self._redactor.report({"hosts": {name: host}})["hosts"][name]
        return masked


def _may_change(host: Host, options: Options) -> bool:
    """Return whether the end of the run adds to the report of a host.

    A host that refuses its saved plan is compared with it. If this run holds the host's lock under another name, the
    other name's report shows which one.
    """
    compared = host["status"] == HostStatus.REFUSED and options.expected is not None
    own = host["status"] == HostStatus.LOCKED and (host.get("holder") or {}).get("run") == options.run
    return compared or own
