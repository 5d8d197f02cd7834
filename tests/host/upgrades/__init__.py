"""Data that version 0.3.0 created: a store with two projects, and the state directories of their two hosts.

The project `shop` has the service `a` on light1, and `b` and `c` on light2. Its relations are x:2 and x:3; x:1 has
ended. The project `blog` has the service `z` on light1. Both projects have bound a playbook to light1. The host
`@local` has tags, but no run has used it.
"""

from __future__ import annotations

import re
import sqlite3
import tarfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# The playbook site.yml of `shop` at that time.
SHOP = """
- service: a
  hosts: light1
  charm: charms/a
- service: b
  hosts: light2
  charm: charms/b
  resources: [{file: /srv/b.conf, content: b}]
- service: c
  hosts: light2
  charm: charms/c
- relations:
    - [a:x, b:x]
    - [a:x, c:x]
"""


def store(path: Path) -> None:
    """Write the SQLite store to a new file."""
    connection = sqlite3.connect(path)
    try:
        connection.executescript((HERE / "store-0.3.0.sql").read_text())
    finally:
        connection.close()
    path.chmod(0o600)


def state_of(host: str, directory: Path) -> None:
    """Write the state directory of light1 or light2, which must not exist yet."""
    directory.mkdir(mode=0o700, parents=True)
    with tarfile.open(HERE / f"{host}-0.3.0.tar.gz") as archive:
        archive.extractall(directory)


def database(connection: Any, path: Path) -> None:
    """Create the tables of 0.3.0 in an empty PostgreSQL database, copy the rows of the store, and set the sequences.

    :param connection: a psycopg connection with autocommit
    :param path: a path for a copy of the SQLite store
    """
    connection.execute((HERE / "postgresql-0.3.0.sql").read_text())
    store(path)
    with sqlite3.connect(path) as rows:
        connection.execute("SET session_replication_role = replica")  # turns off the checks of references
        asked = "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        for table, definition in rows.execute(asked).fetchall():
            truths = set(re.findall(r"(\w+) BOOLEAN", definition))
            found = rows.execute(f'SELECT * FROM "{table}"')
            names = [column[0] for column in found.description]
            insert = f'INSERT INTO "{table}" VALUES ({", ".join(["%s"] * len(names))})'
            for row in found:
                values = [bool(each) if name in truths else each for name, each in zip(names, row, strict=True)]
                connection.execute(insert, values)
        for table, last in rows.execute("SELECT name, seq FROM sqlite_sequence"):
            column = "number" if table.startswith("entity") else "id"
            connection.execute("SELECT setval(pg_get_serial_sequence(%s, %s), %s)", (table, column, last))
