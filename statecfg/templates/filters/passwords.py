"""Hashes of passwords for files such as /etc/shadow."""

from __future__ import annotations

from typing import Any

from statecfg.templates.filters.choices import chosen
from statecfg.templates.filters.limits import Refused

# Name of an algorithm → its name in passlib, and the maximum number of rounds that still takes about a second.
_ALGORITHMS = {
    "sha512": ("sha512_crypt", 1_000_000),
    "sha256": ("sha256_crypt", 1_000_000),
    "bcrypt": ("bcrypt", 14),
    "blowfish": ("bcrypt", 14),
    "md5": ("md5_crypt", 0),
}


def password_hash(password: Any, hashtype: str = "sha512", salt: str | None = None, rounds: int | None = None) -> str:
    """Return the hash of a password: `sha512`, `sha256`, `bcrypt` or `md5`. The salt is required."""
    name, most = chosen(hashtype, _ALGORITHMS, "algorithm for passwords")
    if not salt:
        help = "pass salt='…', for example from a secret: a random salt would change the hash in every run"
        raise Refused("password_hash needs a salt", help)
    if rounds is not None and not 0 < rounds <= most:
        raise Refused(f"{hashtype} takes at most {most:,} rounds" if most else f"{hashtype} takes no rounds")
    import passlib.hash  # type: ignore[import-untyped]  # it has no stubs

    algorithm = getattr(passlib.hash, name)
    options: dict[str, Any] = {"salt": salt} if rounds is None else {"salt": salt, "rounds": rounds}
    try:
        return str(algorithm.using(**options).hash(str(password)))
    except (ValueError, TypeError) as error:
        raise Refused(f"{hashtype}: {error}") from None
