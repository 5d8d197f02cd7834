"""Unit files of mounts: one of an administrator wins over the unit that systemd makes from /etc/fstab."""

from __future__ import annotations

import re
from collections.abc import Mapping

from statecfg.remote.graph.model import HostNode
from statecfg.remote.machine.world import World
from statecfg.resources.services import systemd, unit_sources
from statecfg.resources.shared import sources

_WEAKER = "/run/systemd/generator"  # from here on, units are weaker than those of fstab
_LINKS = {"UUID=": "by-uuid", "LABEL=": "by-label", "PARTUUID=": "by-partuuid", "PARTLABEL=": "by-partlabel"}


def unit_of(path: str) -> str:
    """Return the name of the unit for a directory. Source: systemd-escape(1)."""
    text = "/".join(word for word in path.split("/") if word)
    return (re.sub(r"\A\.|[^A-Za-z0-9:_./]", _escaped, text).replace("/", "-") or "-") + ".mount"


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"\\x{byte:02x}" for byte in found[0].encode())


def effect(node: HostNode, world: World) -> str:
    """Return the unit file because of which systemd does not mount what the node declares; "" if there is none."""
    attrs = node.attrs
    if attrs.get("absent") or world.apparent(systemd.RUNNING) is None:
        return ""
    unit = unit_of(attrs["path"])
    stronger = unit_sources.FOLDERS[: unit_sources.FOLDERS.index(_WEAKER)]
    main = next((f"{folder}/{unit}" for folder in stronger if world.stat(f"{folder}/{unit}") is not None), "")
    if main and sources.target(world, main) == "/dev/null":
        return f"systemd does not mount {attrs['path']} at boot: {main} masks {unit}"
    drop_ins = [path for path in unit_sources.read(world, unit) if f"/{unit}.d/" in path or "/mount.d/" in path]
    wanted = {"What": attrs["source"], "Type": attrs["fstype"], "Options": ",".join(attrs.get("mount_options") or ())}
    files = [main, *drop_ins] if main else drop_ins
    lines = [line for path in files for line in unit_sources.lines_of(world, path) if line.section == "Mount"]
    for line in lines:
        if line.name in wanted and not _same(line, wanted):
            return f"systemd mounts {attrs['path']} with {line.name}={line.value}: {line.place} wins over /etc/fstab"
    if main and wanted["Options"] not in ("", "defaults") and not any(line.name == "Options" for line in lines):
        return f"systemd mounts {attrs['path']} without {wanted['Options']}: {main} wins over /etc/fstab"
    return ""


def _same(line: unit_sources.UnitLine, wanted: Mapping[str, str]) -> bool:
    text = wanted[line.name]
    if line.name == "Options":
        return {*line.value.split(",")} - {"defaults", ""} == {*text.split(",")} - {"defaults", ""}
    for prefix, folder in _LINKS.items():
        if line.name == "What" and text.startswith(prefix):
            text = f"/dev/disk/{folder}/{text[len(prefix) :]}"
    return line.value in (text, "") or (line.name == "Type" and "auto" in (line.value, text))
