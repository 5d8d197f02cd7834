"""How a command reaches the hosts: the settings of its connections, and the arguments for another command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statecfg.cli import next_command

if TYPE_CHECKING:
    from statecfg.cli.options import ConnectionOptions
    from statecfg.engines.engine import Engine
    from statecfg.run.options import Access
    from statecfg.transport import SshSettings


def settings(how: ConnectionOptions) -> SshSettings:
    """Return the settings of the connections."""
    from statecfg.transport import SshSettings

    return SshSettings(ssh_config=how.ssh_config, accept_new=bool(how.accept_new_host_keys))


def access(how: ConnectionOptions, engine: Engine, password: str | None) -> Access:
    """Return the access of the run to the hosts.

    :param password: for hosts that become another user because of the inventory
    """
    from statecfg.run.options import Access

    again = next_command.history_arguments(how)
    return Access(settings(how), password=password, connect=engine.connect, load=engine.load, arguments=again)
