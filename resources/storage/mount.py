"""Mounted file systems and their lines in /etc/fstab."""

from __future__ import annotations

from typing import Unpack

from statecfg import AbsolutePath, Attrs, Name, NodeOptions, PublicLine, node_type
from statecfg.resources.shared import entry_rules, paths
from statecfg.resources.storage import mount_units, mounts


@node_type
def mount(
    path: AbsolutePath,
    *,
    source: PublicLine | None = None,
    fstype: Name | None = None,
    mount_options: list[PublicLine] | None = None,
    check_order: int = 0,
    mounted: bool = True,
    allow_override: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Mount a file system: a line in /etc/fstab for the next boot, and the mount itself.

    The directory must exist, or a required node must create it. If the line changes, or the mounted file system has
    other options, statecfg mounts it again with these options (``mount -o remount``). It compares `ro`, `noexec`,
    `nosuid`, `nodev`, `nosymfollow`, `noatime`, `nodiratime`, `relatime`, `sync`, `dirsync`, `lazytime`, and the size
    of a tmpfs. Another file system that is mounted there is an error, and so are two lines for one directory in
    /etc/fstab, because systemd uses only the first. The plan shows what is in the directory as `known after` the mount.

    A unit file ``*.mount`` in /etc/systemd/system wins over /etc/fstab at boot: if it differs, the node fails and names
    its line, already in the plan.

    Undo: statecfg unmounts a file system that was not mounted before, and restores the former line, or removes the
    line. A mount that is in use stays, and the node fails.

    :param path: the directory
    :param source: the device, ``UUID=…``, ``LABEL=…``, or another source as fstab(5) describes it
    :param fstype: the type of the file system, such as ``ext4``, ``nfs`` or ``tmpfs``; ``none`` for a directory that
        the option ``bind`` mounts at a second place
    :param mount_options: the options, such as ``noatime``; default: ``defaults``
    :param check_order: the order of checks at boot: 0 for none, 1 for the root, 2 for others
    :param mounted: false: only the line in /etc/fstab; the mount stays as it is
    :param allow_override: accept that a unit file wins over /etc/fstab
    :param absent: the file system must be neither mounted nor in /etc/fstab

    In YAML::

        - mount: /srv/cache
          source: tmpfs
          fstype: tmpfs
          mount_options: [size=64m, mode=0750]

    In Python::

        mount("/srv/data", source="LABEL=data", fstype="ext4", mount_options=["noatime"], check_order=2)
    """


@mount.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse missing attributes, and text that fstab cannot contain."""
    paths.refuse_with_absent({**attrs, "mounted": None}, ("path", "absent"))
    if not attrs.get("absent"):
        for name in ("source", "fstype"):
            if attrs.get(name) is None:
                raise ValueError(f"{name} is required unless absent is true")
    if not 0 <= attrs.get("check_order", 0) <= 2:
        raise ValueError("check_order is 0, 1 or 2")
    entry_rules.check_mount_options(attrs.get("mount_options") or ())


mount.identity(["mount:{path}"])
mount.owns(["part:path:" + mounts.FSTAB])
mount.effect(mount_units.effect)
mount.implemented_by(mounts)
