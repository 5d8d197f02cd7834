"""Rules for settings of Redis. Only the controller uses this module."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from statecfg.remote.graph.wrong_values import Wrong, show
from statecfg.resources.databases.redis import redis_settings
from statecfg.resources.shared import paths

# Settings that have several lines in the file.
REPEATED = ("client-output-buffer-limit", "include", "loadmodule", "rename-command", "user")
# Settings that Redis 7 reads only when it starts. Source: the flag IMMUTABLE_CONFIG in its config.c.
FIXED = (
    "aclfile", "always-show-logo", "aof-rewrite-cpulist", "appenddirname", "appendfilename", "bgsave-cpulist",
    "bio-cpulist", "cluster-config-file", "cluster-enabled", "cluster-port", "daemonize", "databases",
    "disable-thp", "enable-debug-command", "enable-module-command", "enable-protected-configs", "io-threads",
    "io-threads-do-reads", "logfile", "pidfile", "rdbchecksum", "server-cpulist", "set-proc-title", "supervised",
    "syslog-enabled", "syslog-facility", "syslog-ident", "tcp-backlog", "unixsocket", "unixsocketperm",
)  # fmt: skip


def check(attrs: Mapping[str, Any]) -> None:
    """Check the attributes of a `redis_setting` together.

    :raises ValueError: if they contradict each other, or the setting can't be managed
    """
    name, value, absent = attrs["name"], attrs.get("value"), bool(attrs.get("absent"))
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", name):
        raise Wrong(f"{show(name)} is not the name of a setting", "write it as in redis.conf, such as maxmemory")
    if name in REPEATED:
        help = "use line_in_file or a file with a template"
        raise Wrong(f"{name} can have several lines in the file", help)
    paths.refuse_with_absent({**attrs, "running": None, "port": None}, ("name", "path", "absent"))
    if not absent and value is None:
        raise ValueError("value is required unless absent is true")
    if not absent and name in FIXED and attrs.get("running") is not False:
        help = "write running: false, and put this node into restart_on of the service"
        raise Wrong(f"Redis reads {name} only when it starts", help)
    if value is not None and not isinstance(value, (str, int)) and name not in redis_settings.PASSWORDS:
        raise Wrong(f"a secret in {name}, which every user who can log in can read", "use a value that is not a secret")
    if isinstance(value, str) and not value.strip() and name not in ("save", *redis_settings.EMPTY):
        raise Wrong("value is empty", "write absent: true to remove the line")
    if attrs.get("user") is not None and attrs.get("password") is None:
        raise ValueError("user requires password")


def with_secrets(node: Any, context: Any) -> Any:
    """Return the node with secrets in place of its passwords."""
    attrs = node.attrs
    where = f"{attrs['name']} of {attrs['path']}"
    if isinstance(attrs.get("password"), str):
        node = node.with_attrs(password=context.secret("redis-login-for-" + where, attrs["password"]))
    value = attrs.get("value")
    if isinstance(value, (str, int)) and value != "" and attrs["name"] in redis_settings.PASSWORDS:
        node = node.with_attrs(value=context.secret("redis-" + where, redis_settings.text(value)))
    return node
