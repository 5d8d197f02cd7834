"""What --json and --json-lines add to a run: they write each host as soon as it has finished."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.names import HostStatus
from statecfg.run import hook_failure
from statecfg.run.report_model import make_report

if TYPE_CHECKING:
    from statecfg.cli.lifecycle import Later
    from statecfg.cli.masks import Masks
    from statecfg.hooks.bus import Bus
    from statecfg.hooks.preview import Preview
    from statecfg.run.fleet import Options
    from statecfg.run.prepare import Work
    from statecfg.run.report_model import HostData
    from statecfg.views.json_stream import JsonStream


class Streamed:
    """Writes the hosts of one run. Lines begin at once; a document begins when no error can end the run.

    :param stream: None to write none
    :param events: knows the hooks that were called for a host as a whole
    """

    def __init__(
        self,
        stream: JsonStream | None,
        work: Work,
        redactor: Masks,
        events: Bus | Preview | Later | None,
        options: Options,
    ) -> None:
        self.began = time.time()
        self._stream, self._work, self._redactor, self._events = stream, work, redactor, events
        self._options = options
        self._lock = threading.Lock()
        self._early: list[tuple[str, HostData]] | None = []  # hosts that finish before the stream begins
        if stream is not None and stream.at_once:
            self.begin()

    def begin(self) -> None:
        """Begin to write. Before, an error would be the whole document."""
        if self._stream is None or self._early is None:
            return
        playbook = self._work.jobs[0].playbook if self._work.jobs else ""
        names = [job.host.name for job in self._work.jobs]
        empty = make_report(self._options.run, self._options.mode, playbook, {})
        self._stream.begin({**empty, "hosts": names})
        with self._lock:
            early, self._early = self._early, None
        for name, report in early:
            self._write(self._stream, name, report)

    def finished(self, name: str, report: HostData) -> None:
        """Write a host, or keep it until the stream begins."""
        if self._stream is None:
            return
        with self._lock:
            if self._early is not None:
                self._early.append((name, report))
                return
        self._write(self._stream, name, report)

    def _write(self, stream: JsonStream, name: str, finished: HostData) -> None:
        from statecfg.cli import known_facts

        report: Any = {"hosts": {name: finished}}
        host: Any = dict(known_facts.with_ages(report, self._work, self.began)["hosts"][name])
        host.pop("collected", None)  # for `facts --record`, which takes it out of the report
        later = self._events is not None and self._events.waits_for_hooks(name)
        if self._events is not None:
            hook_failure.add_called(host, name, self._options.mode, self._events)
        stream.host(name, lambda: self._masked(name, host), not later and not _may_change(host, self._options))

    def _masked(self, name: str, host: Any) -> HostData:
        masked: HostData = self._redactor.report({"hosts": {name: host}})["hosts"][name]
        return masked


def _may_change(host: HostData, options: Options) -> bool:
    """Return whether the end of the run adds to the report of a host.

    A host that refuses its saved plan is compared with it. If this run holds the host's lock under another name, the
    other name's report shows which one.
    """
    compared = host["status"] == HostStatus.REFUSED and options.expected is not None
    own = host["status"] == HostStatus.LOCKED and (host.get("holder") or {}).get("run") == options.run
    return compared or own
