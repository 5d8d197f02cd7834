"""The name of the host."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import Line, NodeOptions, node_type
from statecfg.resources.network import host_name
from statecfg.resources.shared import drop_in_texts, entry_rules, files


@node_type
def hostname(name: Line, **options: Unpack[NodeOptions]) -> None:
    """Set the name of the host: in /etc/hostname for the next boot, and in the running kernel.

    A host has one of these nodes. Programs that have asked for the name before keep the old one until they restart. Use
    `host_entry` to make the name resolve to an address.

    Undo: statecfg restores the file and the former name. A name that others have set since then stays.

    :param name: the name; most systems expect a name without a domain

    In YAML::

        - hostname: web1

    In Python::

        hostname("db1")
    """


@hostname.to_wire
def to_wire(node: Any) -> Any:
    """Send the content of the file."""
    return drop_in_texts.sent(node, host_name.FILE, node.attrs["name"] + "\n")


hostname.identity(["path:" + host_name.FILE])
hostname.validate(entry_rules.check_own_name)
hostname.blobs(files.blobs)
hostname.managed_by(host_name.HostName)
