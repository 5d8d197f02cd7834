"""Checks before the first connection: usable login keys, a readable ssh_config, and enough open files."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import click

from statecfg.engines import open_files
from statecfg.problems import Problem, problem, report

if TYPE_CHECKING:
    from statecfg.playbook.inventory import Host
    from statecfg.transport import SshSettings
    from statecfg.transport.route import Hop

FILES_PER_HOST = 12  # most descriptors that a connection needs: its socket, the agent's, pipes of a local process
FILES_WAITING = 4  # most descriptors of a connection that waits for the user's answer or for facts of other hosts
FILES = 64  # descriptors that the command itself needs


def check(
    hosts: Sequence[Host], settings: SshSettings | None, forks: int, wait: bool = False, with_units: int = 0
) -> None:
    """Check the conditions for connecting to these hosts, and warn about skipped key files.

    :param settings: how this machine connects to them; None if other machines do
    :param forks: maximum number of hosts that are processed concurrently
    :param wait: whether hosts wait, some of them connected, until the user has answered, or until all facts are known
    :param with_units: the number of hosts that stay connected until no unit of a service has a hook left
    :raises InvalidInput: ssh_config can't be read, a host has only unusable keys, or the process may not open enough
        files
    """
    from statecfg.run.options import CONNECTED

    waiting = min(len(hosts), with_units + (CONNECTED if wait else 0))
    problems = list(_files(min(forks, len(hosts)), waiting))
    over_ssh = [host for host in hosts if host.transport == "ssh"]
    if settings is not None and over_ssh:
        problems += _config(settings)
        unusable = functools.cache(_unusable)  # most hosts have the same keys
        warned: set[str] = set()
        for host in over_ssh:
            problems += _keys(host, settings, warned, unusable)
    report(*problems)


def _files(at_once: int, waiting: int) -> Iterable[Problem]:
    """Raise the soft limit of open files if necessary; yield a problem if the hard limit is too low."""
    needed = FILES + FILES_PER_HOST * at_once + FILES_WAITING * waiting
    allowed = open_files.allow(needed)
    if allowed >= needed:
        return
    fitting = (allowed - FILES - FILES_WAITING * waiting) // FILES_PER_HOST
    connected = f" with {waiting} connected hosts" if waiting else ""
    detail = f"--forks {at_once}{connected} needs {needed} open files, and this process may open {allowed}"
    smaller = f"use --forks {fitting}, or " if fitting > 0 else ""
    yield problem("SC0451", detail, f"{smaller}run `ulimit -n {needed}` as a user who may raise the limit")


def _config(settings: SshSettings) -> Iterable[Problem]:
    """Yield a problem if ssh_config can't be read or parsed. Otherwise every host would report it."""
    from statecfg.transport import ssh_config

    try:
        ssh_config.load(settings.ssh_config)
    except ssh_config.ConfigProblem as wrong:
        yield problem("SC0301", f"ssh_config: {wrong}", "fix the file, or name another one with --ssh-config FILE")


def _keys(host: Host, settings: SshSettings, warned: set[str], unusable: Callable[[str], str]) -> list[Problem]:
    """Return a problem if a host has no key that can be used. Warn about each unusable key once.

    :param unusable: returns why a key can't be used, "" if it can
    """
    from statecfg.transport import Target, TransportError, route

    try:
        hops = route.route(Target.of(host), settings)
    except TransportError:
        return []  # the connection reports it, for this host only
    problems = []
    for hop in hops:
        skipped = {path: why for path in hop.keys if (why := unusable(path))}
        for path, why in skipped.items():
            if path not in warned:
                warned.add(path)
                click.echo(f"warning: the key {path} is skipped: {why}.", err=True)
        if skipped and not _others(hop, skipped):
            detail = f"host `{host.name}`: no usable key and no SSH agent to log in to {hop.host} as {hop.user}"
            keys = "; ".join(f"{path}: {why}" for path, why in skipped.items())
            problems.append(problem("SC0452", detail, keys, host.position))
    return problems


def _unusable(path: str) -> str:
    from statecfg.transport import key_files

    try:
        return key_files.unusable(path)
    except OSError:
        return ""  # most users have only some of the default keys; a failed login reports the others


def _others(hop: Hop, skipped: dict[str, str]) -> bool:
    """Return whether an agent or another key is left to log in with."""
    if hop.use_agent and os.environ.get("SSH_AUTH_SOCK"):
        return True
    return any(os.path.exists(path) for path in hop.keys if path not in skipped)
