"""Wait for something that takes a while, such as a port."""

from __future__ import annotations

from typing import Unpack

from statecfg import (
    AbsolutePath,
    Argv,
    Line,
    Name,
    NodeOptions,
    NoNul,
    Pattern,
    Port,
    PublicLine,
    Seconds,
    UserName,
    node_type,
)
from statecfg.resources.programs import condition_rules, conditions


@node_type
def wait_for(
    name: Name,
    *,
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
    timeout: Seconds = 60.0,
    interval: Seconds = 1.0,
    **options: Unpack[NodeOptions],
) -> None:
    """Wait on the host until a condition holds: a path, a port, an HTTP response, a unit or a command.

    If the condition does not hold, or if a required node changes something, the plan contains the wait. The apply then
    tries until the condition holds, and the node fails after `timeout`. Nodes that require this node come after it.
    The node changes nothing, so there is nothing to undo.

    :param name: what the node waits for; reports and requirements use this name
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
    :param command: a read-only command (a list, or a string for the shell) that must end with status 0. Plans run it,
        too
    :param user: with `command`: the user who runs it; with `unit`: the user whose unit it is
    :param contains: with `path` or `url`: a regular expression for the content (``^`` and ``$`` match at each line)
    :param timeout: seconds after which the node fails
    :param interval: seconds between two attempts

    In YAML::

        - wait_for: shop-answers
          url: http://127.0.0.1:8080/health
          contains: '"ready": true'
          timeout: 120

    In Python::

        wait_for("database", port=5432, timeout=30)
    """


wait_for.identity([])  # it manages nothing
wait_for.validate(condition_rules.check)
wait_for.check(conditions.waiting)
wait_for.drifts(conditions.never)
wait_for.undo(conditions.nothing)
