"""The values that hosts generated, for the user who asked to see them."""

from __future__ import annotations

from collections.abc import Iterator

from statecfg.remote.graph.names import HostStatus
from statecfg.run.report_model import Report
from statecfg.views import hosts as host_lines
from statecfg.views.lines import Line, make
from statecfg.views.tally import EqualHosts


def value_lines(report: Report) -> Iterator[Line]:
    """Yield one line for each host: the value, after the host's name if there are several hosts."""
    several = len(report["hosts"]) > 1
    for name, host in sorted(report["hosts"].items()):
        if host["status"] == HostStatus.OK:
            value = host.get("revealed", "")
            yield make(f"{name}  {value}" if several else value)._replace(whole=True)
        else:
            yield host_lines.heading(EqualHosts([name], host))
            yield from host_lines.trouble(host)
