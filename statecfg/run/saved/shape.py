"""The shape of a saved plan: the keys and types that all code that reads a plan relies on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecfg.problems import inputs
from statecfg.remote.graph.names import HostStatus, Outcome

# A type, a set of allowed strings, `[shape]` for a list, `(shape,)` for a map with any keys, or a map of key → shape.
# The value of `?key` may be missing or null.
Shape = Any

_ACTION = {"op": str, "args": dict}
_NODE = {
    "name": str,
    "outcome": frozenset(Outcome.ALL),
    "changes": [{"object": str, "field": str, "?diff": str}],
    "actions": [_ACTION],
    "?position": str,
    "?reason": str,
    "?state": str,
    "?known_after": str,
    "?declared": dict,
    "?excluded": str,
    "?item_of": str,
    "?shutdown_first": _ACTION,
    "?triggered_by": [str],
    "?leaves": [str],
}
_HOOK = {"hook": str, "?remote": str, "?relation": str}
_REPORT = {
    "status": frozenset(HostStatus.ALL),
    "summary": (int,),
    "?peer": str,
    "?layers": [[_NODE]],
    "?removals": [[_NODE]],
    "?left": [[_NODE]],
    "?fingerprints": (str,),
    "?units": [{"unit": str, "?due": [_HOOK]}],
    "?hooks": [{"hook": str, "event": str, "name": str, "where": str}],
    "?owed": [{"node": str, "cause": str, "?run": str}],
    "?shutdown": [_ACTION],
    "?warnings": [str],
    "?error": {"summary": str},
    "?holder": dict,
    "?differs": [str],
}
PLAN: Shape = {
    "run": str,
    "made": {"at": str, "by": str, "?commit": str, "?modified": [str]},
    "project": str,
    "playbook": str,
    "directory": str,
    "store": str,
    "salt": str,
    "executor": str,
    "choices": {
        "tags": [str],
        "extra_vars": [str],
        "prune": bool,
        "?inventory": str,
        "?limit": str,
        "?become": bool,
        "?become_user": str,
        "?user": str,
        "?ssh_config": str,
    },
    "inputs": [{"kind": frozenset(inputs.CATEGORIES), "path": str, "sha256": str}],
    "secrets": ({"salt": str, "scrypt": str},),
    "hosts": (
        {"definition": str, "nodes": (str,), "inventory": {"vars": (str,)}, "report": _REPORT, "?facts": (str,)},
    ),
}


def misshapen(value: Any, shape: Shape = PLAN, where: str = "") -> str:
    """Return the path of the first part that is missing or has the wrong shape, such as `hosts.web1.report`, or ""."""
    if isinstance(shape, type | frozenset):
        right = type(value) is shape if isinstance(shape, type) else isinstance(value, str) and value in shape
        return "" if right and not (isinstance(value, str) and "\0" in value) else where or "the whole"
    if not isinstance(value, list if isinstance(shape, list) else dict):
        return where or "the whole"
    for name, item, part in _parts(value, shape):
        if path := misshapen(item, part, f"{where}.{name}".removeprefix(".")):
            return path
    return ""


def _parts(value: Any, shape: Shape) -> list[tuple[str, Any, Shape]]:
    if isinstance(shape, list):
        return [(str(number), item, shape[0]) for number, item in enumerate(value)]
    if isinstance(shape, tuple):
        return [(str(name), item, shape[0]) for name, item in value.items()]
    assert isinstance(shape, Mapping)
    needed = [(key, part) for key, part in shape.items() if key[0] != "?" or value.get(key[1:]) is not None]
    return [(key.removeprefix("?"), value.get(key.removeprefix("?")), part) for key, part in needed]
