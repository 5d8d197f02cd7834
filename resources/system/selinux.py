"""SELinux: facets with booleans, labels of files and ports, the ops that change them, and the types of their entries.

All values come from semanage(8), which shows the policy and the local changes. Source: its manual pages of version 3.4.
"""

from __future__ import annotations

import re

from statecfg.remote.graph.facet_entry import FacetEntry
from statecfg.remote.graph.model import Action, ActionSpec, CheckError
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import paths, records

PROGRAM = ("/usr/sbin/semanage", "/sbin/semanage")
TIMEOUT = 300.0  # each change compiles the policy
# Names in the output of semanage → its options.
FILE_TYPES = {
    "all files": "a", "regular file": "f", "directory": "d", "character device": "c", "block device": "b",
    "socket": "s", "symbolic link": "l", "named pipe": "p",
}  # fmt: skip
WORDS = {True: "on", False: "off"}


def _listed(host: World, *arguments: str) -> list[str]:
    """Return the lines that semanage prints; none if it is not installed.

    :raises CheckError: if it fails: an empty list would mean that there is nothing
    """
    if all(host.stat(path) is None for path in PROGRAM):
        return []
    probe = host.probe(["semanage", *arguments], timeout=TIMEOUT)
    if probe.status:
        lines = (probe.errors or probe.output).decode("utf-8", "replace").strip().splitlines()
        raise CheckError(f"semanage {' '.join(arguments)} fails: {lines[-1] if lines else 'no output'}")
    return probe.text.splitlines()


def _require_program(world: World) -> None:
    """Check that semanage is installed.

    :raises Unknown: if a required node may install it
    :raises CheckError: if it is not
    """
    if all(world.stat(path) is None for path in PROGRAM):
        raise CheckError("semanage is not installed; declare the package policycoreutils-python-utils and require it")


# Booleans


@facet("selinux_boolean", volatile=True)
def booleans(host: World) -> dict[str, records.Fields]:
    """Load the booleans: name → `running` and `persistent`, both on or off."""
    lines = _listed(host, "boolean", "--list", "--noheading")
    found = (re.match(r"(\S+)\s+\((on|off)\s*,\s*(on|off)\s*\)", line) for line in lines)
    return {match[1]: {"running": match[2], "persistent": match[3]} for match in found if match}


@op(mutex="selinux")
def set_boolean(machine: Machine, name: str, value: str, persistent: bool) -> Result:
    """Set a boolean in the running policy, and for the next boot if it is persistent."""
    fields = {"running": value, **({"persistent": value} if persistent else {})}
    option = ["-P"] if persistent else []
    return machine.run(["setsebool", *option, name, value], {"selinux_boolean": {name: fields}}, timeout=TIMEOUT)


class SelinuxBoolean(FacetEntry):
    """The values of a boolean. A persistent change also changes the running value."""

    facet, kept_as, together = "selinux_boolean", "was", True
    words = {"running": "running value", "persistent": "persistent value"}

    def ready(self) -> None:
        """Check that the host has semanage, and the policy has the boolean."""
        _require_program(self.world)
        if self.present() is None:
            near = paths.nearest(self.key(), self.world.facet(self.facet))
            raise CheckError(f"the policy of this host has no boolean {self.key()}{near}")

    def wanted(self) -> records.Fields:
        """Return the wanted values."""
        persistent = ["persistent"] if self.attrs.get("persistent", True) else []
        return dict.fromkeys(["running", *persistent], WORDS[self.attrs["value"]])

    def change(self, now: records.Fields, fields: records.Fields) -> list[Action]:
        """Set the persistent value, and then the running one if it differs."""
        actions: list[Action] = []
        running = now["running"]
        if fields.get("persistent", now["persistent"]) != now["persistent"]:
            running = fields["persistent"]
            actions.append(set_boolean(self.key(), running, True))
        return actions + ([set_boolean(self.key(), fields["running"], False)] if fields["running"] != running else [])


# Labels of files


@facet("selinux_fcontext", volatile=True)
def contexts(host: World) -> dict[str, records.Fields]:
    """Load the local rules for labels: pattern and file type → `setype`."""
    loaded: dict[str, records.Fields] = {}
    for line in _listed(host, "fcontext", "--list", "--locallist", "--noheading"):
        found = re.match(rf"(\S+)\s+({'|'.join(FILE_TYPES)})\s+(?:\S+?:\S+?:(\S+?)(?::\S*)?|<<None>>)\s*\Z", line)
        if found:
            loaded[f"{found[1]} ({found[2]})"] = {"setype": found[3] or "<<none>>"}
        elif line.strip() and " = " not in line and not line.startswith("SELinux "):
            raise CheckError(f"semanage prints a rule that statecfg can't read: {line}")
    return loaded


@op(mutex="selinux")
def set_context(machine: Machine, path: str, file_type: str, setype: str, exists: bool) -> Result:
    """Add or change the rule for the labels of files."""
    how = ["--modify" if exists else "--add", "--ftype", FILE_TYPES[file_type], "--type", setype]
    effect = {"selinux_fcontext": {f"{path} ({file_type})": {"setype": setype}}}
    return machine.run(["semanage", "fcontext", *how, path], effect, timeout=TIMEOUT)


@op(mutex="selinux")
def delete_context(machine: Machine, path: str, file_type: str) -> Result:
    """Delete the rule for the labels of files."""
    effect = {"selinux_fcontext": {f"{path} ({file_type})": None}}
    argv = ["semanage", "fcontext", "--delete", "--ftype", FILE_TYPES[file_type], path]
    return machine.run(argv, effect, timeout=TIMEOUT)


