"""A snapshot of what a run reads in the ledger, so that a run that changes nothing does not open the database.

It is a file next to the database. A run that has opened the database for writing writes it at its end. It is valid as
long as the database file is the same and unchanged. It can be lost without harm.
"""

from __future__ import annotations

import json
import os
import time
import zlib

from statecfg.remote.ledger import appended, state
from statecfg.remote.ledger.records import COLUMNS, JSON_COLUMNS, Debt, Resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

    from statecfg.remote.graph.model import Attrs, JsonMap
    from statecfg.remote.ledger.ledger import Ledger

FORMAT = 3  # 1 was that of 0.4.0, with masks in the attributes
_DIGEST, _CLAIMS = COLUMNS.index("digest"), COLUMNS.index("claims")
OF_DATABASE = ("-journal", "-wal")  # files of SQLite that exist while the database is being changed


def identity(path: str) -> Optional[List[Any]]:
    """Return what changes with each change of a database, None if a change was interrupted.

    The header of the database contains a counter of its changes.

    :raises OSError: if it can't be read
    """
    if any(os.path.lexists(path + ending) for ending in OF_DATABASE):
        return None
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        info, header = os.fstat(descriptor), os.pread(descriptor, 100, 0)
    finally:
        os.close(descriptor)
    return [info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns, header.hex()]


def finish(ledger: Union[Ledger, Front]) -> None:
    """Close the ledger at the end of a run. If the run may have changed it, write the snapshot for the next run."""
    if not isinstance(ledger, Front):
        if not ledger.reading:
            write(ledger)
        ledger.close()


def write(ledger: Ledger) -> None:
    """Write the snapshot of a ledger, and close its database.

    If it can't be written, there is no valid one: then the next run opens the database.
    """
    from statecfg.remote.ledger import sqlite
    from statecfg.remote.machine import durable

    path = os.path.join(ledger.state_dir, state.LEDGER)
    snapshot = os.path.join(ledger.state_dir, state.SNAPSHOT)
    try:
        before = identity(path)
        lines = _lines(ledger)
        ledger.close()
        if before is None or identity(path) != before:
            return
        head = {"format": FORMAT, "database": before}
        text = "\n".join([json.dumps(head), *lines]).encode()
        data = b"%08x\n%s" % (zlib.crc32(text), text)
        # Not synced: after a power failure, the checksum shows whether the file is complete.
        durable.replace(snapshot, [data], synced=False, trial=snapshot + ".new")
    except (OSError, sqlite.DatabaseError):
        pass  # the identity in the former snapshot no longer matches the database


def _lines(ledger: Ledger) -> List[str]:
    """Return the lines after the first: about the ledger, debts, resources with secrets, and two for each playbook."""
    query = ledger.database.execute
    rows: Dict[str, List[str]] = {}
    identities: Dict[str, List[str]] = {}
    for playbook, *cells in ledger.rows():
        texts = [cell if name in JSON_COLUMNS else json.dumps(cell) for name, cell in zip(COLUMNS, cells)]
        rows.setdefault(playbook, []).append(f"[{', '.join(texts)}]")
        identities.setdefault(playbook, []).append(f"[{texts[0]}, {texts[_DIGEST]}, {texts[_CLAIMS]}]")
    about = {
        "meta": dict(query("SELECT key, value FROM meta").fetchall()),
        "playbooks": sorted(rows),
        "completed": [name for name in sorted(rows) if ledger.completed(name)],
        "interrupted": [name for name in sorted(rows) if ledger.interrupted(name)],
        "counts": [len(rows[name]) for name in sorted(rows)],
    }
    debts = query("SELECT playbook, node, cause, since, run, how FROM owed ORDER BY node, cause").fetchall()
    lines = [json.dumps(about), json.dumps(debts), json.dumps(ledger.with_secrets())]
    for name in sorted(rows):
        lines += [f"[{', '.join(identities[name])}]", f"[{', '.join(rows[name])}]"]
    return lines


