"""File systems on devices."""

from __future__ import annotations

from typing import Literal, Unpack

from statecfg import AbsolutePath, Attrs, NodeOptions, PublicLine, node_type
from statecfg.resources.shared import entry_rules, paths
from statecfg.resources.storage import filesystems


@node_type
def filesystem(
    path: AbsolutePath,
    *,
    fstype: Literal["ext2", "ext3", "ext4", "xfs", "btrfs", "vfat"],
    label: PublicLine | None = None,
    format_options: list[PublicLine] | None = None,
    **options: Unpack[NodeOptions],
) -> None:
    """Create a file system on an empty device, or in an empty file.

    statecfg never destroys data: a device that contains a partition table or anything else that blkid(8) knows is an
    error, unless it already contains a file system of this type. A file must begin with zeros. `label` and
    `format_options` apply only to a new file system. The host needs the program mkfs of the type.

    Undo: the file system stays, because it may contain data by then; the report contains a message about it.

    :param path: the device, or a file
    :param fstype: the type of the file system
    :param label: its label, at most 16 characters (xfs: 12, vfat: 11)
    :param format_options: options for mkfs of the type, each as one element

    In YAML::

        - filesystem: /dev/vdb1
          fstype: ext4
          label: data

    In Python::

        filesystem("/dev/vdc", fstype="xfs", format_options=["-m", "reflink=0"])
    """


@filesystem.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse a label that the type can't have."""
    if attrs.get("label") is not None:
        entry_rules.check_label(attrs["label"], attrs["fstype"])


filesystem.identity(paths.path_identity)
filesystem.implemented_by(filesystems)
