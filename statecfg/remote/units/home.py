"""Where the units of each project are on this host: a directory of its own, which remembers the store it belongs to."""

from __future__ import annotations

import hashlib
import json
import os
import re

from statecfg.remote.ledger.state import StateError
from statecfg.remote.machine import durable
from statecfg.remote.units import files as unit_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping

PROJECTS = "projects"
OWNER = "owner"  # the file that says which store a project's units belong to
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")


def home(place: str, project: str) -> str:
    """Return the directory that has the `units` of a project.

    :param place: the directory of our state
    :param project: its name; one that is no good name for a directory is hashed
    """
    plain = _PLAIN.fullmatch(project)
    name = project if plain else "=" + hashlib.sha256(project.encode("utf-8", "replace")).hexdigest()
    return os.path.join(place, PROJECTS, name)


def homes(place: str) -> List[str]:
    """Return the directories of all projects, and that of 0.3.0, which kept the units of all projects in one."""
    try:
        names = sorted(os.listdir(os.path.join(place, PROJECTS)))
    except (FileNotFoundError, NotADirectoryError):
        names = []
    return [place] + [os.path.join(place, PROJECTS, name) for name in names]


def refusal(place: str, order: Mapping[str, Any]) -> str:
    """Return why the units of a run must not be here, "" where they may: another store has units of the project here.

    Nothing is changed. A project without units in its store has no mark yet, so any owner is another one.

    :param order: what the controller says of the units
    """
    own = home(place, order["project"])
    owner = _owner(own)
    if not owner or owner["mark"] == order["mark"]:
        return ""
    file = os.path.join(own, OWNER)
    text = "this host has units of the project %s that belong to the store %s. Use that store (--store), or give one"
    text += " project another name in its statecfg.toml. If that store is lost, delete %s here: the next apply takes"
    return (text + " these units over") % (order["project"], owner["store"], file)


def take(place: str, order: Mapping[str, Any]) -> str:
    """Return the directory of a project, entered as its store's. Units of 0.3.0 are moved there. Raises StateError."""
    own = home(place, order["project"])
    owner = {key: order[key] for key in ("project", "mark", "store")}
    try:
        os.makedirs(os.path.join(own, unit_files.UNITS), mode=0o700, exist_ok=True)
        if _owner(own) != owner:
            durable.replace(os.path.join(own, OWNER), [json.dumps(owner).encode()], 0o644)
        for unit in order.get("early", ()):
            old, new = unit_files.folder(place, unit), unit_files.folder(own, unit)
            if os.path.isdir(old) and not os.path.lexists(new):
                os.rename(old, new)
    except OSError as problem:
        raise StateError("%s: %s" % (problem.filename or own, problem.strerror)) from None
    return own


def leave(own: str) -> None:
    """Remove a project's directory if no unit is left in it. Raises OSError."""
    if os.path.isdir(own) and not os.listdir(os.path.join(own, unit_files.UNITS)):
        os.rmdir(os.path.join(own, unit_files.UNITS))
        os.unlink(os.path.join(own, OWNER))
        os.rmdir(own)


def _owner(own: str) -> Dict[str, Any]:
    """Return who owns a project's units here, {} where nobody does."""
    try:
        with open(os.path.join(own, OWNER), encoding="utf-8") as stream:
            found = json.load(stream)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as problem:
        raise StateError("%s: %s" % (os.path.join(own, OWNER), problem)) from None
    if not isinstance(found, dict) or not {"mark", "store"} <= set(found):
        raise StateError("%s is damaged: look at it, then delete it" % os.path.join(own, OWNER))
    return found
