"""The time zone of the host."""

from __future__ import annotations

from typing import Unpack

from statecfg import Line, NodeOptions, node_type
from statecfg.resources.shared import entry_rules
from statecfg.resources.system import time_zones


@node_type
def timezone(name: Line, *, allow_override: bool = False, **options: Unpack[NodeOptions]) -> None:
    """Set the time zone of the host: the link /etc/localtime, and on Debian also /etc/timezone.

    A host has one of these nodes. It needs the data of the zone, which the package tzdata brings. Running programs keep
    the old zone until they restart. If /etc/environment sets ``TZ`` to another zone for all sessions, the node fails
    and names the line, already in the plan.

    Undo: statecfg restores the link and the file.

    :param name: the name of the zone, such as ``Europe/Berlin``
    :param allow_override: accept that sessions use another zone

    In YAML::

        - timezone: Europe/Berlin

    In Python::

        timezone("Etc/UTC")
    """


timezone.identity(["path:" + time_zones.LINK, "path:" + time_zones.NAME])
timezone.validate(entry_rules.check_zone)
timezone.effect(time_zones.effect)
timezone.implemented_by(time_zones)
