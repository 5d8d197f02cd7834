"""The name of the running host: the op that sets it, and the name as an entry of its facet."""

from __future__ import annotations

from statecfg.remote.graph.model import Action
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import records
from statecfg.resources.system.entry_texts import EntryWithTexts

FILE = "/etc/hostname"


@facet("hostname")
def running(host: World) -> dict[str, records.Fields]:
    """Load the name in the running kernel: `running` → `name`."""
    return {"running": {"name": host.read("/proc/sys/kernel/hostname").decode("utf-8", "replace").strip()}}


@op
def set_name(machine: Machine, name: str) -> Result:
    """Change the name in the running kernel."""
    return machine.run(["hostname", name], {"hostname": {"running": {"name": name}}})


class HostName(EntryWithTexts):
    """The name in the running kernel, and the file for the next boot."""

    facet, fields, kept_as, single = "hostname", ("name",), "name", True

    def key(self) -> str:
        """Return the key of the running name."""
        return "running"

    def stays(self, field: str, now: object) -> str:
        """Return the message about another name."""
        return f"the host is now named {now}: it keeps this name"

    def change(self, now: records.Fields, fields: records.Fields) -> list[Action]:
        """Change the running name."""
        return [set_name(fields["name"])]
