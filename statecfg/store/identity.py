"""The identity of a store: a random name that never changes. A saved plan uses it to recognize the store."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from statecfg.store import opened
from statecfg.store.tables import store_identity

if TYPE_CHECKING:
    from statecfg.playbook.project import Project
    from statecfg.store.connection import Connection


def of(project: Project, url: str | None = None) -> str:
    """Return the identity of a project's store: 32 hex digits. Create the store if it does not exist.

    :param url: address of the store; None for the project's or the default store
    :raises StoreError: the store can't be used
    """
    with opened(project, url) as store:
        return store.attempt(_ensure)


def _ensure(connection: Connection) -> str:
    row = connection.execute(store_identity.select()).one_or_none()
    if row is not None:
        return str(row.identity)
    identity = uuid.uuid4().hex
    connection.execute(store_identity.insert().values(one=1, identity=identity))
    return identity
