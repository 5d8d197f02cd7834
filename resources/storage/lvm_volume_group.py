"""Volume groups of LVM."""

from __future__ import annotations

from typing import Unpack

from statecfg import AbsolutePath, Attrs, Name, NodeOptions, PublicLine, node_type
from statecfg.resources.storage import lvm_groups, lvm_rules


@node_type
def lvm_volume_group(
    name: Name,
    *,
    devices: list[AbsolutePath] | None = None,
    extent_size: PublicLine | None = None,
    remove_content: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a volume group of LVM: create it on empty devices, and add further devices.

    statecfg never destroys data: a device that contains a partition table, a file system or another group is an error.
    It takes no device out of a group. The host needs the package lvm2.

    Undo: statecfg removes a new group, and takes new devices out of the group, if it contains no logical volumes. A
    removed group stays removed.

    :param name: the name of the group
    :param devices: the disks or partitions. Others that are in the group stay
    :param extent_size: the size of the extents of a new group, such as ``4M``; default: that of LVM
    :param remove_content: with `absent`: also remove logical volumes and their data
    :param absent: there must be no such group. The devices stay physical volumes of LVM

    In YAML::

        - lvm_volume_group: data
          devices: [/dev/vdb, /dev/vdc]

    In Python::

        lvm_volume_group("backup", devices=["/dev/vdd"], extent_size="32M")
    """


@lvm_volume_group.identity
def identity(attrs: Attrs) -> list[str]:
    """Identify the group and its devices."""
    return ["lvm:" + attrs["name"], *("path:" + device for device in attrs.get("devices") or ())]


lvm_volume_group.needs(["package:lvm2"])
lvm_volume_group.validate(lvm_rules.check_group)
lvm_volume_group.implemented_by(lvm_groups)
