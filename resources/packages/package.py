"""Packages of the system, which its package manager installs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from statecfg import (
    AbsolutePath,
    ActionSpec,
    Attrs,
    HostNode,
    Name,
    NodeOptions,
    PackageName,
    PublicLine,
    World,
    node_type,
)
from statecfg.resources.packages import package_manager, package_removal, package_snapshot, package_transaction


@node_type
def package(
    name: PackageName,
    *,
    version: PublicLine | None = None,
    file: AbsolutePath | None = None,
    update_cache: int | None = None,
    absent: bool = False,
    purge: bool = False,
    dependents: bool = False,
    hold: bool | None = None,
    recommends: bool | None = None,
    default_release: PublicLine | None = None,
    enable_repositories: list[Name] | None = None,
    replaces: list[PackageName] | None = None,
    provides_units: list[Name] | None = None,
    provides_programs: list[Name] | None = None,
    **options: Unpack[NodeOptions],
) -> None:
    """Install or remove a package with the package manager of the host: apt, dnf 4, pacman or zypper.

    os-release names the host's system, and that decides which package manager it is, if the database of this package
    manager exists. So a Debian host on which dnf is installed uses apt. `version` has the form that the package manager
    uses, such as ``2.4.57-5.el9`` for dnf; a pattern such as ``"2.4.*"`` is valid for all. pacman has one version in
    its repositories, and others in its cache. zypper accepts the licenses of packages. An option that only another
    package manager has is an error.

    statecfg installs the packages of a layer in one transaction. A plan simulates this transaction together with
    everything that the earlier layers install and remove, so it finds packages that exclude each other before anything
    changes. Packages with other values of `recommends`, `default_release` or `enable_repositories` have a separate
    transaction. If a required node changes what the package manager reads, such as its repositories, the dependencies
    are `known after` that node. An installation removes another package only if `replaces` names it, and it keeps
    configuration files that were changed on the host. Without `version`, an installed package keeps its version. Before
    statecfg removes a package, it stops the running units of the package, because not every package does that itself.
    The plan lists these units, and it names those that systemd refuses to stop manually.

    A package that is installed only because another one needs it is marked as manually installed, so that it stays when
    the other one goes. Undo removes this mark.

    Undo: statecfg purges a package that was not installed before. It does so after all other nodes of the run except
    those that the package requires, because restoring them may need the package. A dependency is removed together with
    the last package that needs it. A package that something else needs by then stays, and so does a package that
    another node manages, also in another playbook. Plan and report list what stays: dependencies with the packages that
    need them, and packages that were upgraded. If the package was installed before and the node set a version or
    removed it, its former version is installed again, provided that the package manager still has it, with the
    configuration files that were removed.

    :param name: the name of the package, with ``:architecture`` for a foreign architecture
    :param version: the required version, exact or as a pattern such as ``"1.22.*"``; a newer version is replaced
    :param file: apt only: a file of the host with the package, such as ``/srv/tool_1.2_amd64.deb``. apt installs it,
        and what it needs from the repositories. Another version in the file is a difference. The package automatically
        requires a node that brings the file
    :param update_cache: before installing the package, update the package lists if they are older than this many
        seconds
    :param absent: the package must not be installed
    :param purge: with `absent`: also remove the configuration of the package; with dnf, pacman and zypper: changed
        configuration files, which they would rename
    :param dependents: with `absent`: also remove the packages that depend on this one; without `dependents`, the node
        fails if there are any
    :param hold: true: put the package on hold, so that upgrades don't change it, and only this node does; false:
        release it. dnf needs its plugin versionlock for this, and pacman can't do it
    :param recommends: apt, dnf and zypper: whether they install what the package recommends, regardless of their own
        setting
    :param default_release: apt only: the release from which it takes the package and what it needs, such as
        ``bookworm-backports``
    :param enable_repositories: dnf only: disabled repositories that this installation uses
    :param replaces: packages that the installation may remove, because they conflict with this one. The plan lists
        them, and undo installs them again
    :param provides_units: units that the package contains, if their names differ from the package's. Services of these
        units automatically require the package
    :param provides_programs: programs that the package contains, for commands in the same way

    In YAML::

        - package: nginx
          version: "1.22.*"
          update_cache: 86400

    In Python::

        package("telnetd", absent=True, purge=True)
    """


package.manners = (
    *("update_cache", "purge", "dependents", "recommends", "default_release"),
    *("enable_repositories", "provides_units", "provides_programs"),
)


@package.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse attributes that contradict each other."""
    if attrs.get("absent") and (attrs.get("version") or attrs.get("update_cache") is not None):
        raise ValueError("absent can't be combined with version or update_cache")
    if attrs.get("file") and attrs.get("version"):
        raise ValueError("file can't be combined with version: the file has one")
    for name in ("file", "hold", "recommends", "default_release", "enable_repositories", "replaces"):
        if attrs.get("absent") and attrs.get(name) and name != "recommends":
            raise ValueError(f"absent can't be combined with {name}")
    if attrs.get("absent") and attrs.get("recommends") is not None:
        raise ValueError("absent can't be combined with recommends")
    if attrs.get("default_release") and attrs.get("enable_repositories"):
        raise ValueError(
            "default_release is an option of apt, and enable_repositories is one of dnf: remove one of them"
        )
    if attrs["name"] in (attrs.get("replaces") or ()):
        raise ValueError(f"a package can't replace itself: remove {attrs['name']} from replaces")
    for name in ("purge", "dependents"):
        if attrs.get(name) and not attrs.get("absent"):
            raise ValueError(f"{name} requires absent")
    if (attrs.get("update_cache") or 0) < 0:
        raise ValueError("update_cache is a number of seconds, 0 or more")


@package.needs
def needs(attrs: Attrs) -> list[str]:
    """Need the files that name the repositories, answers to the questions of the package, and its own file."""
    own = ["path:" + attrs["file"]] if attrs.get("file") else []
    return ["repository:", "module:", "answers:" + attrs["name"].partition(":")[0], *own]


@package.to_wire
def to_wire(node: Any) -> Any:
    """Keep what only the controller uses."""
    provided = node.attrs.get("provides_units") or node.attrs.get("provides_programs")
    return node.with_attrs(provides_units=None, provides_programs=None) if provided else node


@package.check
def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> ActionSpec:
    """Compare the installed package with the wanted one, and ask the package manager what it would do."""
    if node.attrs.get("absent"):
        return package_transaction.removal(node, nodes, world)
    package_manager.manager(world).options(node.attrs)
    if package_transaction.satisfied(world, node):
        return package_transaction.marked(node, world)
    return package_transaction.installation(node, nodes, world)


package.produces(package_transaction.version)
package.implemented_by(package_snapshot)
package.undo(package_removal.undo)
