"""Rules for the attributes of conditions. Only the controller uses this module."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from statecfg.remote.graph.wrong_values import PublicSecret, Wrong, show

# The conditions, and the attributes that each of them can have.
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "path": ("contains", "gone"),
    "port": ("address",),
    "url": ("contains", "status", "verify_certificate"),
    "unit": (),
    "command": (),
}


def check(attrs: Mapping[str, Any]) -> None:
    """Check that a node has one condition, and only attributes that belong to it.

    :raises ValueError: if not
    """
    given = [name for name in _OPTIONS if attrs.get(name) is not None]
    if len(given) != 1:
        raise ValueError("exactly one of %s is required" % ", ".join(_OPTIONS))
    (kind,) = given
    for name in sorted({option for options in _OPTIONS.values() for option in options}):
        idle = attrs.get(name) is None or attrs[name] == (name == "verify_certificate")
        if not idle and name not in _OPTIONS[kind]:
            raise ValueError(f"{name} has no effect with {kind}")
    if attrs.get("gone") and attrs.get("contains") is not None:
        raise ValueError("gone can't be combined with contains")
    for name in ("command", *(("contains",) if kind == "url" else ())):
        if hasattr(attrs.get(name), "reveal"):
            raise PublicSecret("read it from a file of the host in a script", name)
    if kind == "url" and not re.match(r"https?://[^/\s]+", attrs["url"]):
        raise Wrong(f"{show(attrs['url'])} is not a URL of HTTP", "write a URL such as http://127.0.0.1:8080/health")
    for status in attrs.get("status") or ():
        if not 100 <= status <= 599:
            raise Wrong(f"{status} is not a status of HTTP", "write numbers from 100 to 599")
