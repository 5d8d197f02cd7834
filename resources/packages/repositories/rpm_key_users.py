"""Which repositories use a signing key: those whose `gpgkey` is a file on the host with the same public key."""

from __future__ import annotations

import binascii
import posixpath
import re
from collections.abc import Iterable, Iterator

from statecfg.remote.graph.model import CheckError
from statecfg.remote.machine.world import World

_BLOCK = re.compile(rb"-----BEGIN PGP PUBLIC KEY BLOCK-----(.*?)-----END", re.S)
_FILES = re.compile(r"^\s*gpgkey\s*=\s*(.*(?:\n[ \t]+.*)*)", re.M)


def packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield tag and body of each packet of a binary key. Source: section 4.2 of RFC 4880."""
    at = 0
    while at < len(data):
        first, at = data[at], at + 1
        if first & 0x40:  # the new format
            tag, size, at = first & 0x3F, data[at], at + 1
            if 192 <= size < 224:
                size, at = (size - 192 << 8) + data[at] + 192, at + 1
            elif size == 255:
                size, at = int.from_bytes(data[at : at + 4], "big"), at + 4
        else:
            tag, octets = first >> 2 & 0xF, 1 << (first & 3)
            size, at = int.from_bytes(data[at : at + octets], "big"), at + octets
        yield tag, data[at : at + size]
        at += size


def public_keys(content: bytes) -> set[bytes]:
    """Return the public keys in a file, as text or binary.

    :raises ValueError: if it can't be read
    """
    binary = [content] if content[:1] >= b"\x80" else [_decoded(match) for match in _BLOCK.findall(content)]
    try:
        return {body for each in binary for tag, body in packets(each) if tag == 6}
    except IndexError:
        raise ValueError("the last packet is not complete") from None


def _decoded(block: bytes) -> bytes:
    """Return the binary form of a block: without headers, which contain a colon, and without the checksum."""
    lines = (line.strip() for line in block.splitlines())
    return binascii.a2b_base64(b"".join(line for line in lines if b":" not in line and line[:1] != b"="))


def users(world: World, repository: str, key: str, to_remove: Iterable[str]) -> list[str]:
    """Return the paths of the other repositories' files that use a key of this one.

    :param repository: the path of the repository's file
    :param key: the path of the file with its keys
    :param to_remove: the paths of repositories that this run removes
    :raises CheckError: if a file can't be read
    """
    directory, gone = posixpath.dirname(repository), {repository, *to_remove}
    paths = [posixpath.join(directory, name) for name in sorted(world.listdir(directory)) if name.endswith(".repo")]
    ours = _keys(world, key)
    found = []
    for path in (path for path in paths if path not in gone):
        text = world.read(path).decode("utf-8", "replace")
        named = [word for value in _FILES.findall(text) for word in re.split(r"[\s,]+", value)]
        files = [word[len("file://") :] for word in named if word.startswith("file://")]
        if any(world.stat(file) is not None and _keys(world, file) & ours for file in files):
            found.append(path)
    return found


def _keys(world: World, path: str) -> set[bytes]:
    try:
        return public_keys(world.read(path))
    except ValueError as problem:
        raise CheckError(f"the key {path} can't be read: {problem}") from None
