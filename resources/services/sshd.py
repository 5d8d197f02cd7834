"""sshd: validate its configuration before a restart, because a wrong one prevents all logins."""

from __future__ import annotations

from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result, error, ok
from statecfg.remote.machine.world import Machine
from statecfg.remote.run.login_guard import UNITS

LINES = 12  # lines of sshd's output that an error shows


@op
def check_config(machine: Machine, unit: str) -> Result:
    """Let sshd validate the configuration that it will read."""
    message = refusal(machine, unit.endswith(".socket"))
    return error(f"sshd refuses the new configuration, and was not restarted: {message}") if message else ok()


def refusal(machine: Machine, idle: bool = True) -> str:
    """Return why sshd refuses its configuration, "" if it accepts it.

    :param idle: true: sshd may be stopped
    """
    if idle:  # sshd needs this directory, which only its running service creates
        machine.mkdir("/run/sshd", 0o755)
    result = machine.run(["/usr/sbin/sshd", "-t"], {}, timeout=60.0, reads=True)
    if result["status"] == "ok":
        return ""
    return "\n".join((result.get("log") or result["reason"]).strip().splitlines()[:LINES])


def guarded(unit: str) -> bool:
    """Return whether a unit is sshd's service or socket."""
    return unit in UNITS