def read(state_dir: str, playbook: str, acting: bool) -> Optional[Front]:
    """Return what the snapshot contains, None if there is no valid one or if it is not enough for this run.

    :param playbook: the playbook of the run
    :param acting: the run may change the host
    :raises StateError: if the runs that are not in the ledger yet can't be read
    """
    try:
        with open(os.path.join(state_dir, state.SNAPSHOT), "rb", 0) as stream:
            data = stream.read()
        if data[:9] != b"%08x\n" % zlib.crc32(memoryview(data)[9:]):
            return None
        head, about, debts, secrets, *lines = data[9:].split(b"\n")
        header = json.loads(head)
        if header["format"] != FORMAT or header["database"] != identity(os.path.join(state_dir, state.LEDGER)):
            return None
        more = json.loads(about)
        at = more["playbooks"].index(playbook)
        if playbook in more["interrupted"] or playbook not in more["completed"]:
            return None
        if state.foreign(more["meta"]["machine"]):
            return None
        others = {owner: json.loads(lines[2 * n]) for n, owner in enumerate(more["playbooks"]) if owner != playbook}
        rows = json.loads(lines[2 * at + 1])
        front = Front(state_dir, playbook, acting, more, json.loads(debts), json.loads(secrets), rows, others)
    except (OSError, ValueError, LookupError):
        return None
    front.appendable = appended.read(state_dir)[1]
    return front


class Front:
    """Answers the questions of a run that changes nothing from a snapshot; anything else opens the database.

    :param about: properties of the ledger and of its playbooks
    :param debts: the owed restarts, with their playbook
    :param secrets: see `Ledger.with_secrets`
    :param rows: the managed resources of the playbook
    :param others: playbook → name, digest and claims of each resource, for the other playbooks
    :ivar appendable: a run may be appended to those that are not in the ledger yet
    """

    def __init__(
        self,
        state_dir: str,
        playbook: str,
        acting: bool,
        about: JsonMap,
        debts: List[List[Any]],
        secrets: List[Tuple[str, str, Attrs, JsonMap]],
        rows: List[Sequence[Any]],
        others: Mapping[str, List[Tuple[str, str, List[str]]]],
    ) -> None:
        self.state_dir, self.playbook, self.acting = state_dir, playbook, acting
        self.about, self.debts, self.secrets, self.rows, self.others = about, debts, secrets, rows, others
        self.appendable = False

    def meta(self, key: str) -> str:
        """Return a property of the ledger, see `Ledger.meta`."""
        return str(self.about["meta"].get(key, ""))

    def resources(self) -> Dict[str, Resource]:
        """Return the playbook's managed resources by name."""
        return {row[0]: Resource.from_row(row) for row in self.rows}

    def owed(self) -> List[Debt]:
        """Return the restarts that the playbook's earlier runs owe."""
        return [
            Debt(node, cause, since, run, json.loads(how))
            for playbook, node, cause, since, run, how in self.debts
            if playbook == self.playbook
        ]

    def claims_elsewhere(self, playbook: str) -> List[Tuple[str, str, str, List[str]]]:
        """Return playbook, name, digest and claims of each resource of all other playbooks."""
        return [(owner, *row) for owner, rows in self.others.items() for row in rows]

    def with_secrets(self) -> List[Tuple[str, str, Attrs, JsonMap]]:
        """Return the resources that contain secrets, see `Ledger.with_secrets`."""
        return self.secrets

    def count(self) -> int:
        """Return the number of managed resources on this host."""
        return sum(self.about["counts"])

    def completed(self, playbook: str) -> bool:
        """Return True: there is no snapshot for a playbook without a successful apply."""
        return True

    def opened(self) -> Ledger:
        """Open the ledger's database."""
        from statecfg.remote.ledger.ledger import Ledger

        return Ledger(self.state_dir, reading=not self.acting)

    def append(self, run: Mapping[str, Any], status: str, names: Iterable[str]) -> bool:
        """Record a run that changed nothing, neither on the host nor in the records of its resources.

        :param run: its record
        :param status: how it ended
        :param names: the resources that are as defined
        :returns: whether it is recorded; otherwise the ledger has to record it
        :raises StateError: if it can't be recorded
        """
        if not self.appendable:
            return False
        now = time.time()
        others = sorted({row[0] for row in self.rows}.difference(names))
        more = {"ledger": self.meta("lineage"), "started": now, "ended": now, "status": status, "others": others}
        appended.append(self.state_dir, dict(run, **more))
        return True