@op(mutex="selinux")
def relabel(machine: Machine, path: str) -> Result:
    """Give existing files the labels of the policy."""
    return machine.run(["restorecon", "-R", path], {}, timeout=3600.0)


def _missing(world: World, path: str) -> bool:
    """Return whether it is known that there is nothing at a path, so that restorecon would fail."""
    return world.is_known(path) and world.stat(path) is None


def _mislabelled(world: World, path: str) -> bool:
    """Return whether files have other labels than those of the policy.

    :raises CheckError: if restorecon can't tell
    """
    if world.stat(path) is None:
        return False
    probe = world.probe(["restorecon", "-n", "-v", "-R", path], timeout=3600.0)
    if probe.status:
        raise CheckError(f"restorecon can't compare the labels of {path}: {probe.errors.decode('utf-8', 'replace')}")
    return "relabel" in probe.text


class SelinuxContext(FacetEntry):
    """The local rule for the labels of files, and the labels of existing files if the node names them."""

    facet, fields, kept_as, whole = "selinux_fcontext", ("setype",), "was", True

    def key(self) -> str:
        """Return the pattern and the file type."""
        return f"{self.attrs['path']} ({self.attrs['file_type']})"

    def stays(self, field: str, now: object) -> str:
        """Return the message about a rule that others have changed."""
        return f"the rule for {self.key()} was changed by others: it stays"

    def ready(self) -> None:
        """Check that the host has semanage."""
        _require_program(self.world)

    def create(self, fields: records.Fields) -> list[Action]:
        """Add the rule."""
        return [set_context(self.attrs["path"], self.attrs["file_type"], fields["setype"], False)]

    def change(self, now: records.Fields, fields: records.Fields) -> list[Action]:
        """Change the rule."""
        return [set_context(self.attrs["path"], self.attrs["file_type"], fields["setype"], True)]

    def remove(self, now: records.Fields) -> list[Action]:
        """Delete the rule."""
        return [delete_context(self.attrs["path"], self.attrs["file_type"])]

    def check(self) -> ActionSpec:
        """Compare the rule, and the labels of existing files.

        :raises CheckError: if semanage or restorecon fails
        """
        spec, below = super().check(), self.attrs.get("restore")
        if below is not None and not _missing(self.world, below) and (spec.actions or _mislabelled(self.world, below)):
            spec.actions.append(relabel(below))
        return spec

    def undo(self, memory: records.Attrs) -> ActionSpec:
        """Restore or delete the rule, and relabel the files again."""
        spec, below = super().undo(memory), self.attrs.get("restore")
        if spec.actions and below is not None and not _missing(self.world, below):
            spec.actions.append(relabel(below))
        return spec


# Ports


@facet("selinux_port", volatile=True)
def ports(host: World) -> dict[str, records.Fields]:
    """Load the labels of ports: port or range, and protocol → `setype`, and `local` for a local label."""
    loaded: dict[str, records.Fields] = {}
    for local in (False, True):
        for line in _listed(host, "port", "--list", "--noheading", *(["--locallist"] if local else [])):
            found = re.match(r"(\S+)\s+(tcp|udp|sctp|dccp)\s+([0-9, -]+)\Z", line)
            if found is None:
                continue
            for port in found[3].split(","):
                # A local rule overrides the policy, and semanage lists both.
                loaded[f"{port.strip()}/{found[2]}"] = {"setype": found[1], **({"local": True} if local else {})}
    return loaded


@op(mutex="selinux")
def set_port(machine: Machine, port: str, setype: str, exists: bool) -> Result:
    """Give a port a label."""
    number, _, protocol = port.partition("/")
    argv = ["semanage", "port", "--modify" if exists else "--add", "--type", setype, "--proto", protocol, number]
    return machine.run(argv, {"selinux_port": {port: {"setype": setype, "local": True}}}, timeout=TIMEOUT)


@op(mutex="selinux")
def delete_port(machine: Machine, port: str) -> Result:
    """Delete the local label of a port. Afterwards it has that of the policy, if there is one."""
    number, _, protocol = port.partition("/")
    argv = ["semanage", "port", "--delete", "--proto", protocol, number]
    return machine.run(argv, {"selinux_port": {port: None}}, timeout=TIMEOUT)


class SelinuxPort(FacetEntry):
    """The label of a port. A local label replaces one of the policy."""

    facet, fields, kept_as, whole = "selinux_port", ("setype",), "was", True

    def key(self) -> str:
        """Return the port and its protocol."""
        return str(self.attrs["port"])

    def stays(self, field: str, now: object) -> str:
        """Return the message about a label that others have changed."""
        return f"the label of {self.key()} was changed by others: it stays"

    def ready(self) -> None:
        """Check that the host has semanage."""
        _require_program(self.world)

    def own(self, entry: records.Fields | None) -> records.Fields | None:
        """Return a local label; None for one of the policy."""
        return entry if entry is not None and entry.get("local") else None

    def change(self, now: records.Fields, fields: records.Fields) -> list[Action]:
        """Give the port a label."""
        return [set_port(self.key(), fields["setype"], self.present() is not None)]

    def remove(self, now: records.Fields) -> list[Action]:
        """Delete a local label."""
        return [delete_port(self.key())] if self.own(now) else []
