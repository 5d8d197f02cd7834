"""Compute the route to a host: the SSH connections, each with its address, user, keys and trusted host keys."""

from __future__ import annotations

import os
import re
from dataclasses import replace

from statecfg.problems.frozen import dataclass

from . import SshSettings, Target, ssh_config
from .errors import Unreachable
from .known_hosts import DEFAULT_PORT
from .ssh_config import ConfigProblem, HostConfig, SshConfig

MAX_HOPS = 8
USER_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
GLOBAL_KNOWN_HOSTS = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
DEFAULT_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")

# OpenSSH's valid_hostname and valid_ruser (CVE-2023-51385), but stricter about `%` and spaces.
_HOST = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9_.:%-]{0,254}")
_USER = re.compile(r"[^-\s\x00-\x1f\x7f'\"`$\\;&<>|(){}][^\s\x00-\x1f\x7f'\"`$\\;&<>|(){}]{0,254}")
# The name, port and user of each connection on the way to a host.
Logins = tuple[tuple[str, int, str], ...]

_JUMP = re.compile(r"(?:ssh://)?(?:(?P<user>[^@]+)@)?(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:@\[\]]+))(?::(?P<port>\d+))?/?")


@dataclass(frozen=True)
class Trust:
    """How to verify the key of one host.

    :param alias: the name to look up in known_hosts
    :param port: the port to look up in known_hosts
    :param files: the known_hosts files
    :param accept_new: accept the key of an unknown host, and add it to the first file
    """

    alias: str
    port: int
    files: tuple[str, ...]
    accept_new: bool


@dataclass(frozen=True)
class Hop:
    """One SSH connection of a route.

    :param name: the host's name in the inventory, for messages
    :param keys: private key files
    :param only_these_keys: do not offer other keys of the agent
    """

    name: str
    host: str
    port: int
    user: str
    trust: Trust
    keys: tuple[str, ...]
    only_these_keys: bool
    use_agent: bool
    connect_timeout: float
    warnings: tuple[str, ...] = ()


def route(target: Target, settings: SshSettings) -> tuple[Hop, ...]:
    """Return the hops to a target, jump hosts first.

    :raises Unreachable: a name is not a valid host or user name, or ssh_config is invalid
    """
    try:
        config = ssh_config.load(settings.ssh_config)
        return _hops(target, settings, config, ())
    except ConfigProblem as problem:
        raise Unreachable(target.name, str(problem)) from problem


def _hops(target: Target, settings: SshSettings, config: SshConfig, seen: Logins) -> tuple[Hop, ...]:
    name = target.address or target.name
    _check_host(target.name, name)
    host_config = config.lookup(name, target.user)
    hop = _hop(target, settings, host_config)
    login = (name, hop.port, hop.user)
    if login in seen or len(seen) >= MAX_HOPS:
        # Names alone can be equal: different ports of one address can be different hosts.
        ports = {port for _, port, _ in seen} | {hop.port}
        chain = (one if len(ports) == 1 else f"{one}:{port}" for one, port, _ in (*seen, login))
        help_text = "Set `ProxyJump none` for the jump host in ssh_config."
        raise Unreachable(target.name, "ProxyJump is circular: " + " → ".join(chain), help_text)
    jump = target.proxy_jump or host_config.get("proxyjump")
    if jump is None:
        command = host_config.get("proxycommand")
        if command is not None and command.lower() != "none":
            detail = "ssh_config sets ProxyCommand for it, which statecfg does not support"
            raise Unreachable(target.name, detail, "Use ProxyJump.")
    if jump is None or jump.lower() == "none":
        return (hop,)
    hops: tuple[Hop, ...] = ()
    for index, text in enumerate(jump.split(",")):
        step = _jump_target(target.name, text)
        # As in ssh, only the first jump host can have its own jump host; the others are reached through it.
        step = step if index == 0 else replace(step, proxy_jump="none")
        hops += _hops(step, settings, config, (*seen, login))
    return (*hops, hop)


def _jump_target(name: str, text: str) -> Target:
    match = _JUMP.fullmatch(text.strip())
    if match is None:
        raise Unreachable(name, f"{text!r} is not a jump host", "Write [user@]host[:port].")
    port = match["port"]
    return Target(match["v6"] or match["host"], port=int(port) if port else None, user=match["user"])


def _hop(target: Target, settings: SshSettings, host_config: HostConfig) -> Hop:
    host = host_config.hostname
    _check_host(target.name, host)
    port = target.port if target.port is not None else _number(target, host_config, "port", 22)
    if not 0 < port < 65536:
        raise Unreachable(target.name, f"{port} is not a port", "Use a number from 1 to 65535.")
    user = target.user or host_config.get("user") or ssh_config.local_user()
    if not is_user(user):
        raise Unreachable(target.name, f"{user!r} is not a user name")
    tokens = {"h": host, "n": host_config.original_name, "p": str(port), "r": user, "u": ssh_config.local_user()}
    tokens |= {"d": os.path.expanduser("~"), "%": "%"}
    files = target.identity_files or tuple(host_config.identity_files)
    key_files = tuple(ssh_config.expand(f, tokens) for f in files if f.lower() != "none")
    only_these_keys = (host_config.get("identitiesonly") or "no").lower() == "yes"
    defaults = DEFAULT_KEYS if settings.default_keys and not files else ()
    agent = settings.use_agent and (host_config.get("identityagent") or "").lower() != "none"
    return Hop(
        name=target.name,
        host=host,
        port=port,
        user=user,
        trust=_trust(settings, host_config, tokens),
        keys=key_files + tuple(os.path.expanduser(k) for k in defaults),
        only_these_keys=only_these_keys,
        use_agent=agent,
        connect_timeout=float(_number(target, host_config, "connecttimeout", 0)) or settings.connect_timeout,
        warnings=tuple(host_config.warnings),
    )


def _trust(settings: SshSettings, host_config: HostConfig, tokens: dict[str, str]) -> Trust:
    alias = host_config.get("hostkeyalias")
    accept_new = settings.accept_new or (host_config.get("stricthostkeychecking") or "").lower() == "accept-new"
    files = _known_hosts(settings, host_config, tokens)
    return Trust(alias or tokens["h"], DEFAULT_PORT if alias else int(tokens["p"]), files, accept_new)


def _known_hosts(settings: SshSettings, host_config: HostConfig, tokens: dict[str, str]) -> tuple[str, ...]:
    if settings.known_hosts is not None:
        return tuple(os.path.expanduser(p) for p in settings.known_hosts)
    names = host_config.values.get("userknownhostsfile", USER_KNOWN_HOSTS)
    names += host_config.values.get("globalknownhostsfile", GLOBAL_KNOWN_HOSTS)
    return tuple(ssh_config.expand(n, tokens) for n in names if n.lower() != "none")


def _number(target: Target, host_config: HostConfig, word: str, default: int) -> int:
    text = host_config.get(word)
    if text is None or text.lower() == "none":
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise Unreachable(target.name, f"ssh_config: {word} {text!r} is not a number")
    return int(text)


def is_user(name: str) -> bool:
    """Return whether a string is a valid name of a user to log in as."""
    return _USER.fullmatch(name) is not None


def _check_host(name: str, host: str) -> None:
    if not _HOST.fullmatch(host):
        raise Unreachable(name, f"{host!r} is not a host name", "Use only letters, digits, `.`, `-`, `_` and `:`.")
