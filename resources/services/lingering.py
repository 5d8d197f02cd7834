"""Lingering: whether systemd runs the units of a user from boot on, and not only while the user is logged in."""

from __future__ import annotations

from statecfg.remote.graph.model import Action, CheckError
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result, error
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.services.unit_states import TIMEOUT
from statecfg.resources.shared import records

DIRECTORY = "/var/lib/systemd/linger"  # of systemd-logind: it contains a file for each user
SYSTEMD = "/run/systemd/system"  # exists if and only if systemd is process 1: sd_booted(3)


@facet("lingering", of="users")
def lingering(host: World) -> dict[str, records.Fields]:
    """Load the users who linger: name → `starts`."""
    names = host.listdir(DIRECTORY) if host.stat(DIRECTORY) is not None else ()
    return {name.replace("\\\\", "\\"): {"starts": "at boot"} for name in names}


def lingers(world: World, user: str) -> bool:
    """Return whether systemd runs a user's units from boot on.

    :raises Unknown: if a required node may change it
    """
    return world.entry("lingering", user) is not None


@op(mutex="accounts")
def enable_linger(machine: Machine, user: str) -> Result:
    """Let systemd run the user's units from boot on. It also starts the user's own systemd now."""
    effect = {"lingering": {user: {"starts": "at boot"}}}
    result = machine.run(["loginctl", "enable-linger", "--", user], effect, timeout=TIMEOUT)
    if result["status"] != "ok":
        return result
    return start(machine, user)  # logind does not wait for the start, but the units of the user are the next step


def start(machine: Machine, user: str) -> Result:
    """Start the systemd of a user, and wait until it answers."""
    result = machine.run(["systemctl", "start", "--", manager(machine, user)], {}, timeout=TIMEOUT)
    if result["status"] != "error":
        return result
    help = "; a user's systemd needs the PAM module pam_systemd, which Debian has in libpam-systemd"
    return error(result["reason"] + help, result.get("log"))


@op(mutex="accounts")
def disable_linger(machine: Machine, user: str, stop: bool = False) -> Result:
    """Let systemd run the user's units only while the user is logged in.

    :param stop: stop them now, because the user is removed next. Otherwise logind stops them after some seconds, unless
        the user is logged in
    """
    effect = {"lingering": {user: None}}
    result = machine.run(["loginctl", "disable-linger", "--", user], effect, timeout=TIMEOUT)
    if result["status"] != "ok" or not stop:
        return result
    return machine.run(["systemctl", "stop", "--", manager(machine, user)], {}, timeout=TIMEOUT)


def manager(world: World, user: str) -> str:
    """Return the name of the system's unit that is the systemd of a user."""
    return f"user@{(world.entry('users', user) or {}).get('uid')}.service"


def changes(world: World, user: str, wanted: bool | None) -> list[Action]:
    """Return the action after which a user lingers, or does not.

    :raises CheckError: if the host does not run systemd
    """
    if wanted is None or lingers(world, user) is wanted:
        return []
    if not wanted:
        return [disable_linger(user)]
    if world.apparent(SYSTEMD) is None:
        raise CheckError("linger needs systemd, and this host does not run it")
    return [enable_linger(user)]


def end(world: World, user: str) -> list[Action]:
    """Return the action that ends the lingering of a user who is removed. userdel(8) refuses a user with processes."""
    return [disable_linger(user, True)] if lingers(world, user) and world.apparent(SYSTEMD) is not None else []
