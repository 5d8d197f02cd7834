"""Compares the key of a host with the key that it had earlier."""

from __future__ import annotations

HOST_KEY = "host key"  # a difference between host keys begins with this


def other_key(planned: str, now: str) -> bool:
    """Return whether two host keys differ although they have the same type. A host has one key of each type.

    :param planned: the host key in the saved plan, as `TYPE FINGERPRINT`
    :param now: the host key that the host uses now, in the same form
    """
    key_type, _, fingerprint = planned.partition(" ")
    type_now, _, fingerprint_now = now.partition(" ")
    return bool(fingerprint) and key_type == type_now and fingerprint != fingerprint_now
