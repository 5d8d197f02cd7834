"""Reading text files, and refusing others."""

from __future__ import annotations

from statecfg.remote.graph.model import CheckError
from statecfg.remote.machine.world import World


def text(world: World, path: str) -> str:
    """Return the content of a text file.

    :raises CheckError: if it is not text
    """
    try:
        found = world.read(path).decode("utf-8")
    except UnicodeDecodeError as problem:
        raise CheckError(f"{path} is not UTF-8 text (byte {problem.start}); convert it first") from None
    if "\0" in found:
        raise CheckError(f"{path} is not a text file: it contains a NUL byte")
    return found
