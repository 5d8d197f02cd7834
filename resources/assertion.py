"""Conditions that must hold on the host."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import (
    AbsolutePath,
    Action,
    Argv,
    CheckError,
    HostNode,
    Name,
    NodeOptions,
    Pattern,
    Port,
    PublicLine,
    Text,
    World,
    node_type,
)
from statecfg.resources.shared import condition_rules, conditions


@node_type
def assertion(
    name: Name,
    *,
    path: AbsolutePath | None = None,
    gone: bool = False,
    port: Port | None = None,
    address: PublicLine | None = None,
    url: PublicLine | None = None,
    status: list[int] | None = None,
    verify_certificate: bool = True,
    unit: Name | None = None,
    command: Argv | Text | None = None,
    contains: Pattern | None = None,
    message: Text | None = None,
    **options: Unpack[NodeOptions],
) -> None:
    """Fail unless a condition holds on the host: a path, a port, an HTTP response, a unit or a command.

    A plan checks the condition too, and fails before anything is changed. If a required node changes something first,
    the condition of a port, URL, unit or command is `known after` that node; statecfg then checks it when the node's
    turn comes. `verify` checks it again. The node changes nothing, so there is nothing to undo.

    :param name: what must hold; reports and requirements use this name
    :param path: a path that must exist
    :param gone: with `path`: the path must not exist
    :param port: a TCP port that must accept connections
    :param address: with `port`: its address; default: 127.0.0.1
    :param url: a URL of HTTP or HTTPS that must answer. Redirects are not followed
    :param status: with `url`: the allowed statuses; default: 200
    :param verify_certificate: with `url`: false: accept any certificate
    :param unit: a unit of systemd that must be active
    :param command: a read-only command (a list, or a string for the shell) that must end with status 0
    :param contains: with `path` or `url`: a regular expression for the content (``^`` and ``$`` match at each line)
    :param message: what the error says first, such as what to do

    In YAML::

        - assertion: enough-memory
          command: awk '/^MemTotal/ {exit $2 < 2000000}' /proc/meminfo
          message: "the database needs 2 GB of memory"

    In Python::

        assertion("license", path="/etc/shop/license", contains="^valid-until")
    """


@assertion.claims
def claims(attrs: dict[str, Any]) -> list[str]:
    """Claim nothing: the node manages nothing."""
    return []


@assertion.validate
def contradictions(attrs: dict[str, Any]) -> None:
    """Refuse several conditions, and attributes that have no effect."""
    condition_rules.check(attrs)


@assertion.check
def check(node: HostNode, world: World) -> list[Action]:
    """Check the condition."""
    reason = conditions.unmet(node.attrs, world)
    if reason:
        message = node.attrs.get("message")
        raise CheckError("%s: %s" % (message, reason) if message else reason)
    return []


assertion.undo(conditions.nothing)
