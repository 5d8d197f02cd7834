"""Entries of /etc/hosts."""

from __future__ import annotations

import re
from typing import Unpack

from statecfg import AbsolutePath, Attrs, HostNode, Line, NodeOptions, PublicLine, node_type
from statecfg.resources.shared import entries, entry_rules, paths


@node_type
def host_entry(
    address: Line,
    *,
    names: list[PublicLine] | None = None,
    path: AbsolutePath = "/etc/hosts",
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage the names of one address in /etc/hosts. Other lines of the file stay as they are.

    If the file has several lines for the address, statecfg changes the last one.

    Undo: statecfg restores the former line for the address, or removes the line.

    :param address: an IPv4 or IPv6 address
    :param names: the names of the host, the canonical one first
    :param path: the path of the file
    :param absent: there must be no line for the address

    In YAML::

        - host_entry: 192.0.2.11
          names: [db1.example.org, db1]

    In Python::

        host_entry("2001:db8::7", names=["mail.example.org"])
    """


@host_entry.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse an invalid address, and invalid or missing names."""
    paths.refuse_with_absent(attrs, ("address", "path", "absent"))
    entry_rules.check_address(attrs["address"])
    if not attrs.get("absent"):
        entry_rules.check_host_names(attrs.get("names") or ())


def wanted(node: HostNode) -> HostNode:
    """Return the line of the node."""
    attrs = node.attrs
    line = f"{attrs['address']} {' '.join(attrs.get('names') or ())}"
    return entries.entry(node, attrs["path"], line, rf"^\s*{re.escape(attrs['address'])}\s", mode="0644")


entries.register(host_entry, wanted)

host_entry.identity(["host:{path}: {address}"])
