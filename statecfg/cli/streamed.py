"""What --json, --json-lines and --json-into add to a run: they write each host as soon as it has finished."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from statecfg.cli import lifecycle
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
    from statecfg.views.json_stream import HostStream


class Streamed:
    """Writes the hosts of one run. Lines begin at once; a document begins when no error can end the run.

    :param streams: what to write, at most one to stdout and one to a file
    :param events: knows the hooks that were called for a host as a whole
    """

    def __init__(
        self,
        streams: Sequence[HostStream],
        work: Work,
        redactor: Masks,
        events: Bus | Preview | Later | None,
        options: Options,
    ) -> None:
        self.began = time.time()
        self._work, self._redactor, self._events, self._options = work, redactor, events, options
        self._lock = threading.Lock()
        self._later = list(streams)  # streams that have not begun
        self._begun: list[HostStream] = []
        self._early: list[tuple[str, HostData]] = []  # hosts that finish before all streams have begun
        self._begin([stream for stream in streams if stream.at_once])

    def begin(self) -> None:
        """Begin to write the documents. Before, an error would be the whole document."""
        self._begin(list(self._later))

    def _begin(self, streams: Sequence[HostStream]) -> None:
        playbook = lifecycle.file_of(self._work)
        names = [job.host.name for job in self._work.jobs]
        empty = make_report(self._options.run, self._options.mode, playbook, {})
        for stream in streams:
            stream.begin({**empty, "hosts": names})
            with self._lock:
                self._later.remove(stream)
                self._begun.append(stream)
                early = list(self._early)
            for name, report in early:
                self._write([stream], name, report)

    def finished(self, name: str, report: HostData) -> None:
        """Write a host to the streams that have begun, and keep it for the others."""
        with self._lock:
            begun = list(self._begun)
            if self._later:
                self._early.append((name, report))
        if begun:
            self._write(begun, name, report)

    def _write(self, streams: Sequence[HostStream], name: str, finished: HostData) -> None:
        from statecfg.cli import known_facts

        report: Any = {"hosts": {name: finished}}
        host: Any = dict(known_facts.with_ages(report, self._work, self.began)["hosts"][name])
        host.pop("collected", None)  # for `facts --record`, which takes it out of the report
        later = self._events is not None and self._events.waits_for_hooks(name)
        if self._events is not None:
            hook_failure.add_called(host, name, self._options.mode, self._events)
        final = not later and not _may_change(host, self._options)
        for stream in streams:
            stream.host(name, lambda: self._masked(name, host), final)

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
