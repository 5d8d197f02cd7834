"""Compares the host key of a host with an earlier one."""

from __future__ import annotations

from statecfg.remote.graph.errors import StatecfgError
from statecfg.run.report_model import HostError

HOST_KEY = "host key"  # a difference between host keys begins with this
OTHER_HOST: HostError = {
    "summary": "this is not the host of the plan; nothing was changed",
    "detail": "Its host key differs.",
    "hint": "If the host was reinstalled, plan again, review the plan, and apply it.",
}


class OtherHost(StatecfgError):
    """The host key differs from the saved plan. statecfg sent nothing to the host."""


def other_key(planned: str, now: str) -> bool:
    """Return whether two host keys differ although they have the same type. A host has one key of each type.

    :param planned: the host key in the saved plan, as `TYPE FINGERPRINT`
    :param now: the host key that the host uses now, in the same form
    """
    key_type, _, fingerprint = planned.partition(" ")
    type_now, _, fingerprint_now = now.partition(" ")
    return bool(fingerprint) and key_type == type_now and fingerprint != fingerprint_now
