"""Lets container-service-extension, which was written for older versions, run on Python 3.11 and later.

Its dataclasses have instances of other dataclasses as defaults. Newer versions refuse defaults that are not hashable.
It also expects that a formatted member of a string enumeration gives its value.
"""

from __future__ import annotations

import dataclasses
import enum

_dataclass = dataclasses.dataclass


def _hashed(cls):
    if cls.__hash__ is None:
        cls.__hash__ = object.__hash__
    return cls


def _with_hash(cls=None, /, **options):
    if cls is None:
        return lambda found: _hashed(_dataclass(**options)(found))
    return _hashed(_dataclass(cls, **options))


dataclasses.dataclass = _with_hash


def _as_value(self, spec):
    return format(self.value if isinstance(self, str) else str(self), spec)


enum.Enum.__format__ = _as_value
