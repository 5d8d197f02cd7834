"""The state of a run's hosts and their units while hooks run."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from statecfg.remote.graph.names import HookStatus
from statecfg.run.report_model import Unit, UnitHook
from statecfg.store.units.records import DueStep
from statecfg.unit_rules.workflow import UPGRADE

Json = Mapping[str, Any]  # of frames
Tell = Callable[[Json], None]


@dataclass
class RunUnit:
    """A unit of the run.

    :param dying: whether it is being removed
    :param over: whether it was removed
    :param running: the hook that runs now; None for none
    :param quiet: whether no hook was due when the store was last read
    :param blocked: why no further hook runs; "" if hooks may run
    :param endless: whether a hook ran too often and was stopped
    :param state: its state in the store
    :param hooks: the hooks that ran, in the format of reports
    :param counts: hook, relation and remote unit → how often the hook ran
    """

    id: int
    name: str
    service: str
    dying: bool
    over: bool = False
    running: DueStep | None = None
    quiet: bool = False
    blocked: str = ""
    endless: bool = False
    state: str = ""
    hooks: list[UnitHook] = field(default_factory=list)
    counts: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def report(self) -> Unit:
        """Return the unit in the format of reports."""
        error = self.blocked or next((hook["error"] for hook in self.hooks if hook["status"] == HookStatus.FAILED), "")
        unit: Unit = {"unit": self.name, "service": self.service, "state": self.state, "hooks": self.hooks}
        upgraded = any(hook["hook"] == UPGRADE and hook["status"] != HookStatus.FAILED for hook in self.hooks)
        if self.over or upgraded:
            unit["change"] = "remove" if self.over else "upgrade"
        if self.endless:
            unit["settled"] = False
        if error:
            unit["error"] = error
        return unit


@dataclass
class RunHost:
    """A host of the run.

    :param phase: "absent", "before" (its resources have not changed yet), "busy", "after" or "gone"
    :param sound: whether everything on the host succeeded so far
    :param tell: sends a frame to the host
    :param addresses: `private-address` and `public-address`
    :param steps: number of a running hook → its unit
    :param left: set when the session with the host has ended
    """

    name: str
    units: dict[str, RunUnit] = field(default_factory=dict)
    phase: str = "absent"
    sound: bool = True
    tell: Tell | None = None
    addresses: Mapping[str, str] = field(default_factory=dict)
    steps: dict[int, RunUnit] = field(default_factory=dict)
    left: threading.Event = field(default_factory=threading.Event)

    def let_go(self, why: str) -> None:
        """Let the host continue.

        :param why: why it must not change its resources; "" if it may change them
        """
        if self.phase not in ("before", "after"):
            return
        self.phase = "busy" if self.phase == "before" else "gone"
        if self.tell is not None:
            failed = any("error" in unit.report() for unit in self.units.values())
            self.tell({"type": "units-go", "stop": why, "failed": failed})


def wake(hosts: Iterable[RunHost], ids: set[int] | None = None) -> None:
    """Mark units so that the store is asked again for their next hooks.

    :param ids: numbers of the units; None for all units
    """
    for host in hosts:
        for unit in host.units.values():
            if ids is None or unit.id in ids:
                unit.quiet = False
