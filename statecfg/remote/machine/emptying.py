"""Remove what is in a directory of the planned machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, Optional

from statecfg.remote.graph.results import Result
from statecfg.remote.machine.overlay import Entry

if TYPE_CHECKING:
    AnyPlanned = Any  # `planned` imports this module

SHOWN = 1000  # entries of a removed tree that a plan shows
DEEPEST = 100  # levels of a removed tree that a plan shows


def emptied(machine: AnyPlanned, directory: str) -> Optional[Result]:
    """Remove everything in a directory; return an error if this user may not remove it.

    Of a large or deep tree, the plan shows a part, and says that there is more.
    """
    directories, count, more = [directory], 0, False
    planned: Dict[str, Dict[str, Entry]] = {}
    for planned_path, entry in machine.entries.items():
        if planned_path.startswith(directory.rstrip("/") + "/"):
            planned.setdefault(os.path.dirname(planned_path), {})[planned_path] = entry
    for holder in directories:  # the loop appends the directories that it finds
        for name in machine._names(holder, planned.get(holder, {})):
            inside = holder.rstrip("/") + "/" + name
            count += 1
            more = more or count > SHOWN or inside.count("/") - directory.count("/") > DEEPEST
            if more:
                break
            refused: Optional[Result] = machine._forbidden("remove", inside, inside)
            if refused is not None:
                return refused
            stat = machine._standing(inside)
            if stat is not None and stat.file_type == "directory":
                directories.append(inside)
            elif stat is not None:
                machine._put(inside, None)
    for holder in reversed(directories[1:]):
        machine._put(holder, None)
    for planned_path in [path for entries in planned.values() for path in entries] if more else ():
        if machine.entries[planned_path].stat is not None:
            machine._put(planned_path, None)
    if more:
        machine.changes.note(directory, "inside", "more than the plan shows", None)
    return None
