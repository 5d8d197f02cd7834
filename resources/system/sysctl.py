"""Settings of the kernel."""

from __future__ import annotations

from typing import Unpack

from statecfg import AbsolutePath, Attrs, Name, NodeOptions, PublicLine, node_type
from statecfg.resources.shared import entry_rules, paths
from statecfg.resources.system import kernel_settings, sysctl_files


@node_type
def sysctl(
    name: Name,
    *,
    value: int | PublicLine | None = None,
    path: AbsolutePath = "/etc/sysctl.d/99-statecfg.conf",
    running: bool = True,
    allow_override: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a setting of the kernel: a line in a file that sysctl reads at boot, and the value in the running kernel.

    Several of these nodes can use the same file. A container cannot change most settings.

    At boot, several files can contain the setting. If another file wins, or if nothing reads `path`, the node fails and
    names that file and its line, already in the plan.

    Undo: statecfg restores the former line, or removes the line, and sets the former value in the running kernel. A
    value that others have changed since then stays. If the node created the file, statecfg removes it when nothing else
    is in it.

    :param name: the name of the setting as sysctl shows it: with dots, and ``/`` for a dot in the name of an interface,
        such as ``net.ipv4.conf.eth0/100.rp_filter``
    :param value: its value; several numbers are separated by blanks
    :param path: the file for the next boot
    :param running: false: change only the file
    :param allow_override: accept that another file wins at boot
    :param absent: the file must not contain the setting; the running value stays

    In YAML::

        - sysctl: net.ipv4.ip_forward
          value: 1

    In Python::

        sysctl("net.ipv4.tcp_rmem", value="4096 131072 6291456", path="/etc/sysctl.d/60-network.conf")
    """


@sysctl.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse an invalid name and a missing value."""
    paths.refuse_with_absent({**attrs, "running": None}, ("name", "path", "absent"))
    entry_rules.check_setting(attrs["name"])
    if not attrs.get("absent") and (attrs.get("value") is None or attrs["value"] == ""):
        raise ValueError("value is required unless absent is true")


sysctl.identity(["sysctl:{name}"])
sysctl.manners = ("running", "allow_override")
sysctl.effect(sysctl_files.effect)
sysctl.managed_by(kernel_settings.KernelSetting)
