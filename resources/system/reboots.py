"""Reboots of the host. `remote/run/rebooting` performs them, because the run continues after that."""

from __future__ import annotations

from collections.abc import Mapping

from statecfg.remote.graph.model import Action, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World

MOST = 20  # names of nodes that a plan lists below a reboot
# What a reboot may change: every unit and process, and what the kernel or a file system in memory contains.
VOLATILE = ["/run", "/tmp", "/proc", "/sys", "/dev"]  # noqa: S108  # nothing is written there
FACETS = ("units", "processes", "mount", "swap", "module", "sysctl", "hostname", "nftables", "selinux_boolean")
EFFECT = {"unknown": [*FACETS, *(f"every {facet}" for facet in FACETS)], "files": VOLATILE}
# systemd, other init systems, and systems with only the plainest one.
COMMANDS = (
    ("/run/systemd/system", ("systemctl", "reboot")),
    ("/sbin/shutdown", ("shutdown", "-r", "now")),
    ("/", ("reboot",)),
)


@op
def reboot(machine: Machine, because: str, boot_timeout: float, then: list[str] | None = None) -> Result:
    """Reboot the host.

    :param because: why
    :param boot_timeout: seconds in which the host must be up again
    :param then: the nodes that require this one, directly or indirectly
    """
    argv = next(list(argv) for path, argv in COMMANDS if machine.stat(path) is not None)
    return machine.run(argv, EFFECT, timeout=60.0, interruptible=False)


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Return the reboot if it is due. After it, only the path in `when_exists` shows whether another one is due."""
    attrs = node.attrs
    path = attrs.get("when_exists")
    reason = f"{path} exists" if path is not None and world.stat(path) is not None else ""
    if not reason and not world.acted:
        if world.triggered_by:
            reason = "a node in restart_on changes"
        elif attrs.get("always"):
            reason = "it is due in every run"
    if not reason:
        return []
    return [reboot(reason, attrs.get("boot_timeout", 600.0), _dependents(node.provides, nodes) or None)]


def _dependents(name: str, nodes: Mapping[str, HostNode]) -> list[str]:
    """Return the names of the nodes that require a node, directly or indirectly; of many, the first ones."""
    users: dict[str, list[str]] = {}
    for other in nodes.values():
        for needed in other.requires:
            users.setdefault(needed, []).append(other.provides)
    found: set[str] = set()
    left = [name]
    while left:
        more = [user for user in users.get(left.pop(), ()) if user not in found]
        found.update(more)
        left += more
    listed = sorted(found)
    return listed if len(listed) <= MOST else [*listed[:MOST], f"{len(listed) - MOST} more"]
