"""Swap space."""

from __future__ import annotations

from typing import Unpack

from statecfg import AbsolutePath, Attrs, NodeOptions, PublicLine, node_type
from statecfg.resources.shared import entry_rules, paths
from statecfg.resources.storage import swaps


@node_type
def swap(
    path: AbsolutePath,
    *,
    size: PublicLine | None = None,
    priority: int | None = None,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Use a file or a device as swap space: now, and with a line in /etc/fstab at boot.

    With `size`, the path is a file, which statecfg creates with mode 0600 and fills with zeros. Files on Btrfs are not
    supported. statecfg formats an empty device, and refuses a device or file that contains anything but swap space.
    Containers can't use swap space.

    Undo: statecfg stops using the swap space, if it was not in use before, restores the line in /etc/fstab, and
    removes the file that it created. If the node removed a file, statecfg creates it again.

    :param path: the file or device
    :param size: the size of the file, such as ``512M`` or ``2G``. A swap file of another size is replaced
    :param priority: swap space with a higher priority is used first: 0 to 32767
    :param absent: the swap space must not be used and not be in /etc/fstab, and the file must not exist. A device stays

    In YAML::

        - swap: /swapfile
          size: 2G

    In Python::

        swap("/dev/vdb1", priority=10)
    """


@swap.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse an invalid size or priority."""
    paths.refuse_with_absent({**attrs, "priority": attrs.get("priority") is not None}, ("path", "absent"))
    if attrs.get("size") is not None:
        entry_rules.check_size(attrs["size"])
    if not 0 <= (attrs.get("priority") or 0) <= 32767:
        raise ValueError("priority is a number from 0 to 32767")


swap.identity(paths.path_identity)
swap.owns(["part:path:/etc/fstab"])
swap.implemented_by(swaps)
