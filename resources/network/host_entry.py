"""Entries of /etc/hosts."""

from __future__ import annotations

from typing import Unpack

from statecfg import AbsolutePath, Attrs, Line, NodeOptions, PublicLine, node_type
from statecfg.resources.network import host_lines
from statecfg.resources.shared import entries, entry_rules, paths


@node_type
def host_entry(
    address: Line,
    *,
    names: list[PublicLine] | None = None,
    path: AbsolutePath = "/etc/hosts",
    allow_override: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage the names of one address in /etc/hosts. Other lines of the file stay as they are.

    If the file has several lines for the address, statecfg changes the last one. Different notations of an IPv6 address
    are the same address.

    The first line that has a name counts. If an earlier line gives a name of the node another address, the node fails
    and names that line, already in the plan. Several nodes may give one name several addresses.

    Undo: statecfg restores the former line for the address, or removes the line.

    :param address: an IPv4 or IPv6 address
    :param names: the names of the host, the canonical one first
    :param path: the path of the file
    :param allow_override: accept that another line wins for a name, or that the host does not look names up in the file
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


@host_entry.identity
def identity(attrs: Attrs) -> list[str]:
    """Identify the address in its file."""
    return [f"host:{attrs['path']}: {host_lines.canonical(attrs['address'])}"]


host_entry.owns(["part:path:{path}"])
entries.register(host_entry, host_lines.wanted)
host_entry.effect(host_lines.effect)
