"""Lets container-service-extension be imported by Python 3.11 and later.

Its dataclasses have instances of other dataclasses as defaults, which these refuse unless they can be hashed.
"""

from __future__ import annotations

import dataclasses

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
