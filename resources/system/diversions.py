"""Diversions of dpkg: which there are, the ops that add and remove one, and the undo."""

from __future__ import annotations

from statecfg.remote.graph import undoing
from statecfg.remote.graph.facet_entry import FacetEntry
from statecfg.remote.graph.model import Action, ActionSpec, CheckError
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import records

DATABASE = "/var/lib/dpkg/diversions"
LOCAL = ":"  # means the administrator, in place of a package


@facet("diversion")
def diversions(host: World) -> dict[str, records.Fields]:
    """Load the diversions: path → `to`, and `by`, the package that diverts it. Source: db-fsys-divert.c of dpkg."""
    if host.stat(DATABASE) is None:
        raise CheckError("this host has no dpkg, which the node type diversion requires")
    lines = host.read(DATABASE).decode("utf-8", "surrogateescape").splitlines()
    return {lines[at]: {"to": lines[at + 1], "by": lines[at + 2]} for at in range(0, len(lines) - 2, 3)}


@op(mutex="apt")
def divert(machine: Machine, path: str, to: str) -> Result:
    """Divert a path and rename the present file."""
    effect = {"diversion": {path: {"to": to, "by": LOCAL}}, "files": [path, to]}
    return machine.run(["dpkg-divert", "--local", "--rename", "--divert", to, "--add", path], effect)


@op(mutex="apt")
def end_diversion(machine: Machine, path: str, to: str) -> Result:
    """Remove a diversion and rename the file back."""
    effect = {"diversion": {path: None}, "files": [path, to]}
    return machine.run(["dpkg-divert", "--local", "--rename", "--divert", to, "--remove", path], effect)


class Diversion(FacetEntry):
    """The diversion of a path by the administrator."""

    facet, fields, whole = "diversion", ("to",), True

    def key(self) -> str:
        """Return the path."""
        return str(self.attrs["path"])

    def wanted(self) -> records.Fields:
        """Return the new path of the file."""
        return {"to": self.attrs.get("to") or self.key() + ".distrib"}

    def own(self, entry: records.Fields | None) -> records.Fields | None:
        """Return a diversion by the administrator; None for one by a package."""
        return entry if entry is not None and entry["by"] == LOCAL else None

    def stays(self, field: str, now: object) -> str:
        """Return the message about a diversion that others have changed."""
        return undoing.stays(f"the diversion of {self.key()}", f"to {now}")

    def ready(self) -> None:
        """Check that no package diverts the path."""
        now = self.present()
        if now is not None and now["by"] != LOCAL:
            raise CheckError(f"the package {now['by']} diverts {self.key()} to {now['to']}: it stays")

    def create(self, fields: records.Fields) -> list[Action]:
        """Divert the path."""
        _require_free(self.world, self.key(), fields["to"])
        return [divert(self.key(), fields["to"])]

    def change(self, now: records.Fields, fields: records.Fields) -> list[Action]:
        """Replace the diversion."""
        return [*self.remove(now), divert(self.key(), fields["to"])]

    def remove(self, now: records.Fields) -> list[Action]:
        """Remove the diversion."""
        _require_free(self.world, now["to"], self.key())
        return [end_diversion(self.key(), now["to"])]

    def drop(self, now: records.Fields) -> ActionSpec:
        """Remove a new diversion, unless another file has its path."""
        return self._taken(now) or super().drop(now)

    def give_back(self, now: records.Fields, was: records.Fields) -> ActionSpec:
        """Replace a diversion, unless another file has its path."""
        return self._taken(now) or super().give_back(now, was)

    def _taken(self, now: records.Fields) -> ActionSpec | None:
        if self.world.apparent(self.key()) is None or self.world.apparent(now["to"]) is None:
            return None
        return ActionSpec(left=[f"the diversion of {self.key()} stays: there is another file at this path"])


def _require_free(world: World, path: str, to: str) -> None:
    """Check that a file can be renamed without replacing another one."""
    if world.apparent(path) is not None and world.apparent(to) is not None:
        raise CheckError(f"{to} exists already, and dpkg-divert would not rename {path}: move one of them away")
