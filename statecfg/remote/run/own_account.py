"""The login of this run: which nodes may concern it. What judges them is loaded only if there is one."""

from __future__ import annotations

from importlib import import_module

from statecfg.remote.graph.names import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Mapping

    from statecfg.remote.machine.planned import Planned
    from statecfg.remote.machine.real import Facets
    from statecfg.remote.run.plan import Plan, Step
    from statecfg.remote.wire.channel import Channel

FACETS = frozenset(("users", "groups", "passwords", "password_aging"))
PLACES = ("/etc/passwd", "/etc/shadow", "/etc/group", "/etc/gshadow", "/etc/shells", "/etc/sudoers", "/etc/ssh")


class OwnAccount:
    """The login of this run, which must stay possible.

    :param data: what the controller sent, see `Order.account`
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data

    def confirm(self, plan: Plan, machine: Planned) -> None:
        """Fail the nodes of a plan that would take this login away.

        :param machine: the simulated machine after all actions
        """
        home = str((machine.base.entry("users", self.data["user"]) or {}).get("home") or "/")
        if any(_may_concern(step, home) for steps in (plan.removed, plan.steps) for step in steps.values()):
            self._judge().confirm(plan, machine)

    def guards(self, plan: Plan, channel: Channel, facets: Facets, warnings: List[str]) -> List[Any]:
        """Return the guard of this login, if the plan may concern it."""
        import pwd

        home = pwd.getpwnam(self.data["user"]).pw_dir
        steps = [step for steps in (plan.removed, plan.steps) for step in steps.values()]
        if any(step.outcome == Outcome.UNKNOWN or _may_concern(step, home) for step in steps):
            return [self._judge().guard(plan, channel, facets, warnings)]
        return []

    def _judge(self) -> Any:
        return import_module(self.data["module"]).OwnLogin(self.data)


def _may_concern(step: Step, home: str) -> bool:
    """Tell whether a step changes accounts, or a path on which logins depend."""
    if step.outcome != Outcome.CHANGED:
        return False
    if any(facet in FACETS for facet, _ in step.touches.effects):
        return True
    for path in step.touches.paths:
        if isinstance(path, str) and (
            path.startswith((home, *PLACES)) or "/.ssh" in path or home.startswith(path.rstrip("/") + "/")
        ):
            return True
    return False
