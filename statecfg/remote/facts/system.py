"""Facts about the system: its operating system, kernel, processor, memory, users and so on."""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, Mapping

from statecfg.remote.machine.facts import line

# ID or ID_LIKE of os-release → family. The first word that is a key decides.
_FAMILIES = {
    **dict.fromkeys(("debian", "ubuntu"), "debian"),
    **dict.fromkeys(("rhel", "fedora", "centos", "rocky", "almalinux", "ol", "amzn"), "redhat"),
    **dict.fromkeys(("suse", "opensuse", "sles"), "suse"),
    **dict.fromkeys(("arch", "archlinux"), "arch"),
    "alpine": "alpine",
    "gentoo": "gentoo",
}
# Text in the vendor or product name of the machine → name of the virtualization.
_MACHINES = (
    ("QEMU", "kvm"),
    ("KVM", "kvm"),
    ("Amazon EC2", "amazon"),
    ("Google", "google"),
    ("VMware", "vmware"),
    ("VirtualBox", "oracle"),
    ("innotek", "oracle"),
    ("Xen", "xen"),
    ("Bochs", "bochs"),
    ("Parallels", "parallels"),
    ("Microsoft Corporation Virtual Machine", "microsoft"),
    ("OpenStack", "kvm"),
)


def text(path: str) -> str:
    """Return the content of a file; "" if it can't be read."""
    try:
        with open(path, encoding="utf-8", errors="replace", newline="\n") as stream:
            return stream.read()
    except OSError:
        return ""


def os_fact() -> Mapping[str, Any]:
    """Return the operating system, from os-release(5)."""
    content = text("/etc/os-release") or text("/usr/lib/os-release")
    pairs = (entry.split("=", 1) for entry in content.splitlines() if "=" in entry and not entry.startswith("#"))
    release = {key.strip(): value.strip().strip("\"'") for key, value in pairs}
    identity = release.get("ID", "linux")
    words = [identity, *release.get("ID_LIKE", "").split()]
    return {
        "family": next((_FAMILIES[word] for word in words if word in _FAMILIES), identity),
        "id": identity,
        "version": release.get("VERSION_ID", ""),
        "codename": release.get("VERSION_CODENAME", ""),
        "name": release.get("PRETTY_NAME", identity),
    }


def hostname_fact() -> str:
    """Return the name that the host has set for itself."""
    return os.uname().nodename


def kernel_fact() -> str:
    """Return the release of the running kernel."""
    return os.uname().release


def architecture_fact() -> str:
    """Return the architecture, as `uname -m` prints it."""
    return os.uname().machine


def cpus_fact() -> int:
    """Return the number of processors that are online."""
    return os.cpu_count() or 1


def memory_fact() -> int:
    """Return the memory in MiB."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20


def swap_fact() -> int:
    """Return the swap space in MiB."""
    for entry in text("/proc/meminfo").splitlines():
        if entry.startswith("SwapTotal:"):
            return int(entry.split()[1]) >> 10
    return 0


def python_fact() -> str:
    """Return the version of the Python that runs the executor."""
    return "%d.%d.%d" % sys.version_info[:3]


def machine_id_fact() -> str:
    """Return the content of /etc/machine-id; "" if there is none."""
    return line("/etc/machine-id")


def user_fact() -> str:
    """Return the user that the executor runs as."""
    import pwd

    return pwd.getpwuid(os.geteuid()).pw_name


def users_fact() -> Mapping[str, Any]:
    """Return the users in the host's databases by name."""
    import pwd

    return {
        entry.pw_name: {
            "uid": entry.pw_uid, "gid": entry.pw_gid, "comment": entry.pw_gecos, "home": entry.pw_dir,
            "shell": entry.pw_shell,
        }
        for entry in pwd.getpwall()
    }  # fmt: skip


def timezone_fact() -> str:
    """Return the name of the time zone, such as Europe/Berlin; "UTC" if the host sets none."""
    target = os.path.realpath("/etc/localtime")
    name = target.partition("/zoneinfo/")[2]
    for prefix in ("posix/", "right/"):
        name = name[len(prefix) :] if name.startswith(prefix) else name
    return name or line("/etc/timezone") or "UTC"


def init_fact() -> str:
    """Return the init system: systemd, openrc, sysv or other."""
    if os.path.isdir("/run/systemd/system"):
        return "systemd"
    if os.path.isdir("/run/openrc"):
        return "openrc"
    return "sysv" if line("/proc/1/comm") == "init" and os.path.isfile("/etc/inittab") else "other"


def virtualization_fact() -> Dict[str, str]:
    """Return whether the host is a container, a virtual machine or neither, and which one."""
    container = _container()
    if container:
        return {"kind": "container", "name": container}
    machine = f"{line('/sys/class/dmi/id/sys_vendor')} {line('/sys/class/dmi/id/product_name')}"
    for words, name in _MACHINES:
        if words in machine:
            return {"kind": "vm", "name": name}
    if line("/sys/hypervisor/type") == "xen":
        return {"kind": "vm", "name": "xen"}
    flags = next((row for row in text("/proc/cpuinfo").splitlines() if row.startswith("flags")), "").split()
    return {"kind": "vm", "name": "other"} if "hypervisor" in flags else {"kind": "none", "name": ""}


def _container() -> str:
    """Return the name of the container manager, "" outside of containers."""
    told = line("/run/systemd/container")  # systemd writes this, and everyone may read it
    if told:
        return told
    for entry in text("/proc/1/environ").split("\0"):
        if entry.startswith("container="):
            return entry[len("container=") :] or "other"
    if os.path.exists("/run/.containerenv"):
        return "podman"
    if os.path.exists("/.dockerenv"):
        return "docker"
    return "wsl" if "microsoft" in os.uname().release.lower() else ""
