"""The package manager of a host, as the node type `package` uses it, and the facets that it loads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from statecfg.remote.graph.model import CheckError, HostNode, Unknown
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.machine.world import World
from statecfg.resources.shared import records

if TYPE_CHECKING:  # hosts don't need the protocol
    from statecfg.remote.graph.model import Action
    from statecfg.remote.graph.ops import Op

    class Manager(Protocol):
        """The functions of a package manager."""

        NAME: str
        """Its name."""
        SHIPPED: str | None
        """The suffix of the package's own configuration file, if the host has a changed one; None: it is not kept."""
        SAVED: str | None
        """The suffix that a removal adds to changed configuration files; None: a removal leaves them as they are."""
        GONE: records.WantedPackage
        """An entry of the facet `asked`: the package will be removed."""
        VIRTUAL: str
        """What it calls a name that is not the name of a package."""
        EXCLUDED: re.Pattern[str]
        """Matches its message that packages exclude each other, which newer lists would not change."""
        install: Op
        """Installs, in one transaction; an action of it takes a list of items."""
        remove: Op
        """Removes, in one transaction, and refuses to remove more than requested."""
        hold: Op
        """Puts an installed package on hold, or releases it."""
        mark_manual: Op
        """Lets the manager know that a package must stay if nothing needs it."""
        mark_automatic: Op
        """Lets the manager know that a package is there only for others that need it."""

        def packages(self, host: Any) -> dict[str, records.Fields]:
            """Load the facet `packages`."""

        def automatic(self, host: Any) -> dict[str, records.Fields]:
            """Load the facet `automatic`."""

        def dependencies(self, host: Any) -> dict[str, records.Fields]:
            """Load the facet `dependencies`."""

        def unit_packages(self, host: Any) -> dict[str, records.Fields]:
            """Load the facet `unit_packages`."""

        def options(self, attrs: Mapping[str, Any]) -> list[str]:
            """Return the options of the manager for the transaction that installs a node's package.

            :raises CheckError: if an attribute of the node has no meaning for this manager
            """

        def first(self, world: World) -> list[Action]:
            """Return the actions that the manager needs before it can do anything."""

        def transaction(self, world: World, wanted: records.WantedPackages, purge: bool = False) -> records.Steps:
            """Return what one transaction would do, including the removals that follow from it.

            :raises CheckError: if the manager refuses
            """

        def unknown_package(self, world: World, name: str, version: str | None, problem: str) -> CheckError | None:
            """Return the error if the manager refuses because it does not know the package or the version."""

        def unneeded(self, world: World, names: Iterable[str]) -> set[str]:
            """Return the automatically installed packages that nothing needs after the removal of these."""

        def conffiles(self, world: World, name: str) -> list[str]:
            """Return the paths of a package's configuration files."""


# Systems, as the files in `OS_RELEASE` name them in ID and ID_LIKE → the package manager. Source: os-release(5).
SYSTEMS = {
    "debian": "apt", "ubuntu": "apt", "fedora": "dnf", "rhel": "dnf", "centos": "dnf", "amzn": "dnf", "arch": "pacman",
    "archarm": "pacman", "suse": "zypper", "opensuse": "zypper", "sles": "zypper",
}  # fmt: skip
OS_RELEASE = ("/etc/os-release", "/usr/lib/os-release")
# Package manager → where its database may be. The order counts if os-release names no known system.
DATABASES = {
    "apt": ("/var/lib/dpkg/status",),
    "pacman": ("/var/lib/pacman/local",),
    "zypper": ("/var/lib/zypp",),  # beside the database of rpm
    "dnf": ("/usr/lib/sysimage/rpm", "/var/lib/rpm"),
}


@facet("package_manager")
def package_manager(host: Any) -> dict[str, records.Fields]:
    """Load which package manager owns the system: `host` → `name`.

    It is the one of the system that os-release names, provided that its database exists; otherwise, the first one that
    has a database. So a Debian host on which dnf is installed uses apt.

    :raises CheckError: if the host has no package manager that statecfg knows
    """
    text = next((host.read(path).decode("utf-8", "replace") for path in OS_RELEASE if host.stat(path) is not None), "")
    fields = dict(re.findall(r"^(ID|ID_LIKE)=[\"']?([^\"'\n]*)", text, re.M))
    systems = (fields.get("ID", "") + " " + fields.get("ID_LIKE", "")).split()
    names = [SYSTEMS[system] for system in systems if system in SYSTEMS]
    for name in (*names, *DATABASES):
        if any(host.stat(path) is not None for path in DATABASES[name]):
            return {"host": {"name": name}}
    raise CheckError(f"statecfg finds no package manager on this host; it knows {', '.join(DATABASES)}")


def manager(world: World) -> Manager:
    """Return the host's package manager.

    :raises CheckError: if the host has none that statecfg knows
    """
    try:
        found = (world.entry("package_manager", "host") or {}).get("name", "apt")
    except Unknown:  # an earlier command may change anything, but not the system
        found = next(name for name in DATABASES if any(world.apparent(path) for path in DATABASES[name]))
    return named(found)


def require(world: World, node: HostNode, name: str) -> None:
    """Check that the host has this package manager.

    :raises CheckError: if it has another one
    """
    if name != manager(world).NAME:
        text = "%s is for hosts with %s, and this host has %s"
        raise CheckError(text % (node.type, name, manager(world).NAME))


def named(name: str) -> Manager:
    """Return a package manager. The code of all of them is a part of the bundle (`statecfg.run.host_modules`)."""
    from statecfg.resources.packages.managers.apt import apt
    from statecfg.resources.packages.managers.dnf import dnf
    from statecfg.resources.packages.managers.pacman import pacman
    from statecfg.resources.packages.managers.zypper import zypper

    managers: dict[str, Any] = {"apt": apt, "dnf": dnf, "pacman": pacman, "zypper": zypper}
    found: Manager = managers[name]
    return found


@facet("packages")
def packages(host: Any) -> dict[str, records.Fields]:
    """Load the packages: name → `version`, `state` unless it is completely installed, and `held` if it is on hold.

    :raises CheckError: if the host has no package manager that statecfg knows
    """
    return manager(host).packages(host)


@facet("automatic", of="packages")
def automatic(host: Any) -> dict[str, records.Fields]:
    """Load the packages that are installed only because other packages need them: name → `auto`."""
    return manager(host).automatic(host)


@facet("asked")
def asked(host: Any) -> dict[str, records.Fields]:
    """Return an empty facet. Plans enter the installs and removals of this run here."""
    return {}


@facet("dependencies")
def dependencies(host: Any) -> dict[str, records.Fields]:
    """Load which packages the installed packages need: name → `hard` and `soft`, lists of installed packages."""
    return manager(host).dependencies(host)


@facet("unit_packages")
def unit_packages(host: Any) -> dict[str, records.Fields]:
    """Load which packages own the files of units: name of a unit's file → `packages`."""
    return manager(host).unit_packages(host)
