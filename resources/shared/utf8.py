"""Reading text files, and refusing others."""

from __future__ import annotations

from statecfg.remote.graph.model import CheckError
from statecfg.remote.machine.world import World

MARK = b"\xef\xbb\xbf"  # the byte order mark of UTF-8, which editors of Windows put before the text of a file
WIDE = (b"\xff\xfe", b"\xfe\xff")  # the byte order marks of UTF-16
LARGEST = 64 << 20  # bytes of a file that a node edits as text


def data(world: World, path: str) -> bytes:
    """Return the content of a text file without its byte order mark.

    :raises CheckError: if the file is too large, or if it is UTF-16
    """
    stat = world.apparent(path)
    if stat is not None and stat.file_type == "file" and (stat.size or 0) > LARGEST:
        raise CheckError(f"{path} has {stat.size:,} bytes; statecfg edits text files of up to {LARGEST:,} bytes")
    with world.open(path) as stream:  # it may grow while it is read
        found = stream.read(LARGEST + 1)
    if len(found) > LARGEST:
        raise CheckError(f"{path} has more than {LARGEST:,} bytes; statecfg edits smaller text files")
    if found.startswith(WIDE) or b"\0\0" in (found[:4:2], found[1:4:2]):  # also without a mark
        raise CheckError(f"{path} is UTF-16 text; convert it to UTF-8 first")
    return found[len(MARK) :] if found.startswith(MARK) else found


def text(world: World, path: str) -> str:
    """Return the content of a text file without its byte order mark.

    :raises CheckError: if it is not UTF-8 text, or too large
    """
    try:
        found = data(world, path).decode("utf-8")
    except UnicodeDecodeError as problem:
        raise CheckError(f"{path} is not UTF-8 text (byte {problem.start}); convert it first") from None
    if "\0" in found:
        raise CheckError(f"{path} is not a text file: it contains a NUL byte")
    return found
