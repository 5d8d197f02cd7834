"""Managers of systemd units: where they find unit files, and whether a host has them."""

from __future__ import annotations

from typing import Any

from statecfg.remote.machine.world import World
from statecfg.resources.shared.unit_states import OPENRC

RUNNING = "/run/systemd/system"  # exists if and only if systemd is process 1: sd_booted(3)
DIRECTORIES = tuple(root + "/systemd/system" for root in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"))


def scripts(world: World) -> Any:
    """Return the module for services without systemd: `init_scripts`. On a host with systemd, return None."""
    if world.apparent(RUNNING) is not None or not any(map(world.apparent, (OPENRC, "/etc/init.d"))):
        return None
    from statecfg.resources.shared import init_scripts

    return init_scripts
