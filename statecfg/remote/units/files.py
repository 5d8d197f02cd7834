"""The files of units on this host: each unit has its own copy of its charm, which is installed file by file."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat as st

from statecfg.remote.graph.model import Blob
from statecfg.remote.machine import durable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Mapping, Tuple, Union

    from typing_extensions import TypedDict

    class Installed(TypedDict):
        """The installed files of a charm: their digest and names."""

        digest: str
        names: List[str]

    Content = Union[Blob, str]
    Files = Mapping[str, Tuple[int, Content]]

UNITS = "units"
CHARM = "charm"
INSTALLED = "installed"  # the file with the digest and the file names of the installed charm
ARRIVING = "arriving"  # temporary name of a file that is being written
GONE = "gone-"  # prefix of a unit's directory that is being removed
_UNIT = re.compile(r"[a-z][a-z0-9-]*/[0-9]+")


def folder(home: str, unit: str) -> str:
    """Return the directory of a unit. Its charm is in the subdirectory `charm`.

    :raises ValueError: the name is not a unit's name
    """
    if not _UNIT.fullmatch(unit):
        raise ValueError(f"{unit!r:.80} is not the name of a unit")
    return os.path.join(home, UNITS, unit.replace("/", "-"))


def charm_dir(home: str, unit: str) -> str:
    """Return the directory in which a unit's hooks run."""
    return os.path.join(folder(home, unit), CHARM)


def installed(home: str, unit: str) -> str:
    """Return the digest of a unit's installed charm; "" if none is installed completely."""
    return str(_record(folder(home, unit))["digest"]) if os.path.isdir(charm_dir(home, unit)) else ""


def lacking(home: str, unit: str, files: Files) -> List[str]:
    """Return the sorted names of a charm's files that are missing or different on this host."""
    base = charm_dir(home, unit)
    return sorted(name for name, (mode, content) in files.items() if not _same(os.path.join(base, name), mode, content))


def install(home: str, unit: str, digest: str, files: Files) -> None:
    """Install a charm's files, each atomically. Delete files of the previous charm that the new one does not contain.

    Keep files that hooks made. After an interruption, the charm does not count as installed.

    :param files: path in the charm → mode and content; for a symbolic link, its target
    :raises OSError: a file can't be written
    :raises LookupError: a hook has changed a file whose content is not part of this run
    :raises ValueError: a path points outside the charm
    """
    own = folder(home, unit)
    for name in files:
        if name.startswith("/") or "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
            raise ValueError(f"{name!r:.80} is not a path in a charm")
    former = set(_record(own)["names"])
    os.makedirs(os.path.join(own, CHARM), exist_ok=True)
    _write_record(own, "", sorted(former | set(files)))
    for name in lacking(home, unit, files):
        _put(own, name, *files[name])
    for name in sorted(former - set(files)):
        _take_away(os.path.join(own, CHARM), name)
    _write_record(own, digest, sorted(files))


def remove(home: str, unit: str) -> None:
    """Delete the directory of a unit.

    :raises OSError: a file can't be deleted
    """
    own = folder(home, unit)
    if os.path.lexists(own):
        trash = os.path.join(home, UNITS, f"{GONE}{os.path.basename(own)}")
        if os.path.lexists(trash):
            shutil.rmtree(trash)
        os.rename(own, trash)
        shutil.rmtree(trash)


def directories(home: str) -> List[str]:
    """Return the directories of the units on this host, except those that are being removed."""
    try:
        names = sorted(os.listdir(os.path.join(home, UNITS)))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [os.path.join(home, UNITS, name) for name in names if not name.startswith(GONE)]


def _record(own: str) -> Installed:
    try:
        with open(os.path.join(own, INSTALLED), encoding="utf-8") as stream:
            record: Installed = json.load(stream)
            return record
    except (FileNotFoundError, NotADirectoryError, ValueError):  # a damaged record is ignored
        return {"digest": "", "names": []}


def _write_record(own: str, digest: str, names: List[str]) -> None:
    text = json.dumps({"digest": digest, "names": names})
    durable.replace(os.path.join(own, INSTALLED), [text.encode()], 0o644)


def _same(path: str, mode: int, content: Content) -> bool:
    """Return whether a path is a file with this mode and content, or a symbolic link with this target."""
    try:
        info = os.lstat(path)
        if isinstance(content, str):
            return st.S_ISLNK(info.st_mode) and os.readlink(path) == content
        if not st.S_ISREG(info.st_mode) or info.st_mode & 0o7777 != mode & 0o777 or info.st_size != content.size:
            return False
        digest = hashlib.sha256()
        with open(path, "rb") as stream:
            for piece in iter(lambda: stream.read(1 << 20), b""):
                digest.update(piece)
        return digest.hexdigest() == content.sha256
    except (FileNotFoundError, NotADirectoryError):
        return False


def _put(own: str, name: str, mode: int, content: Content) -> None:
    above = os.path.join(own, CHARM)
    path = os.path.join(above, name)
    for part in name.split("/")[:-1]:
        above = os.path.join(above, part)
        if os.path.islink(above) or not os.path.isdir(above):
            if os.path.lexists(above):
                os.unlink(above)
            os.mkdir(above, 0o755)
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    durable.put(path, lambda trial: _make(trial, mode, content), os.path.join(own, ARRIVING))


def _make(path: str, mode: int, content: Content) -> None:
    if isinstance(content, str):
        os.symlink(content, path)
    else:
        durable.create(path, content.chunks(), 0o600)
        os.chmod(path, mode & 0o777)


def _take_away(base: str, name: str) -> None:
    """Delete a file of a previous charm, and the directories that become empty."""
    path = os.path.join(base, name)
    above = os.path.dirname(path)
    if os.path.realpath(above) != os.path.join(os.path.realpath(base), os.path.dirname(name)).rstrip("/"):
        return  # a hook replaced a directory with a link: its target does not belong to the charm
    if os.path.islink(path) or os.path.isfile(path):
        os.unlink(path)
    while above != base and os.path.isdir(above) and not os.listdir(above):
        os.rmdir(above)
        above = os.path.dirname(above)
