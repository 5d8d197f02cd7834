"""The firewall ufw: on or off, its defaults and its log."""

from __future__ import annotations

from typing import Literal, Unpack

from statecfg import NodeOptions, node_type
from statecfg.resources.network import ufw_settings


@node_type
def ufw(
    state: Literal["enabled", "disabled"],
    *,
    incoming: Literal["allow", "deny", "reject"] | None = None,
    outgoing: Literal["allow", "deny", "reject"] | None = None,
    routed: Literal["allow", "deny", "reject"] | None = None,
    logging: Literal["off", "low", "medium", "high", "full"] | None = None,
    **options: Unpack[NodeOptions],
) -> None:
    """Switch the firewall ufw on or off, now and at boot, and set what it does with packets that no rule is about.

    Let the node require the rules, so that the firewall has them when it starts. After a change in an active firewall,
    statecfg tries a new login, and restores the former settings and rules if it fails.

    Undo: statecfg restores the former settings. A setting that others have changed since then stays.

    :param state: whether the firewall is on
    :param incoming: what to do with incoming packets; default: unchanged, which is ``deny`` on a new host
    :param outgoing: what to do with outgoing packets; default: unchanged, which is ``allow`` on a new host
    :param routed: what to do with packets that the host forwards; default: unchanged
    :param logging: how much ufw logs; default: unchanged

    In YAML::

        - ufw: enabled
          incoming: deny

    In Python::

        ufw("enabled", incoming="deny", outgoing="allow", logging="low")
    """


ufw.identity(["ufw:"])
ufw.owns(["part:path:/etc/default/ufw", "part:path:/etc/ufw/ufw.conf"])
ufw.needs(["package:ufw"])
ufw.guard(ufw_settings.guard)
ufw.managed_by(ufw_settings.UfwSettings)
