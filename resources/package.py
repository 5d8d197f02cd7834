"""Packages of the system, which apt installs."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from typing import Any, Unpack

from statecfg import ActionSpec, HostNode, NodeOptions, PackageName, Text, Unknown, World, node_type
from statecfg.resources.shared import package_removal, package_snapshot, package_transaction
from statecfg.resources.shared.package_manager import manager


@node_type
def package(
    name: PackageName,
    *,
    version: Text | None = None,
    update_cache: int | None = None,
    absent: bool = False,
    purge: bool = False,
    dependents: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Install or remove a package of a Debian system, using apt.

    statecfg installs the packages of a layer in one transaction. A plan simulates this transaction together with
    everything that the earlier layers install and remove, so it finds packages that exclude each other before anything
    changes. If a required node changes what apt reads, such as its sources, the dependencies are `known after` that
    node. An installation never removes another package, and it keeps configuration files that were changed on the host.
    Without `version`, an installed package keeps its version. Before statecfg removes a package, it stops the running
    units of the package, because not every package does that itself. The plan lists these units, and it names those
    that systemd refuses to stop manually.

    Undo: statecfg purges a package that was not installed before. It does so after all other nodes of the run except
    those that the package requires, because restoring them may need the package. A dependency is removed together with
    the last package that needs it. A package that something else needs by then stays, and so does a package that
    another node manages, also in another playbook. Plan and report list what stays: dependencies with the packages that
    need them, and packages that were upgraded. If the package was installed before and the node set a version or
    removed it, its former version is installed again, provided that apt still has it; with `purge`, its configuration
    files are restored as well.

    :param name: the name of the package, with ``:architecture`` for a foreign architecture
    :param version: the required version, exact or as a pattern such as ``"1.22.*"``; a newer version is replaced
    :param update_cache: before installing the package, update apt's package lists if they are older than this many
        seconds
    :param absent: the package must not be installed
    :param purge: with `absent`: also remove the configuration of the package
    :param dependents: with `absent`: also remove the packages that depend on this one; without `dependents`, the node
        fails if there are any

    In YAML::

        - package: nginx
          version: "1.22.*"
          update_cache: 86400

    In Python::

        package("telnetd", absent=True, purge=True)
    """


@package.validate
def contradictions(attrs: dict[str, Any]) -> None:
    """Refuse attributes that contradict each other."""
    if attrs.get("absent") and (attrs.get("version") or attrs.get("update_cache") is not None):
        raise ValueError("absent can't go together with version or update_cache")
    for name in ("purge", "dependents"):
        if attrs.get(name) and not attrs.get("absent"):
            raise ValueError("%s goes with absent" % name)
    if (attrs.get("update_cache") or 0) < 0:
        raise ValueError("update_cache is a number of seconds, 0 or more")


@package.check
def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> ActionSpec:
    """Compare the installed package with the wanted one, and ask the package manager what it would do."""
    attrs = node.attrs
    apt = manager(world)
    entry = world.entry("packages", attrs["name"])
    if attrs.get("absent"):
        return package_transaction.removal(node, nodes, world, entry)
    if satisfied(world, node):
        return ActionSpec()
    actions = apt.first(world)
    stale = apt.stale(world, attrs.get("update_cache"))
    item = {"name": attrs["name"], "version": attrs.get("version"), "others": {}}
    known_after = None
    try:
        if stale is False:
            item = package_transaction.coming(world, node, nodes, (entry or {}).get("version"), satisfied)
        else:  # newer lists may have newer versions
            package_transaction.refuse_excluded(world, node, nodes, satisfied)
    except Unknown as unknown:  # the installation is certain; only the packages that come with it are unknown
        known_after = unknown.cause
    if stale:
        item["update"] = attrs["update_cache"]
    return ActionSpec([*actions, apt.install([item])], known_after=known_after)


def satisfied(world: World, node: HostNode) -> bool:
    """Tell whether the wanted package is installed, in a wanted version."""
    entry, version = world.entry("packages", node.attrs["name"]), node.attrs.get("version")
    found = entry["version"] if entry is not None and not entry.get("state") else None
    return found is not None and (version is None or fnmatch.fnmatchcase(found, version))


package.remember(package_snapshot.remember)


package.learn(package_snapshot.learn)


package.undo(package_removal.undo)
