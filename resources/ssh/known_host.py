"""Keys of SSH servers that clients on the host trust."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Unpack

from statecfg import AbsolutePath, Attrs, HostNode, Line, NodeOptions, PublicLine, World, node_type
from statecfg.resources.shared import entries, entry_rules, paths, sources
from statecfg.resources.ssh import ssh_files


@node_type
def known_host(
    name: Line,
    *,
    key: PublicLine,
    path: AbsolutePath = "/etc/ssh/ssh_known_hosts",
    authority: bool = False,
    allow_override: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage the key of an SSH server in a file of known hosts. Other lines of the file stay as they are.

    A server has one key of each type. For a second key, declare a second node with its own `provides`. statecfg does
    not find entries whose names are hashed.

    If a line with ``@revoked`` in the same file revokes the key for the server, the node fails and names the line,
    already in the plan.

    Undo: statecfg restores the former key of this type, or removes the key.

    :param name: the name or address of the server; ``[name]:port`` for a port other than 22
    :param key: its public key: type and key, such as ``ssh-ed25519 AAAA…``
    :param path: the path of the file; the default is for all users of the host
    :param authority: true: the key belongs to an authority, and clients trust the servers whose keys it signed. Then
        `name` can be a pattern, such as ``*.example.org``, or several with commas
    :param allow_override: accept that a line with ``@revoked`` makes clients refuse the key
    :param absent: the file must not contain a key of this server and this type

    In YAML::

        - known_host: git.example.org
          key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f

    In Python::

        key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
        known_host("[backup.example.org]:2222", key=key)
    """


@known_host.identity
def identity(attrs: Attrs) -> list[str]:
    """Identify the server's key of this type in its file."""
    return [f"known_host:{attrs['path']}: {server(attrs)} {attrs['key'].split()[0]}"]


known_host.owns(["part:path:{path}"])


@known_host.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse an invalid name or key."""
    paths.refuse_with_absent(attrs, ("name", "key", "path", "authority", "absent"))
    entry_rules.check_server(attrs["name"], patterns=bool(attrs.get("authority")))
    entry_rules.check_key(attrs["key"])


def server(attrs: Mapping[str, Any]) -> str:
    """Return what comes before the key in the line. Source: sshd(8)."""
    return "@cert-authority " + attrs["name"] if attrs.get("authority") else str(attrs["name"])


def wanted(node: HostNode) -> HostNode:
    """Return the line of the node, without the key's comment."""
    attrs = node.attrs
    key_type, key = attrs["key"].split()[:2]
    match = r"^\s*%s\s+%s\s" % (r"\s+".join(map(re.escape, server(attrs).split())), re.escape(key_type))
    return entries.entry(node, attrs["path"], f"{server(attrs)} {key_type} {key}", match, mode="0644")


@known_host.effect
def revoked(node: HostNode, world: World) -> str:
    """Return the line because of which clients refuse the key; "" if there is none."""
    key = node.attrs["key"].split()[:2]
    for place in () if node.attrs.get("absent") else sources.places(world, node.attrs["path"]):
        words = place.text.split()
        names = node.attrs["name"].split(",")
        if words[:1] == ["@revoked"] and words[2:4] == key and any(ssh_files.listed(name, words[1]) for name in names):
            return f"ssh refuses the key: {place}"
    return ""


entries.register(known_host, lambda node, world: wanted(node))
