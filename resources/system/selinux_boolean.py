"""Booleans of SELinux."""

from __future__ import annotations

from typing import Unpack

from statecfg import Attrs, Name, NodeOptions, node_type
from statecfg.resources.system import selinux, selinux_rules


@node_type
def selinux_boolean(name: Name, *, value: bool, persistent: bool = True, **options: Unpack[NodeOptions]) -> None:
    """Switch a boolean of the SELinux policy on or off: in the running policy, and for the next boot.

    The host needs ``semanage`` (the package policycoreutils-python-utils).

    Undo: statecfg restores both values. Values that others have changed since then stay.

    :param name: the name of the boolean
    :param value: true: on
    :param persistent: false: change only the running policy

    In YAML::

        - selinux_boolean: httpd_can_network_connect
          value: true

    In Python::

        selinux_boolean("httpd_enable_homedirs", value=False)
    """


@selinux_boolean.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse an invalid name."""
    selinux_rules.check_name(attrs["name"], "name")


selinux_boolean.identity(["selinux_boolean:{name}"])
selinux_boolean.needs(["program:semanage", "package:policycoreutils-python-utils"])
selinux_boolean.managed_by(selinux.SelinuxBoolean)
