"""The runs that changed nothing, one line each in a file next to the ledger, until a later run adds them to the ledger.

Such a run opens no database. Each line is durable before the next one is added, so only the last line can be incomplete
after a crash, and then its run has not been reported as recorded.
"""

from __future__ import annotations

import json
import os
import zlib
from typing import List, Mapping, Sequence, Tuple

from statecfg.remote.graph.model import JsonMap
from statecfg.remote.ledger.sqlite import Connection
from statecfg.remote.ledger.state import APPENDED, StateError

MOST = 100  # lines; then a run adds them to the ledger


def read(state_dir: str) -> Tuple[List[JsonMap], bool]:
    """Return the runs, oldest first, and whether another run may be appended: there is room, and no line is incomplete.

    :raises StateError: if the file can't be read, or if a line before the last one is damaged
    """
    path = os.path.join(state_dir, APPENDED)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb", 0) as stream:
            lines = stream.read().split(b"\n")
    except FileNotFoundError:
        return [], True
    except OSError as problem:
        raise StateError(f"cannot read {path}: {problem.strerror}") from None
    complete = not lines[-1]
    lines = lines[:-1] if complete else lines
    runs = []
    for number, line in enumerate(lines, 1):
        try:
            if b"%08x" % zlib.crc32(line[9:]) != line[:8]:
                raise ValueError("another checksum")
            runs.append(json.loads(line[9:].decode()))
        except ValueError:
            if number < len(lines):
                hint = "Move it away: then only the history lacks the runs in it, which changed nothing."
                raise StateError(f"line {number} of {path} is damaged", hint) from None
            complete = False
    return runs, complete and len(runs) < MOST


def append(state_dir: str, run: Mapping[str, object]) -> None:
    """Append a run durably.

    :raises StateError: if that fails; the file is then as before
    """
    text = json.dumps(run).encode()
    rest = b"%08x %s\n" % (zlib.crc32(text), text)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(os.path.join(state_dir, APPENDED), flags, 0o600)
        size = os.fstat(descriptor).st_size
        try:
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, size)
            raise
        finally:
            os.close(descriptor)
        if not size:
            folder = os.open(state_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as problem:
        raise StateError(f"the ledger in {state_dir} can't be written: {problem.strerror}") from None


def fold(database: Connection, runs: Sequence[JsonMap]) -> None:
    """Add runs to the ledger in one transaction. A run that the ledger has already stays as it is.

    A run of another ledger is ignored: that ledger had this path before and is lost.

    :param database: the ledger, as it was when the runs were appended
    """
    with database:
        lineage = database.execute("SELECT value FROM meta WHERE key = 'lineage'").fetchone()
        for run in (run for run in runs if (run["ledger"],) == lineage):
            row = [run[key] for key in ("id", "started", "ended", "mode", "who", "playbook", "status")]
            if not database.execute("INSERT OR IGNORE INTO run VALUES (?, ?, ?, ?, ?, ?, ?)", row).rowcount:
                continue
            names = database.execute("SELECT name FROM resource WHERE playbook = ?", (run["playbook"],)).fetchall()
            database.executemany(
                "UPDATE resource SET last_run = ? WHERE playbook = ? AND name = ?",
                [(run["id"], run["playbook"], name) for (name,) in names if name not in run["others"]],
            )


def clear(state_dir: str) -> None:
    """Delete the file, after its runs have been added to the ledger."""
    path = os.path.join(state_dir, APPENDED)
    if os.path.lexists(path):
        os.unlink(path)
