"""LVM: the facets with physical volumes, volume groups and logical volumes, and what their checks share."""

from __future__ import annotations

import json
from typing import Any

from statecfg.remote.graph.model import CheckError
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.machine.world import World
from statecfg.resources.shared import paths, records

PROGRAMS = ("/usr/sbin/lvm", "/sbin/lvm")
TIMEOUT = 600.0
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def _rows(host: World, program: str, section: str, *columns: str) -> list[dict[str, str]]:
    """Return the rows that a program of LVM prints; none if LVM is not installed.

    :raises CheckError: if it fails; an empty result would mean that LVM has no volumes
    """
    if all(host.stat(path) is None for path in PROGRAMS):
        return []
    options = ["--reportformat", "json", "--units", "b", "--nosuffix", "--options", ",".join(columns)]
    probe = host.probe([program, *options], timeout=TIMEOUT)
    try:
        if probe.status:
            raise ValueError(probe.errors.decode("utf-8", "replace").strip())
        rows = json.loads(probe.text)["report"][0][section]
        return [{column: row[column] for column in columns} for row in rows]
    except (ValueError, LookupError, TypeError) as problem:
        raise CheckError(f"{program} does not list the volumes: {str(problem) or 'no output'}") from None


@facet("lvm_device", volatile=True)
def devices(host: World) -> dict[str, records.Fields]:
    """Load the physical volumes: device → `group`, "" for a free one.

    :raises CheckError: if pvs fails
    """
    rows = _rows(host, "pvs", "pv", "pv_name", "vg_name")
    # LVM prints links, such as /dev/mapper/disk; the name of a missing device is not a path.
    names = (row["pv_name"] for row in rows)
    found = [paths.followed(host, name) if name.startswith("/") else name for name in names]
    return {name: {"group": row["vg_name"]} for name, row in zip(found, rows)}


@facet("lvm_group", volatile=True)
def groups(host: World) -> dict[str, records.Fields]:
    """Load the volume groups: name → `extent` and `free` in bytes.

    :raises CheckError: if vgs fails
    """
    rows = _rows(host, "vgs", "vg", "vg_name", "vg_extent_size", "vg_free")
    return {row["vg_name"]: {"extent": int(row["vg_extent_size"]), "free": int(row["vg_free"])} for row in rows}


@facet("lvm_volume", volatile=True)
def volumes(host: World) -> dict[str, dict[str, Any]]:
    """Load the logical volumes: group/name → `present` and `size` in bytes. Source: lvs(8).

    `open` if something uses the volume, and `carries`: the snapshots and thin volumes that a removal would also remove.

    :raises CheckError: if lvs fails
    """
    rows = _rows(host, "lvs", "lv", "vg_name", "lv_name", "lv_size", "lv_attr", "origin", "pool_lv")
    carried: dict[str, list[str]] = {}
    for row in rows:
        column = {"s": "origin", "S": "origin", "v": "pool_lv", "V": "pool_lv"}.get(row["lv_attr"][:1])
        if column is not None and row[column]:
            base = f"{row['vg_name']}/{row[column].strip('[]')}"
            carried.setdefault(base, []).append(f"{row['vg_name']}/{row['lv_name']}")
    loaded: dict[str, dict[str, Any]] = {
        f"{row['vg_name']}/{row['lv_name']}": {
            "present": True,
            "size": int(row["lv_size"]),
            **({"open": True} if row["lv_attr"][5:6] == "o" else {}),
        }
        for row in rows
    }
    for volume, names in carried.items():
        loaded.get(volume, {})["carries"] = sorted(names)
    return loaded


def require_program(world: World) -> None:
    """Check that LVM is installed.

    :raises Unknown: if a required node may install it
    :raises CheckError: if it is not
    """
    if all(world.stat(path) is None for path in PROGRAMS):
        raise CheckError("LVM is not installed; declare package: lvm2")


def require_group(world: World, name: str) -> records.Fields:
    """Return the entry of a volume group.

    :raises CheckError: if it does not exist
    """
    entry = world.entry("lvm_group", name)
    if entry is None:
        near = paths.nearest(name, world.facet("lvm_group"))
        raise CheckError(f"there is no volume group {name}{near}; declare it and require it")
    return entry


def bytes_of(size: str) -> int:
    """Return the bytes of a size such as ``10G``."""
    return int(size[:-1]) * UNITS[size[-1]]
