"""Logical volumes of LVM."""

from __future__ import annotations

from typing import Unpack

from statecfg import Name, NodeOptions, PublicLine, node_type
from statecfg.resources.storage import lvm_rules, lvm_volumes


@node_type
def lvm_logical_volume(
    name: Name,
    *,
    volume_group: PublicLine,
    size: PublicLine | None = None,
    resize_filesystem: bool = True,
    shrink: bool = False,
    remove_content: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a logical volume of LVM. Its device is ``/dev/GROUP/NAME``; a `filesystem` node can format it.

    statecfg extends a volume that is too small, with the file system in it. If only the file system is too small, such
    as after an extension that failed half-way, statecfg extends it. It notices that if the file system is ext2, ext3,
    ext4 or xfs, and at least 16 MiB smaller than the volume. It shrinks or removes a volume only with
    explicit permission. The host needs the package lvm2.

    Undo: a new volume stays, because it may contain data, unless the node has `remove_content`. A new size stays. The
    report lists them.

    :param name: the name of the volume
    :param volume_group: the name of its group
    :param size: the size, such as ``512M`` or ``10G``, which LVM rounds up to whole extents; or the share of a new
        volume: ``50%VG`` or ``100%FREE``
    :param resize_filesystem: false: extend only the volume, and not the file system in it
    :param shrink: shrink the volume, with the file system in it, if it is larger than `size`. This can destroy data
    :param remove_content: the volume and its data may be removed: by `absent`, or by the undo
    :param absent: there must be no such volume

    In YAML::

        - lvm_logical_volume: shop
          volume_group: data
          size: 20G

    In Python::

        lvm_logical_volume("scratch", volume_group="data", size="100%FREE", remove_content=True)
    """


lvm_logical_volume.identity(["lvm:{volume_group}/{name}"])
lvm_logical_volume.needs(["package:lvm2"])
lvm_logical_volume.validate(lvm_rules.check_volume)
lvm_logical_volume.implemented_by(lvm_volumes)
