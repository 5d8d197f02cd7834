"""The way to a host: the hops of SSH connections, each with its address, user, keys and trusted host keys."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace

from . import Settings, Target, ssh_config
from .errors import Unreachable
from .ssh_config import ConfigProblem, HostConfig, SshConfig

MAX_HOPS = 8
USER_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
GLOBAL_KNOWN_HOSTS = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
DEFAULT_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")

# OpenSSH's valid_hostname and valid_ruser (CVE-2023-51385), without their holes for `%` and spaces.
_HOST = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9_.:%-]{0,254}")
_USER = re.compile(r"[^-\s\x00-\x1f\x7f'\"`$\\;&<>|(){}][^\s\x00-\x1f\x7f'\"`$\\;&<>|(){}]{0,254}")
_JUMP = re.compile(r"(?:ssh://)?(?:(?P<user>[^@]+)@)?(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:@\[\]]+))(?::(?P<port>\d+))?/?")


@dataclass(frozen=True)
class Hop:
    """One SSH connection on the way. `alias` and `alias_port` stand in known_hosts; `keys` are private key files."""

    name: str
    host: str
    port: int
    user: str
    alias: str
    alias_port: int
    keys: tuple[str, ...]
    only_these_keys: bool
    use_agent: bool
    known_hosts: tuple[str, ...]
    accept_new: bool
    connect_timeout: float
    warnings: tuple[str, ...] = ()


def route(target: Target, settings: Settings) -> tuple[Hop, ...]:
    """Return the hops to a target, jump hosts first.

    Parameters: `target` the host; `settings` where ssh_config and known_hosts are. Raises Unreachable for names that
    can't be host or user names, and for an ssh_config that makes no sense.
    """
    try:
        config = ssh_config.load(settings.ssh_config)
        return _hops(target, settings, config, ())
    except ConfigProblem as problem:
        raise Unreachable(target.name, str(problem)) from problem


def _hops(target: Target, settings: Settings, config: SshConfig, seen: tuple[str, ...]) -> tuple[Hop, ...]:
    given = target.address or target.name
    _check_host(target.name, given)
    if given in seen or len(seen) >= MAX_HOPS:
        raise Unreachable(target.name, "ProxyJump goes in a circle: " + " → ".join((*seen, given)))
    found = config.lookup(given, target.user)
    hop = _hop(target, settings, found)
    jump = target.proxy_jump or found.get("proxyjump")
    if jump is None:
        command = found.get("proxycommand")
        if command is not None and command.lower() != "none":
            raise Unreachable(target.name, "ssh_config gives it a ProxyCommand, which we don't run", "Use ProxyJump.")
    if jump is None or jump.lower() == "none":
        return (hop,)
    way: tuple[Hop, ...] = ()
    for index, text in enumerate(jump.split(",")):
        step = _jump_target(target.name, text)
        # As in ssh: only the first jump host may have a jump host of its own; the others are reached through it.
        step = step if index == 0 else replace(step, proxy_jump="none")
        way += _hops(step, settings, config, (*seen, given))
    return (*way, hop)


def _jump_target(name: str, text: str) -> Target:
    match = _JUMP.fullmatch(text.strip())
    if match is None:
        raise Unreachable(name, f"{text!r} is no jump host", "Write [user@]host[:port].")
    port = match["port"]
    return Target(match["v6"] or match["host"], port=int(port) if port else None, user=match["user"])


def _hop(target: Target, settings: Settings, found: HostConfig) -> Hop:
    host = found.hostname
    _check_host(target.name, host)
    port = target.port if target.port is not None else _number(target, found, "port", 22)
    if not 0 < port < 65536:
        raise Unreachable(target.name, f"{port} is no port", "1 to 65535.")
    user = target.user or found.get("user") or ssh_config.local_user()
    if not is_user(user):
        raise Unreachable(target.name, f"{user!r} is no user name")
    tokens = {"h": host, "n": found.given, "p": str(port), "r": user, "u": ssh_config.local_user()}
    tokens |= {"d": os.path.expanduser("~"), "%": "%"}
    files = target.identity_files or tuple(found.identity_files)
    named = tuple(ssh_config.expand(f, tokens) for f in files if f.lower() != "none")
    only = (found.get("identitiesonly") or "no").lower() == "yes"
    defaults = DEFAULT_KEYS if settings.default_keys and not files else ()
    agent = settings.use_agent and (found.get("identityagent") or "").lower() != "none"
    return Hop(
        name=target.name,
        host=host,
        port=port,
        user=user,
        alias=found.get("hostkeyalias") or host,
        alias_port=22 if found.get("hostkeyalias") else port,
        keys=named + tuple(os.path.expanduser(k) for k in defaults),
        only_these_keys=only,
        use_agent=agent,
        known_hosts=_known_hosts(settings, found, tokens),
        accept_new=settings.accept_new or (found.get("stricthostkeychecking") or "").lower() == "accept-new",
        connect_timeout=float(_number(target, found, "connecttimeout", 0)) or settings.connect_timeout,
        warnings=tuple(found.warnings),
    )


def _known_hosts(settings: Settings, found: HostConfig, tokens: dict[str, str]) -> tuple[str, ...]:
    if settings.known_hosts is not None:
        return tuple(os.path.expanduser(p) for p in settings.known_hosts)
    names = found.values.get("userknownhostsfile", USER_KNOWN_HOSTS)
    names += found.values.get("globalknownhostsfile", GLOBAL_KNOWN_HOSTS)
    return tuple(ssh_config.expand(n, tokens) for n in names if n.lower() != "none")


def _number(target: Target, found: HostConfig, word: str, default: int) -> int:
    text = found.get(word)
    if text is None or text.lower() == "none":
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise Unreachable(target.name, f"ssh_config: {word} {text!r} is no number")
    return int(text)


def is_user(name: str) -> bool:
    """Return whether a text can be the name of a user to log in as."""
    return _USER.fullmatch(name) is not None


def _check_host(name: str, host: str) -> None:
    if not _HOST.fullmatch(host):
        raise Unreachable(name, f"{host!r} is no host name", "Letters, digits, `.`, `-`, `_` and `:` only.")
