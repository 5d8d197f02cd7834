"""How long passwords are valid: the rules of each user, the op that changes them, and the undo."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import Action, ActionSpec, HostNode
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import paths, records, undoing

if TYPE_CHECKING:
    from typing import TypedDict

    class PasswordAgeMemory(TypedDict):
        """The memory of a `password_aging`: the former rules; None without a user."""

        entry: records.Fields | None


SHADOW = "/etc/shadow"
DAY = 86400
NEVER = "never"
# Field → the option of chage(1), in the order of shadow(5).
FIELDS = {
    "min_days": "--mindays",
    "max_days": "--maxdays",
    "warn_days": "--warndays",
    "inactive_days": "--inactive",
    "expires": "--expiredate",
}


@facet("password_aging")
def ages(host: World) -> dict[str, records.Fields]:
    """Load the rules: user → fields. The number -1 means an empty field.

    :raises OSError: if this user may not read /etc/shadow
    """
    loaded: dict[str, records.Fields] = {}
    for line in host.read(SHADOW).decode("utf-8", "replace").splitlines():
        name, *values = line.split(":")
        days = [int(value) if value.isdigit() else -1 for value in values[2:7]]
        if len(days) == len(FIELDS):
            fields: records.Fields = dict(zip(FIELDS, days))
            loaded[name] = {**fields, "expires": NEVER if days[4] < 0 else _date(days[4])}
    return loaded


def _date(days: int) -> str:
    """Return the date of a day that is counted from 1970-01-01."""
    return time.strftime("%Y-%m-%d", time.gmtime(days * DAY))


@op(mutex="accounts")
def age(machine: Machine, user: str, changed: records.Fields) -> Result:
    """Change rules of a user.

    :param changed: the fields that change
    """
    values = {field: "-1" if value == NEVER else str(value) for field, value in changed.items()}
    argv = [part for field, option in FIELDS.items() if field in values for part in (option, values[field])]
    return machine.run(["chage", *argv, "--", user], {"password_aging": {user: changed}})


def _wanted(node: HostNode) -> records.Fields:
    return {field: node.attrs[field] for field in FIELDS if node.attrs.get(field) is not None}


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the rules of the user with the wanted ones.

    :raises CheckError: if the user does not exist
    """
    user = node.attrs["user"]
    paths.account(world, "users", user, node, nodes)
    present = world.entry("password_aging", user) or {}  # empty for a user that a required node creates
    changed = {field: value for field, value in _wanted(node).items() if present.get(field) != value}
    return [age(user, changed)] if changed else []


def remember(node: HostNode, world: World) -> PasswordAgeMemory:
    """Record the rules of the user."""
    return {"entry": world.entry("password_aging", node.attrs["user"])}


def undo(node: HostNode, memory: PasswordAgeMemory, world: World) -> ActionSpec:
    """Restore the rules that the node set, except those that others have changed since."""
    user = node.attrs["user"]
    was, present = memory["entry"], world.entry("password_aging", user)
    if was is None or present is None:
        return ActionSpec()
    changed, left = undoing.reverted(was, _wanted(node), present, lambda field: f"{field} of the password of {user}")
    return ActionSpec([age(user, changed)] if changed else [], left=left)
