"""How long passwords are valid: the rules of each user, the op that changes them, and the undo."""

from __future__ import annotations

import time

from statecfg.remote.graph.facet_entry import FacetEntry
from statecfg.remote.graph.model import Action
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import paths, records

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


class Ages(FacetEntry):
    """The rules of a user. A user that a required node creates has none yet."""

    facet = "password_aging"
    fields = tuple(FIELDS)

    def key(self) -> str:
        """Return the user."""
        return str(self.attrs["user"])

    def named(self, field: str) -> str:
        """Return the words for a rule."""
        return f"{field} of the password of {self.key()}"

    def require(self, now: records.Fields | None) -> None:
        """Check that the user exists or will exist."""
        paths.account(self.world, "users", self.key(), self.node, self.nodes)

    def change(self, now: records.Fields, fields: records.Fields) -> list[Action]:
        """Change the rules."""
        return [age(self.key(), fields)]
