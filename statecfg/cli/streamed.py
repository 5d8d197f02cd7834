"""What --json-lines adds to a run: the line of each host as soon as it has finished."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from statecfg.cli import known_facts
from statecfg.remote.graph.events import RunEvent
from statecfg.run import hook_failure

if TYPE_CHECKING:
    from statecfg.cli.lifecycle import Later
    from statecfg.hooks.bus import Bus
    from statecfg.hooks.preview import Preview
    from statecfg.remote.machine.redact import Redactor
    from statecfg.run.fleet import Event, Options
    from statecfg.run.prepare import Work
    from statecfg.views.json_lines import JsonLines

    Listen = Callable[[Event], None]


class Streamed:
    """Writes the lines of one run.

    :param lines: None to write none
    :param events: knows the hooks that were called for a host as a whole
    """

    def __init__(
        self, lines: JsonLines | None, work: Work, redactor: Redactor, events: Bus | Preview | Later | None
    ) -> None:
        self.began = time.time()
        self._lines, self._work, self._redactor, self._events = lines, work, redactor, events

    def begin(self, options: Options, listen: Listen) -> Listen:
        """Write the first line.

        :param listen: processes the events of the run
        :returns: what processes them and writes the lines of hosts
        """
        lines, mode = self._lines, options.mode
        if lines is None:
            return listen
        playbook = self._work.jobs[0].playbook if self._work.jobs else ""
        names = [job.host.name for job in self._work.jobs]
        lines.begin({"format": 1, "run": options.run, "mode": mode, "playbook": playbook, "hosts": names})

        def process(event: Event) -> None:
            listen(event)
            if event.kind == RunEvent.FINISHED:
                report: Any = {"hosts": {event.host: event.data["report"]}}
                host: Any = dict(known_facts.with_ages(report, self._work, self.began)["hosts"][event.host])
                if self._events is not None:
                    hook_failure.add_called(host, event.host, mode, self._events)
                lines.host(event.host, self._redactor.report(host))

        return process
