"""Collect the facts that a definition uses, on the host. This only reads: it takes no lock and writes nothing.

`statecfg.facts.catalogue` describes the facts. The session calls `told`.
Imports `remote.graph` and `remote.machine`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Dict, Iterable, List, Mapping, Tuple

OWN = "own."  # the names of the project's own facts begin with this

# Module → its facts. Each fact is a function of the module without parameters.
_MODULES = {
    "statecfg.remote.facts.system": (
        *("architecture", "cpus", "hostname", "init", "kernel", "machine_id", "memory", "os", "python", "swap"),
        *("timezone", "user", "users", "virtualization"),
    ),
    "statecfg.remote.facts.installed": ("packages",),
    "statecfg.remote.facts.network": ("addresses", "ipv4", "ipv6", "routes"),
    "statecfg.remote.facts.storage": ("disks", "mounts"),
}
NAMES = {name: module for module, names in _MODULES.items() for name in names}


def told(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of the frame `facts`.

    :param request: `names`, and the sources of the project's `own` facts
    """
    values, failed = collect(request["names"], request["own"])
    return {"values": values, "failed": failed}


def collect(names: Iterable[str], sources: Mapping[str, List[str]]) -> Tuple[Mapping[str, Any], Dict[str, str]]:
    """Return the values of facts by name, and why facts failed by name.

    :param names: names of facts; those of the project's own facts begin with `OWN`
    :param sources: name of an own fact → its file, and its source
    """
    values: Dict[str, Any] = {}
    failed: Dict[str, str] = {}
    for name in names:
        try:
            if name.startswith(OWN):
                from statecfg.remote.facts.own import run

                values[name] = run(*sources[name[len(OWN) :]])
            elif name in NAMES:
                values[name] = getattr(import_module(NAMES[name]), f"{name}_fact")()
            else:
                failed[name] = "this executor does not know the fact"
        except Exception as problem:
            failed[name] = str(problem) or repr(problem)
    return values, failed
