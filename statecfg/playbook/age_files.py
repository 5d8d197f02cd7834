"""Open what `age` encrypted, with the library pyrage: for keys of age and of SSH, and with a passphrase."""

from __future__ import annotations

import base64
import binascii
import os
import re
import stat
from functools import partial
from importlib import import_module
from typing import Any

from statecfg.graph.opaque import Secret
from statecfg.playbook.secret_keys import Opened, Ring, SecretFailure

BINARY = b"age-encryption.org/v1\n"
ARMOR = b"-----BEGIN AGE ENCRYPTED FILE-----"
LARGEST = 1 << 20  # bytes of a file with identities
HELP = "encrypt it with `age`"
CHECK = "check --age-identity, or age_identities in statecfg.toml"
NO_IDENTITY = "name a file with an identity with --age-identity, or as age_identities in statecfg.toml"
_IDENTITY = re.compile(rb"^\s*(AGE-SECRET-KEY-1[A-Z0-9]+)\s*$", re.MULTILINE)


def is_text(value: str) -> bool:
    """Return whether a value is an encrypted text, and not the path of a file."""
    return value.lstrip().startswith(ARMOR.decode())


def check(data: bytes) -> SecretFailure | None:
    """Return the cause if data is not encrypted by age. It needs no key."""
    if data.lstrip().startswith(ARMOR):
        return None if _header(data).startswith(BINARY) else SecretFailure("is damaged", HELP)
    return None if data.startswith(BINARY) else SecretFailure("is not encrypted by age", HELP)


def _header(data: bytes) -> bytes:
    """Return the start of encrypted data without its armor."""
    if data.startswith(BINARY):
        return data[:4096]
    lines = data.strip().splitlines()[1:-1]
    try:
        return base64.b64decode(b"".join(lines), validate=True)[:4096]
    except binascii.Error:
        return b""


def opened(ring: Ring, data: bytes, what: str) -> Opened | SecretFailure:
    """Return decrypted data.

    :param data: what age encrypted
    :param what: its name in a question to the user
    """
    pyrage = _library()
    if isinstance(pyrage, SecretFailure):
        return pyrage
    if _header(data).startswith(BINARY + b"-> scrypt "):
        return _by_passphrase(ring, pyrage, data, what)
    identities: list[Any] = []
    for path in ring.keys.age_identities:
        found = ring.once(("identities", path), partial(_identities, ring, pyrage, path))
        if isinstance(found, SecretFailure):
            return SecretFailure(f"can't be opened: {found.detail}", found.help)
        identities += found
    if not identities:
        return SecretFailure("can't be opened without an identity", NO_IDENTITY)
    try:
        return Opened(pyrage.decrypt(data, identities))
    except pyrage.DecryptError as error:
        if "No matching keys" in str(error):
            which = "the identity" if len(identities) == 1 else f"none of the {len(identities)} identities"
            verb = "does not match" if len(identities) == 1 else "matches"
            return SecretFailure(f"can't be opened: {which} {verb}", NO_IDENTITY)
        return SecretFailure("can't be opened: it is damaged", HELP)


def _library() -> Any:
    try:
        return import_module("pyrage")
    except ImportError:
        return SecretFailure("can't be opened: pyrage is not installed", "pip install 'statecfg[age]'")


def _by_passphrase(ring: Ring, pyrage: Any, data: bytes, what: str) -> Opened | SecretFailure:
    passphrase = ring.ask(f"passphrase of {what}")
    if not isinstance(passphrase, Secret):
        help_text = "encrypt it for an identity: `age -r RECIPIENT`, then name the identity with --age-identity"
        return SecretFailure(f"can't be opened: {passphrase.detail}", passphrase.help or help_text)
    try:
        return Opened(pyrage.passphrase.decrypt(data, passphrase._bare()))
    except pyrage.DecryptError:
        return SecretFailure("can't be opened: the passphrase is wrong", "run the command again")


def _identities(ring: Ring, pyrage: Any, path: str) -> list[Any] | SecretFailure:
    """Return the identities in a file."""
    try:
        with open(path, "rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            found = Opened(stream.read(LARGEST + 1))
    except OSError as error:
        return SecretFailure(f"{path} can't be read: {error.strerror}", CHECK)
    if len(found.data) > LARGEST:
        return SecretFailure(f"{path} is larger than {LARGEST:,} bytes", CHECK)
    if mode & 0o004:
        return SecretFailure(f"{path} can be read by everyone (mode {stat.S_IMODE(mode):04o})", f"chmod 0600 {path}")
    if check(found.data) is None:
        protected = _by_passphrase(ring, pyrage, found.data, path)
        if isinstance(protected, SecretFailure):
            return SecretFailure(f"{path} {protected.detail}", protected.help)
        found = protected
    try:
        if b"-----BEGIN" in found.data:
            return [pyrage.ssh.Identity.from_buffer(found.data)]
        identities = [pyrage.x25519.Identity.from_str(text.decode()) for text in _IDENTITY.findall(found.data)]
    except pyrage.IdentityError as error:
        if "must be decrypted" in str(error):
            return SecretFailure(
                f"{path} is an SSH key with a passphrase", "use an SSH key without one, or an identity of age"
            )
        return SecretFailure(f"{path} has an invalid identity", "write the path of a file that `age-keygen` made")
    return identities or SecretFailure(f"{path} has no identity", "write the path of a file that `age-keygen` made")
