"""Lets container-service-extension run on Python 3.11 and later, where it was written for older ones.

Its dataclasses have instances of other dataclasses as defaults, which these Pythons refuse unless they can be hashed;
and it formats members of enumerations of texts as these texts.
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
