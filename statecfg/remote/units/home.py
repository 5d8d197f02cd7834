"""The directories of units on this host: one for each project. It records the store that the project belongs to."""

from __future__ import annotations

import hashlib
import json
import os
import re
from typing import Any, List, Mapping

from statecfg.remote.graph.model import JsonMap
from statecfg.remote.ledger.state import StateError
from statecfg.remote.machine import durable
from statecfg.remote.units import files as unit_files

PROJECTS = "projects"
OWNER = "owner"  # the file that names the store of a project's units
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")


def home(state_dir: str, project: str) -> str:
    """Return the directory that contains the `units` of a project.

    :param state_dir: the state directory
    :param project: the project's name; it is hashed if it is unsuitable as the name of a directory
    """
    plain = _PLAIN.fullmatch(project)
    name = project if plain else "=" + hashlib.sha256(project.encode("utf-8", "replace")).hexdigest()
    return os.path.join(state_dir, PROJECTS, name)


def homes(state_dir: str) -> List[str]:
    """Return the directories of all projects, and the one in which 0.3.0 stored the units of all projects."""
    try:
        names = sorted(os.listdir(os.path.join(state_dir, PROJECTS)))
    except (FileNotFoundError, NotADirectoryError):
        names = []
    return [state_dir] + [os.path.join(state_dir, PROJECTS, name) for name in names]


def refusal(state_dir: str, order: Mapping[str, Any]) -> str:
    """Return why this host refuses the units of a run; "" if it accepts them. Change nothing.

    The host refuses them if it has units of the project from another store. A project without units in its store has no
    mark, so every existing owner is another store.

    :param order: the controller's order for the units
    """
    own = home(state_dir, order["project"])
    owner = _owner(own)
    if not owner or owner["mark"] == order["mark"]:
        return ""
    file = os.path.join(own, OWNER)
    text = "this host has units of the project %s that belong to the store %s. Use that store (--store), or give one"
    text += " project another name in its statecfg.toml. If that store is lost, delete %s here: the next apply takes"
    return (text + " these units over") % (order["project"], owner["store"], file)


def take(state_dir: str, order: Mapping[str, Any]) -> str:
    """Create a project's directory, record its store, and move the units of 0.3.0 into it; return the directory.

    :raises StateError: the directory can't be written
    """
    own = home(state_dir, order["project"])
    owner = {key: order[key] for key in ("project", "mark", "store")}
    try:
        os.makedirs(os.path.join(own, unit_files.UNITS), mode=0o700, exist_ok=True)
        if _owner(own) != owner:
            durable.replace(os.path.join(own, OWNER), [json.dumps(owner).encode()], 0o644)
        for unit in order.get("early", ()):
            old_folder, new_folder = unit_files.folder(state_dir, unit), unit_files.folder(own, unit)
            if os.path.isdir(old_folder) and not os.path.lexists(new_folder):
                os.rename(old_folder, new_folder)
    except OSError as problem:
        raise StateError(f"{problem.filename or own}: {problem.strerror}") from None
    return own


def leave(own: str) -> None:
    """Delete a project's directory if it contains no units.

    :raises OSError: the directory can't be deleted
    """
    if os.path.isdir(own) and not os.listdir(os.path.join(own, unit_files.UNITS)):
        os.rmdir(os.path.join(own, unit_files.UNITS))
        os.unlink(os.path.join(own, OWNER))
        os.rmdir(own)


def _owner(own: str) -> JsonMap:
    """Return the recorded owner of a project's units on this host; {} if there is none."""
    try:
        with open(os.path.join(own, OWNER), encoding="utf-8") as stream:
            owner = json.load(stream)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as problem:
        raise StateError(f"{os.path.join(own, OWNER)}: {problem}") from None
    if not isinstance(owner, dict) or not {"mark", "store"} <= set(owner):
        raise StateError(f"{os.path.join(own, OWNER)} is damaged: check it, then delete it")
    return owner
