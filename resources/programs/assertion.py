"""Conditions that must hold on the host."""

from __future__ import annotations

from typing import Unpack

from statecfg import (
    AbsolutePath,
    Action,
    Argv,
    HostNode,
    Line,
    Name,
    NodeOptions,
    NoNul,
    Pattern,
    Port,
    PublicLine,
    Text,
    UserName,
    World,
    node_type,
)
from statecfg.remote.graph.model import Conflict
from statecfg.resources.programs import condition_rules, conditions


@node_type
def assertion(
    name: Name,
    *,
    that: bool | None = None,
    path: AbsolutePath | None = None,
    gone: bool = False,
    port: Port | None = None,
    address: PublicLine | None = None,
    url: PublicLine | None = None,
    status: list[int] | None = None,
    headers: dict[str, Line] | None = None,
    ca: AbsolutePath | None = None,
    verify_certificate: bool = True,
    unit: Name | None = None,
    command: Argv | NoNul | None = None,
    user: UserName | None = None,
    contains: Pattern | None = None,
    message: Text | None = None,
    **options: Unpack[NodeOptions],
) -> None:
    """Fail unless a condition holds: an expression of the playbook, or a path, port, HTTP response, unit or command.

    statecfg evaluates `that` on your machine: if it is false, the playbook is not valid. The host checks all other
    conditions. If one does not hold in the plan, the apply changes nothing on this host (``--keep-going`` changes what
    does not require the node). If a required node changes something first, the condition of a port, URL, unit or
    command is `known after` that node; statecfg then checks it when the node's turn comes. `verify` checks it again.
    The node changes nothing, so there is nothing to undo.

    :param name: what must hold; reports and requirements use this name
    :param that: an expression that must be true, such as ``{{ port > 1024 }}``
    :param path: a path that must exist
    :param gone: with `path`: the path must not exist
    :param port: a TCP port that must accept connections
    :param address: with `port`: its address; default: 127.0.0.1
    :param url: a URL of HTTP or HTTPS that must answer. Redirects are not followed
    :param status: with `url`: the allowed statuses; default: 200 to 299
    :param headers: with `url`: additional headers; values may be secrets
    :param ca: with `url`: a file of the host with certificates of authorities, instead of those that the host trusts
    :param verify_certificate: with `url`: false: accept any certificate
    :param unit: a systemd unit that must be active
    :param command: a read-only command (a list, or a string for the shell) that must end with status 0
    :param user: with `command`: the user who runs it; with `unit`: the user whose unit it is
    :param contains: with `path` or `url`: a regular expression for the content (``^`` and ``$`` match at each line)
    :param message: the beginning of the error message, such as what to do

    In YAML::

        - assertion: not-in-production
          that: "{{ not host.name.startswith('prod') }}"
        - assertion: enough-memory
          command: awk '/^MemTotal/ {exit $2 < 2000000}' /proc/meminfo
          message: "the database needs 2 GB of memory"

    In Python::

        assertion("license", path="/etc/shop/license", contains="^valid-until")
    """


@assertion.check
def check(node: HostNode, world: World) -> list[Action]:
    """Check the condition."""
    if node.attrs.get("that") is not None:  # the controller has refused it if it is false
        return []
    reason = conditions.unmet(node.attrs, world)
    if reason:
        message = node.attrs.get("message")
        raise Conflict(f"{message}: {reason}" if message else reason)
    return []


assertion.identity([])  # it manages nothing
assertion.validate(condition_rules.check_assertion)
assertion.undo(conditions.nothing)
