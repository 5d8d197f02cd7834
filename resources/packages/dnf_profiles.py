"""Profiles of modules of dnf: install and remove them, with a plan of their packages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import ActionSpec, HostNode, Unknown
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.packages import dnf_groups, package_steps, package_transaction
from statecfg.resources.shared import records

if TYPE_CHECKING:
    from typing import NotRequired, TypedDict

    from statecfg.remote.graph.model import Blob

    class ProfileMemory(TypedDict):
        """What the memory of a `dnf_module` needs for its profiles.

        :ivar was: the state and stream of the module; None if there was no choice
        :ivar context: all packages, one a line, if the node has profiles
        """

        was: records.Fields | None
        context: NotRequired[Blob]


def installed(entry: records.Fields | None) -> list[str]:
    """Return the installed profiles of a module.

    :param entry: its entry in the facet `dnf_modules`
    """
    return list((entry or {}).get("profiles") or ())


def solve(world: World, name: str, stream: str, profiles: list[str], remove: bool) -> records.Steps:
    """Return which packages the installation or removal of profiles would change.

    :param stream: the stream of the module. If another one is enabled, dnf resets it before
    :raises CheckError: if dnf refuses
    """
    from statecfg.resources.packages.managers.dnf import dnf_program

    specs = _specs(name, stream, profiles)
    found: records.Steps = dnf_program.planned(world, "module", specs=specs, gone=remove, erase=remove)
    return found


def _specs(name: str, stream: str, profiles: list[str]) -> list[str]:
    return [f"{name}:{stream}/{profile}" for profile in profiles]


@op(mutex="dnf")
def change_profiles(
    machine: Machine,
    name: str,
    stream: str,
    profiles: list[str],
    remove: bool,
    steps: records.Steps | None,
    left: list[str],
) -> Result:
    """Install or remove profiles of a module. If dnf would change other packages than planned, change nothing.

    :param stream: the enabled stream
    :param steps: which packages change; None if that was not known
    :param left: the installed profiles afterwards
    """
    from statecfg.resources.packages.managers.dnf import dnf, dnf_program

    files = [f"/etc/dnf/modules.d/{name}.module"]
    effect = {**dnf_groups.effect(steps), "dnf_modules": {name: {"profiles": left}}, "files": files}
    argv = ["dnf", "-y", dnf_program.NEVER, "module", "remove" if remove else "install"]
    argv += _specs(name, stream, profiles)

    def simulate() -> records.Steps:
        return solve(machine, name, stream, profiles, remove)

    foreseen = set(steps) if steps is not None else None
    return package_steps.Guard(machine, dnf.NAME).run(argv, effect, simulate, foreseen=foreseen)


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World, present: list[str]) -> ActionSpec:
    """Compare the installed profiles with the wanted ones, and ask dnf for the packages.

    :param present: the profiles that are installed once the module has its stream
    :raises CheckError: if dnf refuses, or if a removal would take a package that another node installs
    """
    attrs, remove = node.attrs, bool(node.attrs.get("absent"))
    wrong = [each for each in attrs.get("profiles") or () if (each in present) is remove]
    if not wrong:
        return ActionSpec()
    entry = world.entry("dnf_modules", attrs["name"]) or {}
    stream, steps, known_after = attrs.get("stream") or entry.get("stream", ""), None, None
    if package_steps.stale(world, "dnf", None) is False:
        try:
            steps = solve(world, attrs["name"], stream, wrong, remove)
        except Unknown as unknown:
            known_after = unknown.cause
    gone = sorted(name for name, version in (steps or {}).items() if version is None)
    package_transaction.refuse_wanted(world, nodes, gone, f"the change of profiles of the module {attrs['name']}")
    left = sorted({*present, *wrong} - (set(wrong) if remove else set()))
    return ActionSpec([change_profiles(attrs["name"], stream, wrong, remove, steps, left)], known_after=known_after)


def undo(node: HostNode, memory: ProfileMemory, world: World) -> ActionSpec:
    """Remove the new profiles of a stream, or install the removed ones again."""
    attrs, was = node.attrs, memory["was"]
    entry = world.entry("dnf_modules", attrs["name"]) or {}
    now, before, remove = installed(entry), installed(was), not attrs.get("absent")
    named = attrs.get("profiles") or ()
    ours = [each for each in named if (each in now) is remove and (each in before) is not remove]
    stream = entry.get("stream", "")
    if not ours or stream != (attrs.get("stream") or (was or {}).get("stream")):
        return ActionSpec()
    steps = solve(world, attrs["name"], stream, ours, remove)
    there = {line.partition(" ")[0] for line in memory["context"].read().decode().split("\n")}
    wanted = sorted(name for name, version in steps.items() if version is None and name in there)
    if remove and wanted:
        text = "the profiles of the module %s stay: their removal would take %s, which was there before"
        return ActionSpec(left=[text % (attrs["name"], ", ".join(wanted))])
    left = sorted({*now, *ours} - (set(ours) if remove else set()))
    return ActionSpec([change_profiles(attrs["name"], stream, ours, remove, steps, left)])
