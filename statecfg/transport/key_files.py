"""Check whether private key files can be used, before connecting and without a passphrase."""

from __future__ import annotations

import base64
import binascii
import functools
import os
import stat

_HEAD = 64 << 10  # bytes to read from a file
_OPENSSH = b"-----BEGIN OPENSSH PRIVATE KEY-----"
_PUBLIC = (b"ssh-", b"ecdsa-", b"sk-", b"-----BEGIN PUBLIC KEY", b"-----BEGIN RSA PUBLIC", b"---- BEGIN SSH2 PUBLIC")


def unusable(path: str) -> str:
    """Return the reason why a private key file cannot be used, and the fix; "" if it can be used.

    The file is read again only if it has changed, because each login asks for it.

    :param path: an existing file
    :raises OSError: the file cannot be read
    """
    info = os.stat(path)
    if not stat.S_ISREG(info.st_mode):
        return "it is not a file"
    # A change of the mode or the owner changes the ctime, too.
    return _unusable(path, info.st_mode, info.st_uid == os.geteuid(), (info.st_dev, info.st_ino, info.st_ctime_ns))


@functools.lru_cache(maxsize=1024)
def _unusable(path: str, mode: int, own: bool, version: tuple[int, int, int]) -> str:
    """Return the same as `unusable` for one version of a file."""
    with open(path, "rb") as stream:
        head = stream.read(_HEAD)
    if head.startswith(b"PuTTY-User-Key-File-"):
        return f"it is a PuTTY key. Convert it: puttygen {path} -O private-openssh -o NEWFILE"
    if head.lstrip().startswith(_PUBLIC):
        return "it is a public key. Name the private key"
    # OpenSSH checks only the user's own files: root may use files of others.
    if own and mode & 0o077:
        return f"other users can access it (mode {stat.S_IMODE(mode):04o}). Run: chmod 600 {path}"
    if b"sk-ssh-ed25519@openssh.com" in _decoded(head) or b"sk-ecdsa-sha2-nistp256@openssh.com" in _decoded(head):
        return "it is the key of a FIDO security key, which the ssh transport does not support. Use another key"
    return ""


def _decoded(head: bytes) -> bytes:
    """Return the decoded content of an OpenSSH private key. Its public key is not encrypted."""
    if not head.lstrip().startswith(_OPENSSH):
        return b""
    lines = head.split(_OPENSSH, 1)[1].partition(b"-----END")[0].split()
    try:
        return base64.b64decode(b"".join(lines))
    except binascii.Error:
        return b""
