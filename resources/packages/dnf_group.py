"""Groups of packages for dnf."""

from __future__ import annotations

from typing import Unpack

from statecfg import Attrs, NodeOptions, PublicLine, node_type
from statecfg.remote.graph.wrong_values import Wrong, show
from statecfg.resources.packages import dnf_groups


@node_type
def dnf_group(
    name: PublicLine,
    *,
    optional: bool = False,
    update_cache: int | None = None,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Install or remove a group of packages with dnf, such as ``development``. The plan lists the packages.

    An apply refuses a change of other packages than the plan lists. An installed group stays as it is, even if packages
    were added to it since; ``package_upgrade`` upgrades its packages. A removal fails if it would take a package that
    another node installs.

    Undo: statecfg removes the group and those of its packages that nothing else needs, or installs it again. If
    the removal would take a package that was there before, the group stays.

    :param name: the id or the name of the group
    :param optional: also install its optional packages
    :param update_cache: before the installation, update the package lists if they are older than this many seconds
    :param absent: the group must not be installed

    In YAML::

        - dnf_group: development
          optional: true

    In Python::

        dnf_group("Development Tools", update_cache=86400)
    """


@dnf_group.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse names that dnf reads in another way, and attributes that contradict each other."""
    if attrs["name"][:1] in "-@" or any(letter in attrs["name"] for letter in "*?["):
        raise Wrong(f"{show(attrs['name'])} is not the id or the name of a group", "`dnf group list --ids` lists them")
    if attrs.get("absent") and (attrs.get("optional") or attrs.get("update_cache") is not None):
        raise ValueError("absent can't be combined with optional or update_cache")
    if (attrs.get("update_cache") or 0) < 0:
        raise ValueError("update_cache is a number of seconds, 0 or more")


dnf_group.needs(["repository:", "module:"])
dnf_group.implemented_by(dnf_groups)
