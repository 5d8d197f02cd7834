"""Facts about disks and mounts."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List

from statecfg.remote.facts.system import text
from statecfg.remote.machine.facts import line

_SECTOR = 512  # bytes: the unit of `size` in sysfs, regardless of the disk's sector size
_NO_DISKS = ("loop", "ram", "zram", "dm-", "md", "nbd", "sr", "fd")
_ESCAPED = re.compile(r"\\([0-7]{3})")


def disks_fact() -> List[Dict[str, Any]]:
    """Return the disks that have a size, sorted by name."""
    folder = "/sys/block"
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    disks = []
    for name in names:
        size = line(f"{folder}/{name}/size")
        if name.startswith(_NO_DISKS) or not size.isdigit() or int(size) == 0:
            continue
        disks.append(
            {
                "name": name,
                "size": int(size) * _SECTOR >> 20,
                "model": line(f"{folder}/{name}/device/model"),
                "rotational": line(f"{folder}/{name}/queue/rotational") == "1",
            }
        )
    return disks


def mounts_fact() -> List[Dict[str, Any]]:
    """Return the mounts that this process sees, in the order in which they were made; see proc_pid_mountinfo(5)."""
    mounts = []
    for entry in text("/proc/self/mountinfo").split("\n"):
        before, _, after = entry.partition(" - ")
        fields, rest = before.split(" "), after.split(" ")
        if len(fields) < 6 or len(rest) < 2:
            continue
        device = _unescaped(rest[1])
        mounts.append(
            {
                "path": _unescaped(fields[4]),
                "device": device,
                "type": rest[0],
                "options": fields[5].split(","),
                "size": _size(_unescaped(fields[4])) if device.startswith("/dev/") else 0,
            }
        )
    return mounts


def _size(path: str) -> int:
    """Return the size of a file system on a local device in MiB. On a network, this call could wait for a server."""
    try:
        about = os.statvfs(path)
    except OSError:
        return 0
    return about.f_blocks * about.f_frsize >> 20


def _unescaped(path: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match.group(1), 8)), path)
