"""SHA-256. Loading OpenSSL's takes as long as hashing a megabyte with Python's own, so small data uses that one."""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import _Hash
    from typing import Callable

LARGE = 64 << 10  # bytes from which OpenSSL's is used


def _own() -> Callable[..., _Hash]:
    """Return Python's own constructor, or OpenSSL's if a Python has no other one."""
    name = "_sha256" if sys.version_info < (3, 12) else "_sha2"
    try:
        made: Callable[..., _Hash] = import_module(name).sha256
    except ImportError:
        from hashlib import sha256 as made
    return made


own = _own()


def sha256(data: bytes = b"", size: int = 0) -> _Hash:
    """Return a hash object.

    :param data: the first data
    :param size: the bytes that it will get in total, if that is known
    """
    if size >= LARGE or len(data) >= LARGE or "hashlib" in sys.modules:
        from hashlib import sha256 as faster

        return faster(data)
    return own(data)
