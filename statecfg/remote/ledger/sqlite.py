"""The parts of `sqlite3` that the ledger uses.

The package itself also imports `datetime`, which takes as long as opening a ledger.
"""

from __future__ import annotations

try:
    from _sqlite3 import Connection, DatabaseError, connect
except ImportError:  # another implementation of Python
    from sqlite3 import Connection, DatabaseError, connect

__all__ = ["Connection", "DatabaseError", "connect"]
