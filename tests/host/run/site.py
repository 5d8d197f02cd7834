"""A project for one test host: it writes playbooks and runs the real command on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.host.command import Ran, reach, statecfg
from tests.lab import Host

LEDGER = "/var/lib/statecfg/ledger.db"


class Site:
    """A project with one test host in its inventory.

    :param base: a directory of the test; the project is its subdirectory `name`, and `name` is also the project's name
    """

    def __init__(self, base: Path, host: Host, name: str) -> None:
        self.base, self.host, self.name = base / name, host, name
        reach(self.base, [host])
        (self.base / "statecfg.toml").write_text("")
        self.state = base / "state"

    def play(self, *nodes: str, file: str = "site.py", head: str = "") -> None:
        """Write a playbook with these nodes; each node is a Python expression."""
        listed = "".join(f"        {node},\n" for node in nodes)
        (self.base / file).write_text(
            "from statecfg import play, secret\n"
            "from statecfg.resources import command, directory, file, line_in_file, symlink\n\n"
            f"@play(hosts='all'{head})\ndef site(host):\n    return [\n{listed}    ]\n"
        )

    def __call__(self, verb: str, *arguments: str, code: int | None = 0, **env: str) -> Ran:
        """Run the command in the project."""
        config = ["--ssh-config", str(self.base / "ssh_config")]
        state = {"XDG_STATE_HOME": str(self.state)}
        return statecfg(verb, *arguments, *config, cwd=self.base, code=code, **{**state, **env})

    def report(self, verb: str, *arguments: str, code: int | None = 0, **env: str) -> dict[str, Any]:
        """Run the command; return the host's part of its report."""
        found: dict[str, Any] = self(verb, *arguments, "--json", code=code, **env).json()["hosts"][self.host.name]
        return found

    def change_ledger(self, statement: str) -> None:
        """Run an SQL statement on the host's ledger.

        The host runs SQLite itself: SQLite follows the links of a path and would leave the host's file system.
        """
        code = f"import sqlite3, sys; d = sqlite3.connect({LEDGER!r}); d.execute(sys.argv[1]); d.commit()"
        self.host.run(["python3", "-c", code, statement])

    def fresh(self) -> None:
        """Delete all records of statecfg on the host."""
        self.host.run(["rm", "-rf", "/var/lib/statecfg"])


def names(layers: list[list[dict[str, Any]]]) -> list[str]:
    """Return the names of all nodes in the layers, in order."""
    return [node["name"] for layer in layers for node in layer]
