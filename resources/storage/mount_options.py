"""The options of mounts: whether a mounted file system has the declared ones."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Options of the mount itself, and what lifts each of them. Source: mount(8).
FLAGS = {"ro": "rw", "noexec": "exec", "nosuid": "suid", "nodev": "dev", "nosymfollow": "symfollow"}
# An option that implies others, which later ones can lift.
IMPLIED = {
    "defaults": ("rw", "suid", "dev", "exec", "async"),
    "user": ("noexec", "nosuid", "nodev"),
    "users": ("noexec", "nosuid", "nodev"),
    "owner": ("nosuid", "nodev"),
    "group": ("nosuid", "nodev"),
}
ONLY_DECLARED = {"noatime", "nodiratime", "relatime", "sync", "dirsync", "lazytime"}  # others may set them as well
# Type of file system → its options that a new mount or `mount -o remount` sets, and that the kernel shows.
VALUES = {"tmpfs": ("size", "nr_inodes"), "ext3": ("commit",), "ext4": ("commit",)}
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def is_bind(options: Sequence[str]) -> bool:
    """Return whether these options mount a directory at a second place."""
    return any(option in ("bind", "rbind") for option in options)


def place_flags(options: Sequence[str]) -> list[str] | None:
    """Return the options of a second place of a directory, None for options of another mount."""
    return ["bind", *settable(expanded(options), "")] if is_bind(options) else None


def settable(options: Sequence[str], fstype: str) -> list[str]:
    """Return the options that a remount can set, of those that a mounted file system has."""
    known = {*FLAGS, *FLAGS.values(), *ONLY_DECLARED, *VALUES.get(fstype, ())}
    return [option for option in options if option.partition("=")[0] in known]


def changed(present: Sequence[str], different: Sequence[str]) -> list[str]:
    """Return the options of a mount after it got the ones that differ."""
    lifted = {name for pair in FLAGS.items() for name in pair if set(pair) & set(different)}
    lifted |= {option.partition("=")[0] for option in different}
    return [option for option in present if option.partition("=")[0] not in lifted] + list(different)


def added(present: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the options that others have added: the kernel itself only adds `relatime`.

    :param known: the former and the declared options
    """
    return [option for option in present if option in ONLY_DECLARED and option not in {*expanded(known), "relatime"}]


def same_type(declared: str, present: str, options: Sequence[str]) -> bool:
    """Return whether a mounted type of file system is the declared one, which the kernel may call otherwise."""
    if declared in ("auto", present) or is_bind(options):
        return True
    if present == "autofs":  # systemd mounts it at its first use
        return "x-systemd.automount" in options
    for family in (("nfs", "nfs4"), ("cifs", "smb3"), ("ntfs", "ntfs3", "ntfs-3g", "fuseblk")):
        if declared in family and present in family:
            return True
    if present in ("fuse", "fuseblk"):
        return declared.startswith("fuse")
    return present == f"fuse.{declared}" or (declared == "fuse" and present.startswith("fuse."))


def expanded(options: Sequence[str]) -> list[str]:
    """Return the options, each replaced by the options that it means.

    mount(8) does not let `defaults` lift another option, wherever it is.
    """
    result: list[str] = []
    for option in sorted(options, key=lambda option: option != "defaults"):
        result += IMPLIED.get(option, (option,))
    return result


def differences(declared: Sequence[str], present: Sequence[str], fstype: str) -> list[str]:
    """Return the declared options that a mounted file system does not have, such as `noexec` or `size=2m`.

    :param present: the options that the kernel shows
    :param fstype: the mounted type
    """
    wanted = expanded(declared)
    missing: list[str] = []
    for flag, opposite in FLAGS.items():
        last = next((option for option in reversed(wanted) if option in (flag, opposite)), opposite)
        if (last == flag) != (flag in present):
            missing.append(last)
    missing += [option for option in wanted if option in ONLY_DECLARED and option not in present]
    for name in VALUES.get(fstype, ()):
        value = _value(wanted, name)
        if value is not None and not value.endswith("%") and _bytes(value) != _bytes(_value(present, name) or ""):
            missing.append(f"{name}={value}")
    return missing


def _value(options: Sequence[str], name: str) -> str | None:
    """Return the last value of an option."""
    return next((option[len(name) + 1 :] for option in reversed(options) if option.startswith(name + "=")), None)


def _bytes(text: str) -> int | str:
    """Return a number of bytes in whole pages as the kernel counts them; return any other string as it is."""
    found = re.fullmatch(r"(\d+)([kmgt]?)", text.lower())
    if found is None:
        return text
    size = int(found[1]) * _UNITS.get(found[2], 1)
    return size if size < 4096 else -(-size // 4096) * 4096
