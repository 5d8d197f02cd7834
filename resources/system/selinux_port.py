"""Labels of ports in SELinux."""

from __future__ import annotations

from typing import Unpack

from statecfg import NodeOptions, PublicLine, node_type
from statecfg.resources.system import selinux, selinux_rules


@node_type
def selinux_port(
    port: PublicLine, *, setype: PublicLine | None = None, absent: bool = False, **options: Unpack[NodeOptions]
) -> None:
    """Manage the label of a network port in SELinux, so that a service may use the port.

    The host needs ``semanage`` (the package policycoreutils-python-utils).

    Undo: statecfg restores the former label, or deletes the local one. A label that others have changed since then
    stays.

    :param port: the port or range and its protocol, such as ``8080/tcp`` or ``6000-6010/udp``
    :param setype: the type of the label, such as ``http_port_t``
    :param absent: the port must have no local label; that of the policy stays

    In YAML::

        - selinux_port: 8080/tcp
          setype: http_port_t

    In Python::

        selinux_port("2222/tcp", setype="ssh_port_t")
    """


selinux_port.identity(["selinux_port:{port}"])
selinux_port.needs(["program:semanage", "package:policycoreutils-python-utils"])
selinux_port.validate(selinux_rules.check_port)
selinux_port.managed_by(selinux.SelinuxPort)
