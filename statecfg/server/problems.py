"""The problems of a host in a run: the part of its report that shows where to look first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.names import HookStatus, Outcome
from statecfg.store.runs import HostData, HostResult

NAMED = 20  # maximum number of resources, hooks and units that are named


@dataclass(frozen=True, slots=True)
class NodeProblem:
    """A resource that failed or whose outcome is unknown."""

    name: str
    outcome: str
    reason: str | None
    position: str | None


@dataclass(frozen=True, slots=True)
class HookProblem:
    """A hook that failed."""

    hook: str
    event: str
    status: str
    error: str | None


@dataclass(frozen=True, slots=True)
class UnitProblem:
    """A unit that failed."""

    unit: str
    state: str
    error: str


@dataclass(frozen=True, slots=True)
class HostProblems:
    """The problems of a host.

    :param error: what stopped the run on this host; "" for nothing
    :param bad: the first resources with problems
    :param more: the number of further resources with problems
    """

    status: str
    summary: Mapping[str, int]
    error: str
    bad: Sequence[NodeProblem]
    more: int
    hooks: Sequence[HookProblem]
    units: Sequence[UnitProblem]

    @classmethod
    def of(cls, report: HostData) -> HostProblems:
        """Return the problems in a host report."""
        bad = [
            NodeProblem(node["name"], node["outcome"], node.get("reason"), node.get("position"))
            for part in ("removals", "layers")
            for layer in report.get(part) or ()
            for node in layer
            if node.get("outcome") in (Outcome.FAILED, Outcome.UNKNOWN)
        ]
        hooks = [
            HookProblem(fired["hook"], fired["event"], fired["status"], fired.get("error"))
            for fired in report.get("fired") or ()
            if fired.get("status") != HookStatus.OK
        ]
        units = [
            UnitProblem(unit["unit"], unit["state"], unit["error"])
            for unit in report.get("units") or ()
            if unit.get("error")
        ]
        error = (report.get("error") or {}).get("summary") or report.get("refusal")
        error = error or ("" if bad or units else report.get("halted")) or ""
        more = max(0, len(bad) - NAMED)
        summary = report.get("summary") or {}
        return cls(report["status"], summary, error, bad[:NAMED], more, hooks[:NAMED], units[:NAMED])

    @classmethod
    def of_result(cls, result: HostResult) -> HostProblems:
        """Return the problems of a host without a recorded report: only its status is known."""
        return cls(result.status, result.summary, "", [], 0, [], [])
