"""A project with services on test hosts. Tests write its charms and run the real command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import select

from statecfg.store import opened, services
from statecfg.store.service_tables import relation_unit
from tests.host.command import Ran, reach, statecfg
from tests.lab import Host

Json = dict[str, Any]
# Appends one line to a file: the hook, its unit, the remote unit, and the members of the relation.
NOTED = '#!/bin/sh\necho "$(basename "$0") $JUJU_UNIT_NAME $JUJU_REMOTE_UNIT [$JUJU_MEMBERS]" >> /srv/noted\n'
# Two related services. Format it with the names of their hosts.
WEB_AND_DB = """
- service: db
  hosts: {0}
  charm: charms/db
  schema:
    length: {{type: int, default: 8}}
  resources:
    - directory: /srv/db
- service: web
  hosts: {1}
  charm: charms/web
  resources:
    - directory: /srv/web
- relations:
    - [web:db, db:db]
"""
LIFE = ("install", "config-changed", "start", "stop", "upgrade-charm")


class Fabric:
    """A project whose services run on test hosts.

    :param base: a directory for this test
    """

    def __init__(self, base: Path, hosts: Sequence[Host]) -> None:
        self.root, self.hosts = base / "fabric", hosts
        self.root.mkdir(parents=True)
        reach(self.root, hosts)
        (self.root / "statecfg.toml").write_text('name = "fabric"\nssh_config = "ssh_config"\n')
        self.store = self.root / "store.db"

    def charm(self, name: str, hooks: Mapping[str, str], relations: Sequence[str] = ()) -> Path:
        """Write a charm with all lifecycle and relation hooks. Each hook notes its call, then runs its script."""
        folder = self.root / "charms" / name / "hooks"
        folder.mkdir(parents=True, exist_ok=True)
        events = ("joined", "changed", "departed", "broken")
        about = [f"{each}-relation-{event}" for each in relations for event in events]
        for hook in (*LIFE, *about, *hooks):
            path = folder / hook
            path.write_text(NOTED + hooks.get(hook, ""))
            path.chmod(0o755)
        return folder

    def play(self, text: str) -> None:
        """Write the playbook."""
        (self.root / "site.yml").write_text(text)

    def __call__(self, *words: str, code: int | None = 0, **env: str) -> Ran:
        """Run statecfg in the project directory."""
        given = {"STATECFG_STORE": str(self.store), "HOME": str(self.root), **env}
        return statecfg(*words, cwd=self.root, code=code, **given)

    def apply(self, *words: str, code: int | None = 0) -> Json:
        """Apply the playbook. Return the reports of the hosts by name."""
        found: Json = self("apply", "site.yml", "--yes", "--json", *words, code=code).json()["hosts"]
        return found

    def noted(self, host: Host) -> list[str]:
        """Return the noted hook calls of a host, the oldest first."""
        path = host.path("/srv/noted")
        return path.read_text().splitlines() if path.exists() else []

    def forget(self) -> None:
        """Delete the noted hook calls on all hosts."""
        for host in self.hosts:
            host.path("/srv/noted").unlink(missing_ok=True)

    def units(self) -> Json:
        """Return the units by name, each with its state, its host, and its settings in each relation."""
        found: Json = {}
        with opened(url=str(self.store)) as store, store.reading() as connection:
            for unit in services.units_in(connection, "fabric"):
                about = {"state": unit.condition.state, "host": unit.host, "dying": unit.dying}
                found[unit.name] = {**about, "relations": self._published(connection, unit)}
        return found

    def _published(self, connection: Any, unit: Any) -> Json:
        there = select(relation_unit.c.relation, relation_unit.c.settings).where(relation_unit.c.unit == unit.id)
        return {row.relation: row.settings for row in connection.execute(there)}


def hooks(host: Json, unit: str) -> list[str]:
    """Return the hooks of a unit that ran, or else that are due, from a host's report, each with its remote unit."""
    for each in host.get("units", ()):
        if each["unit"] == unit:
            listed = each.get("hooks") or each.get("due")
            return [f"{hook['hook']} {hook.get('remote', '')}".strip() for hook in listed]
    return []
