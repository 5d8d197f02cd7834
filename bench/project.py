"""The project of one measurement: a playbook, an inventory and a store in a scratch directory.

Each measurement has its own. If two with different hosts shared a playbook and a store, the hosts of one would count as
hosts that have left the playbook in the other.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench import commands
from bench.commands import ENVIRONMENT, Cost
from tests import lab

FOLDER = "/srv/bench"
PLAYBOOK = f'''
from statecfg import play
from statecfg.resources import directory, file

@play(hosts="all")
def bench(host):
    folder = directory("{FOLDER}")
    return [file(f"{FOLDER}/f{{n}}", content=f"hello {{n}}\\n", mode="0644", requires=[folder]) for n in range(100)]
'''


class Project:
    """A project, and the command that applies it.

    :param root: its directory, which is created
    :param inventory: the lines of its hosts
    :param known_hosts: the text of its known_hosts file
    :param playbook: the text of its playbook
    :param file: the name of the playbook
    """

    def __init__(
        self, root: Path, inventory: Sequence[str], known_hosts: str, playbook: str = PLAYBOOK, file: str = "bench.py"
    ) -> None:
        root.mkdir()
        self.root, self.playbook = root, root / file
        self.playbook.write_text(playbook)
        # Hosts record this name. So a host that is in several projects knows its resources in each of them.
        (root / "statecfg.toml").write_text('name = "bench"\n')
        (root / "inventory.yml").write_text("hosts:\n" + "".join(f"  {line}\n" for line in inventory))
        self.known_hosts = root / "known_hosts"
        self.known_hosts.write_text(known_hosts)
        self.ssh_config = root / "ssh_config"
        self.ssh_config.write_text(f"Host *\n  UserKnownHostsFile {self.known_hosts}\n  IdentitiesOnly yes\n")

    @classmethod
    def of(
        cls, root: Path, hosts: Sequence[lab.Host], playbook: str = PLAYBOOK, file: str = "bench.py", more: str = ""
    ) -> Project:
        """Return a new project for hosts of the lab.

        :param more: further attributes of each host
        """
        inventory = [
            f"{host.name}: {{address: {host.address}, user: root, key: {host.identity}{more}}}" for host in hosts
        ]
        return cls(root, inventory, "".join(host.known_hosts.read_text() for host in hosts), playbook, file)

    def command(self, *more: str) -> list[str]:
        """Return the command that applies the playbook.

        :param more: further options
        """
        options = ["-i", str(self.root / "inventory.yml"), "--ssh-config", str(self.ssh_config), "--forks", "32"]
        return [sys.executable, "-m", "statecfg", "apply", *options, "--yes", *more, str(self.playbook)]

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment of the command: without the user's settings, and with the project's own store."""
        return {**ENVIRONMENT, "STATECFG_STORE": str(self.root / "store.db")}

    def apply(self, *more: str, statuses: Sequence[int] = (0,)) -> Cost:
        """Apply the playbook, and return what it cost.

        :param more: further options
        :param statuses: the exit statuses that are expected
        """
        return commands.run(self.command(*more), self.environment, statuses=statuses)
