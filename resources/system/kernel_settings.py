"""Settings of the running kernel: their values, the op that sets one, and a setting as an entry of its facet."""

from __future__ import annotations

import re
from collections.abc import Mapping

from statecfg.remote.graph.model import Action, CheckError, HostNode
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import entries, paths, records
from statecfg.resources.system.entry_texts import EntryWithTexts

SWAPPED = str.maketrans("./", "/.")  # a name with slashes has dots where one with dots has slashes
INTERFACE = re.compile(r"(net\.[a-z0-9]+\.(?:conf|neigh)\.)")  # an interface's name and a setting follow


@facet("sysctl")
def values(host: World) -> dict[str, records.Fields]:
    """Load the settings of the running kernel: name → `value`. Of a setting with several lines, the first one counts.

    :raises CheckError: if sysctl can't list them
    """
    probe = host.probe(["sysctl", "--all", "--ignore"])
    lines = [line.partition(" = ") for line in probe.text.splitlines()]
    loaded: dict[str, records.Fields] = {}
    for name, separator, value in lines:
        if separator:
            loaded.setdefault(name, {"value": " ".join(value.split())})
    if not loaded:
        errors = probe.errors.decode("utf-8", "replace").strip()
        raise CheckError("`sysctl` failed: %s" % (errors or "no output"))
    return loaded


@op
def set_value(machine: Machine, name: str, value: str) -> Result:
    """Change a setting of the running kernel."""
    return machine.run(["sysctl", "--write", f"{name}={value}"], {"sysctl": {name: {"value": value}}})


def text(value: object) -> str:
    """Return a value as the kernel shows it: with single blanks between its parts."""
    return " ".join(str(value).split())


def _entry(node: HostNode) -> HostNode:
    """Return the line of a setting. sysctl.d(5) also allows `/` in place of `.` and a `-` before the name."""
    attrs = node.attrs
    name = "[./]".join(map(_escaped, attrs["name"].split(".")))
    other = _escaped(attrs["name"].translate(SWAPPED))
    line = f"{attrs['name']} = {text(attrs.get('value'))}"
    return entries.entry(node, attrs["path"], line, rf"^\s*-?({name}|{other})\s*=", mode="0644")


def _escaped(part: str) -> str:
    return "".join(letter if letter.isalnum() or letter == "_" else "\\" + letter for letter in part)


def _missing(world: World, name: str) -> str:
    """Return the reason why the kernel has no such setting, and what to do."""
    known = world.facet("sysctl")
    found = INTERFACE.match(name)
    if found and any(other.startswith(found[1]) for other in known):
        rest = name[len(found[1]) :].split(".")
        same = [other for other in known if other.startswith(found[1]) and other.endswith("." + rest[-1])]
        joined = found[1] + "/".join(rest[:-1]) + "." + rest[-1]
        if same and joined in known:
            return f"; write `/` for a dot in the name of an interface: {joined}"
        if same:
            interface = "/".join(rest[:-1]).replace("/", ".")
            return f", because it has no interface {interface}; require what creates it, or write running: false"
    return f"{paths.nearest(name, known)}; require the kernel_module that brings it, or write running: false"


class KernelSetting(EntryWithTexts):
    """The running value of a setting, and its line for the next boot. An absent node has only no line."""

    facet, fields, kept_as, single = "sysctl", ("value",), "value", True

    def texts(self) -> Mapping[str, HostNode]:
        """Return the line of the setting."""
        return {"": _entry(self.node)}

    def named(self, field: str) -> str:
        """Return the words for the running value."""
        return f"the running {field} of {self.key()}"

    def absent(self) -> bool:
        """Return False: the kernel keeps the setting."""
        return False

    def wanted(self) -> records.Fields:
        """Return the running value, if the node sets it."""
        running = not self.attrs.get("absent") and self.attrs.get("running") is not False
        return {"value": text(self.attrs["value"])} if running else {}

    def present(self) -> records.Fields | None:
        """Return the running value, if the node sets it: not every host can list its settings."""
        return super().present() if self.wanted() else None

    def require(self, now: records.Fields | None) -> None:
        """Check that the kernel has the setting."""
        if now is None and self.wanted():
            raise CheckError(f"the kernel of this host has no setting {self.key()}{_missing(self.world, self.key())}")

    def create(self, fields: records.Fields) -> list[Action]:
        """Return nothing: only the kernel has settings."""
        return []

    def change(self, now: records.Fields, fields: records.Fields) -> list[Action]:
        """Change the running value."""
        return [set_value(self.key(), fields["value"])]
