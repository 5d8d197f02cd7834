"""The packages that hosts know: those of a small Debian. Their files are those of all packages of this machine.

dpkg and apt read the records of all packages and the names of all their files whenever they do something. With the 850
packages of a machine for tests, most of their CPU time is for packages that no test needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

STATUS = Path("/var/lib/dpkg/status")
ALWAYS = {"openssh-server", "python3", "sudo"}  # besides the essential, required and important packages


def few_packages() -> str:
    """Return the part of dpkg's status file that describes these packages and all that they depend on."""
    records = STATUS.read_text(encoding="utf-8").split("\n\n")
    by_name: dict[str, list[str]] = {}
    for record in records:
        for name in _names(record, "Package", "Provides"):
            by_name.setdefault(name, []).append(record)
    kept: set[str] = set()
    pending = [record for record in records if _wanted(record)]
    while pending:
        record = pending.pop()
        if record not in kept:
            kept.add(record)
            for name in _names(record, "Pre-Depends", "Depends"):
                pending += by_name.get(name, [])
    return "\n\n".join(record for record in records if record in kept) + "\n"


def _wanted(record: str) -> bool:
    priority = re.search(r"^Priority: (required|important)$|^Essential: yes$", record, re.MULTILINE)
    return bool(priority) or not ALWAYS.isdisjoint(_names(record, "Package"))


def _names(record: str, *fields: str) -> Iterator[str]:
    """Return the names of packages in fields of a record, without versions and architectures."""
    for found in re.findall(rf"^(?:{'|'.join(fields)}): (.*)", record, re.MULTILINE):
        yield from re.findall(r"(?:^|[,|]) *([a-z0-9][a-z0-9+.-]*)", found)
