"""Facts: the properties of a host, read from its own files."""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, Mapping


def gather() -> Mapping[str, Any]:
    """Return the host's facts: hostname, os, kernel, architecture, python, cpus, memory (MiB), init, ids and user."""
    import pwd

    machine = os.uname()
    release = _release()
    return {
        "hostname": machine.nodename,
        "kernel": machine.release,
        "architecture": machine.machine,
        "os": {key: release.get(key.upper(), "") for key in ("id", "version_id", "version_codename", "pretty_name")},
        "python": "%d.%d.%d" % sys.version_info[:3],
        "cpus": os.cpu_count() or 1,
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
        "init": "systemd" if os.path.isdir("/run/systemd/system") else "other",
        "boot_id": line("/proc/sys/kernel/random/boot_id"),
        "machine_id": line("/etc/machine-id"),
        "user": pwd.getpwuid(os.geteuid()).pw_name,
    }


def line(path: str) -> str:
    """Return the first line of a file without spaces around it; "" if the file can't be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.readline().strip()
    except OSError:
        return ""


def _release() -> Dict[str, str]:
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        try:
            with open(path, encoding="utf-8", errors="replace") as stream:
                lines = stream.read().splitlines()
        except OSError:
            continue
        pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
        return {key: value.strip("\"'") for key, value in pairs}
    return {}
