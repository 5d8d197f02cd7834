"""`statecfg inventory`: hosts, groups and variables, and where each value comes from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from statecfg import dialects
from statecfg.cli import options
from statecfg.cli.options import Command

EXAMPLES = """
statecfg inventory                  every host with its address and groups
statecfg inventory web --vars       the hosts of a group, their variables, and the line that sets each
statecfg inventory 'web*,!web3' --json
"""


@click.command("inventory", cls=Command, examples=EXAMPLES)
@click.argument("pattern", default="all", shell_complete=options.offer_hosts)
@options.inventory_option
@click.option("--vars", "variables", is_flag=True, help="Show every variable and the source location of its value.")
@options.json_option
@options.no_color_option
def command(pattern: str, inventory: str | None, variables: bool, as_json: bool, no_color: bool) -> None:
    """Show hosts, groups and variables, and where each value comes from.

    PATTERN is a name, a group, a glob or a combination, as for --limit. Default: every host. If several set the same
    variable, the host overrides its groups, and a group overrides the groups that contain it.
    """
    from statecfg.playbook import project
    from statecfg.views import as_json as json_view
    from statecfg.views import inventory as view
    from statecfg.views import stream

    all_hosts = dialects.inventory(project.find(Path.cwd()), Path(inventory) if inventory else None)
    hosts = all_hosts.select(pattern)
    won: dict[str, dict[str, Any]] = {host.name: all_hosts.who_won(host.name) for host in hosts}
    if as_json:
        sys.stdout.write(json_view.text(view.data(hosts, won)))
        return
    lines = view.variable_lines(hosts, won) if variables else view.host_lines(hosts)
    stream.write(lines, sys.stdout, stream.coloured(sys.stdout, no_color))
