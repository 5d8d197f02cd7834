"""Settings of ufw: how they change and go back, and the guard."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from statecfg.remote.graph.facet_entry import FacetEntry
from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.wire.channel import Channel
from statecfg.resources.network import firewall_guard, ufw_program
from statecfg.resources.shared import records

# The state comes last: a firewall that is switched on has its defaults already.
NAMES = (*ufw_program.DIRECTIONS, "logging", "state")


class UfwSettings(FacetEntry):
    """The settings, as the fields of one thing."""

    facet, fields, kept_as = "ufw", NAMES, "settings"

    def ready(self) -> None:
        """Check that ufw is installed."""
        ufw_program.families(self.world)

    def present(self) -> records.Fields | None:
        """Return the settings; None if ufw is not installed."""
        found = {name: self.world.entry(self.facet, name) for name in NAMES}
        return {name: entry["value"] for name, entry in found.items() if entry is not None} or None

    def change(self, now: records.Fields, fields: records.Fields) -> list[Action]:
        """Change settings."""
        return [ufw_program.change_setting(name, value) for name, value in fields.items()]

    def remember(self) -> dict[str, records.Fields]:
        """Record the settings that the node sets."""
        self.ready()
        now = self.present() or {}
        return {self.kept_as: {name: now.get(name) for name in self.wanted()}}

    def stays(self, field: str, now: object) -> str:
        """Return the message about a setting that others have changed."""
        return f"others set {field} of ufw to {now}: it stays"

    def give_back(self, now: records.Fields, was: records.Fields) -> ActionSpec:
        """Restore former settings. A firewall that is switched off again is off first."""
        spec = ActionSpec()
        for name, value in reversed(list(was.items())):
            if value in (None, ""):
                spec.left.append(f"{name} of ufw stays {now[name]}: its former value was unknown")
            elif name == "state" and value not in ("enabled", "disabled"):
                spec.left.append(f"the state of ufw was: {value}. It stays {now[name]}")
            else:
                spec.actions.append(ufw_program.change_setting(name, value))
        return spec


def guard(
    machine: RealMachine, channel: Channel, remote: bool, warnings: list[str], nodes: Sequence[HostNode]
) -> firewall_guard.ChangeGuard:
    """Return the guard of ufw (see `NodeType.guard`)."""

    def state() -> str:
        entry = machine.entry("ufw", "state")
        return str(entry["value"]) if entry is not None else "disabled"

    def filters() -> bool:
        try:
            return state() != "disabled"
        except CheckError:  # ufw does not answer: only a login can tell
            return True

    def record() -> Callable[[], list[str]]:
        before = state() in ("enabled", "active until the next boot")
        put_back = firewall_guard.files(
            machine, [*ufw_program.FILES.values(), ufw_program.CONFIG, ufw_program.DEFAULTS]
        )

        def restore() -> list[str]:
            problems = firewall_guard.run(machine, "ufw", "--force", "disable") + put_back()
            if before:
                problems += firewall_guard.run(machine, "ufw", "--force", "enable") + put_back()
            return problems

        return restore

    watched = firewall_guard.Watched(("ufw", "ufw_rule"), record, filters)
    return firewall_guard.ChangeGuard(channel, remote, warnings, watched)
