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
# Paths on which logins may depend. Each matches all that begin with it.
PLACES = (
    "/etc/passwd", "/etc/shadow", "/etc/group", "/etc/gshadow", "/etc/shells", "/etc/sudo", "/etc/ssh", "/etc/pam",
    "/etc/security", "/etc/nsswitch.conf", "/etc/nologin", "/run/nologin", "/var/run/nologin", "/etc/hosts.allow",
    "/etc/hosts.deny", "/etc/bash.bashrc", "/etc/bashrc", "/etc/zsh", "/usr/bin/sudo", "/bin/sudo", "/usr/bin/python3",
    "/usr/sbin/sshd", *(f"{folder}/{shell}" for folder in ("/bin", "/usr/bin") for shell in ("sh", "bash", "dash")),
)  # fmt: skip
ABOVE = frozenset(("/", "/bin", "/etc", "/home", "/root", "/run", "/usr", "/usr/bin", "/usr/sbin", "/var", "/var/run"))
UNITS = ("ssh.service", "sshd.service", "ssh.socket", "sshd.socket")
PACKAGES = ("openssh", "openssh-server", "sudo")


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
    paths = [path for path in step.touches.paths if isinstance(path, str)]
    for facet, key in step.touches.effects:
        if facet in FACETS or key in (*UNITS, *PACKAGES):
            return True
        paths += [key] if facet == "mount" else []
    return any(
        path.startswith((home, *PLACES)) or path in ABOVE or "/.ssh" in path or home.startswith(path.rstrip("/") + "/")
        for path in paths
    )
