"""Create the schema, or migrate it from any older version to the current one, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from statecfg.store import schema_3

if TYPE_CHECKING:
    from sqlalchemy import MetaData

    from statecfg.store.connection import Connection

SCHEMA = 6

# Version → existing table → the statements that change it; both databases must accept them. A new table has its version
# in its `info` (`info={"since": 2}`) and is created in its current form.
Changes = Mapping[int, Mapping[str, Sequence[str]]]
CHANGES: Changes = {
    3: {**schema_3.STATEMENTS, "entity_task": ["ALTER TABLE entity_task ADD COLUMN log TEXT DEFAULT '' NOT NULL"]},
    5: {"going_host": ["ALTER TABLE going_host ADD COLUMN report TEXT DEFAULT 'null' NOT NULL"]},
}


def complete_metadata() -> MetaData:
    """Return the schema with the tables of all modules. Most commands use few of them, and each takes time to build."""
    from statecfg.store.entities.tables import entity
    from statecfg.store.service_tables import unit

    assert entity.metadata is unit.metadata  # these imports have added their tables to it
    return unit.metadata


def forward(connection: Connection, current: int, schema: int = SCHEMA, changes: Changes = CHANGES) -> None:
    """Create or migrate the schema, inside the transaction of `connection`.

    :param current: the current version; 0 if there is no schema
    :param schema: the target version
    :param changes: the changes to existing tables, by version
    """
    from statecfg.store import tables

    metadata = complete_metadata()
    existing = {table.name for table in metadata.sorted_tables if table.info.get("since", 1) <= current}
    for version in range(current + 1, schema + 1):
        for table, statements in changes.get(version, {}).items():
            for statement in statements if table in existing else ():
                connection.exec_driver_sql(statement)
    missing = [table for table in metadata.sorted_tables if table.name not in existing]
    # No check whether a table exists: if an unexpected one does, the migration must fail.
    metadata.create_all(connection.full, missing, checkfirst=False)
    if 0 < current < 3 <= schema:
        schema_3.sort_out(connection)
    if current:
        connection.execute(tables.schema_version.update().values(version=schema))
    else:
        connection.execute(tables.schema_version.insert().values(one=1, version=schema))
