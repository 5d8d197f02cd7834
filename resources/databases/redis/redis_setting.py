"""Settings of Redis servers."""

from __future__ import annotations

from typing import Unpack

from statecfg import AbsolutePath, Line, NodeOptions, Port, PublicLine, node_type
from statecfg.resources.databases.redis import redis_files, redis_rules, redis_settings


@node_type
def redis_setting(
    name: PublicLine,
    *,
    value: bool | int | Line | None = None,
    path: AbsolutePath = "/etc/redis/redis.conf",
    running: bool = True,
    port: Port = 6379,
    socket: AbsolutePath | None = None,
    user: PublicLine | None = None,
    password: Line | None = None,
    allow_override: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a setting of a Redis server on the host: its line in the configuration file, and the running value.

    The setting applies at once, without a restart. For one that Redis can only read when it starts, write ``running:
    false``, and put the node into `restart_on` of the service. Passwords are sent to the server on a separate
    connection; they are not in arguments or environments of programs.

    If a file that the configuration includes later sets something else, the node fails and names the line, already in
    the plan.

    Several servers can have the same setting; each node then needs its own `provides`.

    Undo: statecfg restores the former line, or removes the line, and sets the former running value. A running value
    that others have changed since then stays. statecfg neither shows nor records former passwords: if the file had
    one, the line and the running password stay as they are, and a removed line is not restored. A running password
    that only the server had is not restored either.

    :param name: the name of the setting, such as ``maxmemory``
    :param value: its value as in the file, such as ``256mb``; true and false become yes and no. ``requirepass`` and
        other passwords are secrets
    :param path: the configuration file of the server
    :param running: false: change only the file
    :param port: the port of the server on 127.0.0.1
    :param socket: the socket of the server, instead of the port
    :param user: the user who logs in; default: Redis' default user
    :param password: the password for the login, if the server needs one; a secret. A node that sets ``requirepass``
        also tries its value
    :param allow_override: accept that a later line wins when the server starts
    :param absent: the file must not contain the setting; the running value stays

    In YAML::

        - redis_setting: maxmemory
          value: 256mb
          requires: ["service:redis-server"]

    In Python::

        redis_setting("appendonly", value=True, path="/etc/redis/sessions.conf", port=6380)
    """


redis_setting.identity(["redis:{path}: {name}"])
redis_setting.owns(["part:path:{path}"])
redis_setting.needs(["path:{path}"])  # `user` is not a user of the host
redis_setting.validate(redis_rules.check)
redis_setting.to_wire(redis_rules.with_secrets)
redis_setting.effect(redis_files.effect)
redis_setting.implemented_by(redis_settings)
