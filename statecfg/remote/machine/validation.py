"""Validators: a program reads new content before it is installed."""

from __future__ import annotations

import os
import stat as st
from typing import Callable, Optional, Sequence

from statecfg.remote.graph.results import Result, error
from statecfg.remote.machine import paths, process


def validate(
    argv: Sequence[str], directory: str, name: str, path: str, listen: Optional[Callable[[bytes], None]]
) -> Optional[Result]:
    """Let a program validate new content; return an error if it refuses it.

    If other users can change the directory, the program reads a copy, which they can't exchange.

    :param argv: the program; `{}` is replaced by the path of the content
    :param directory: the directory of the new content, without links
    :param name: its temporary name
    :param path: the path that it will get
    """
    trial = paths.child(directory, name)
    copy = _private_copy(trial, os.path.basename(path)) if _exposed(directory) else ""
    try:
        outcome = process.run([word.replace("{}", copy or trial) for word in argv], 60.0, listen=listen)
    finally:
        if copy:
            os.unlink(copy)
            os.rmdir(os.path.dirname(copy))
    if outcome.status == 0 and not outcome.reason:
        return None
    message = outcome.output.decode("utf-8", "replace").replace(copy or trial, path).strip()
    said = message or outcome.reason or f"exit status {outcome.status}"
    return error(f"{argv[0]} rejects the new content: {said}", message)


def _exposed(directory: str) -> bool:
    """Tell whether other users than root and the running one can put files in a directory, or exchange it.

    Programs also obey files next to what they read.

    :param directory: its path without links
    """
    ours, here = (0, os.geteuid()), "/"
    for name in directory.split("/"):
        here = paths.child(here, name) if name else here
        info = os.lstat(here)
        sticky = info.st_mode & st.S_ISVTX and here != directory
        if info.st_uid not in ours or (info.st_mode & 0o022 and not sticky):
            return True
    return False


def _private_copy(path: str, name: str) -> str:
    """Copy a file into a new directory that only the running user can read, and return the path of the copy.

    :raises OSError: if it can't be copied
    """
    import tempfile  # only files with a validator in an exposed directory need it

    # Programs may look for their settings in the directories above, and in /tmp these are anyone's.
    place = "/run" if os.geteuid() == 0 and os.path.isdir("/run") else None
    copy = os.path.join(tempfile.mkdtemp(prefix="statecfg-", dir=place), name)
    with os.fdopen(paths.open_file(path), "rb") as stream, open(copy, "wb") as made:
        piece = stream.read(1 << 18)
        while piece:
            made.write(piece)
            piece = stream.read(1 << 18)
    return copy
