"""Upgrades of all packages of the system."""

from __future__ import annotations

from typing import Literal, Unpack

from statecfg import Attrs, Name, NodeOptions, node_type
from statecfg.resources.packages import package_upgrades


@node_type
def package_upgrade(
    name: Name,
    *,
    mode: Literal["full", "safe"] = "full",
    update_cache: int | None = None,
    autoremove: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Upgrade all packages of the system to the newest versions that the package manager would install.

    The plan lists every package with its old and new version, and each package that is installed or removed for it.
    If the package lists are older than `update_cache`, the node fetches them first, so the plan does not know the
    versions yet. An apply refuses an upgrade that would change other packages than the plan lists. The node changes
    neither packages on hold nor those for which a ``package`` node sets a version. It fails if the upgrade would remove
    a package that another node installs. zypper's command is `update`, which neither changes vendors nor the release.

    Undo: statecfg installs the former versions of the packages that this node upgraded, provided that the package
    manager still has them, and packages that it removed. A package that others upgraded or removed stays as it is. The
    plan lists those that stay. What an upgrade added stays.

    :param name: a name for messages, such as ``all``
    :param mode: `full` also removes packages if that is necessary; `safe` removes nothing
    :param update_cache: before the upgrade, update the package lists if they are older than this many seconds
    :param autoremove: also remove packages that were installed for others and that are no longer needed

    In YAML::

        - package_upgrade: all
          update_cache: 3600

    In Python::

        package_upgrade("all", mode="safe")
    """


@package_upgrade.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse a negative age."""
    if (attrs.get("update_cache") or 0) < 0:
        raise ValueError("update_cache is a number of seconds, 0 or more")


package_upgrade.identity(["packages:all"])
package_upgrade.needs(["repository:", "module:"])
package_upgrade.implemented_by(package_upgrades)
