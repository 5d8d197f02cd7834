"""The last answers of HTTP hooks to `pre-reconcile`: plans use them, because a plan calls no hook."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from statecfg.problems.frozen import dataclass
from statecfg.store.connection import Connection, from_json, row_of, to_json
from statecfg.store.database import Store
from statecfg.store.objects import Reconciled

Children = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LastAnswer:
    """The last answer of a hook.

    :param at: when it answered, in seconds since 1970
    :param sent: the children that it received
    :param children: the children that it returned
    """

    at: float
    sent: Children
    children: Children


def keep(store: Store, object: Reconciled, hook: str, sent: Children, children: Children) -> None:
    """Store the answer of a hook in place of its former one."""

    def enter(connection: Connection) -> None:
        key = {"object": object.id, "hook": hook}
        connection.change("DELETE FROM hook_answer WHERE object = :object AND hook = :hook", **key)
        connection.change(
            "INSERT INTO hook_answer (object, hook, at, sent, children) VALUES (:object, :hook, :at, :sent, :children)",
            **key, at=time.time(), sent=to_json(dict(sent)), children=to_json(dict(children)),
        )  # fmt: skip

    store.attempt(enter)


def last(store: Store, playbook: str, host: str, hook: str) -> LastAnswer | None:
    """Return the last answer of a hook for a playbook on a host; None if there is none."""
    query = (
        "SELECT hook_answer.at, hook_answer.sent, hook_answer.children FROM hook_answer"
        " JOIN object ON object.id = hook_answer.object"
        " WHERE object.playbook = :playbook AND object.host = :host AND hook_answer.hook = :hook"
    )
    with store.reading() as connection:
        row = row_of(connection, query, playbook=playbook, host=host, hook=hook)
    return None if row is None else LastAnswer(row["at"], from_json(row["sent"]), from_json(row["children"]))
