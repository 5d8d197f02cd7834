"""The fact about installed packages, from the database of the host's package manager."""

from __future__ import annotations

import os
from typing import Dict, Iterator, Tuple

from statecfg.remote.facts.system import text

_DPKG = "/var/lib/dpkg/status"
_APK = ("/lib/apk/db/installed", "/usr/lib/apk/db/installed")
_PACMAN = "/var/lib/pacman/local"
_RPM = ("/usr/lib/sysimage/rpm", "/var/lib/rpm")
_RPM_FORMAT = "%{NAME} %|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\\n"
_LONGEST = 60  # seconds that rpm may take


def packages_fact() -> Dict[str, str]:
    """Return name → version of the installed packages."""
    if os.path.exists(_DPKG):
        return dict(_dpkg())
    for path in _APK:
        if os.path.exists(path):
            return dict(_apk(path))
    if os.path.isdir(_PACMAN):
        return dict(_pacman())
    if any(map(os.path.isdir, _RPM)):
        return dict(_rpm())
    raise OSError("the host has no database of dpkg, rpm, apk or pacman")


def _dpkg() -> Iterator[Tuple[str, str]]:
    for paragraph in text(_DPKG).split("\n\n"):
        fields = {}
        for entry in paragraph.splitlines():
            key, colon, value = entry.partition(": ")
            if colon and not entry.startswith(" "):
                fields[key] = value
        if fields.get("Status", "").endswith(" installed"):
            yield fields["Package"], fields.get("Version", "")


def _apk(path: str) -> Iterator[Tuple[str, str]]:
    for paragraph in text(path).split("\n\n"):
        fields = {entry[:1]: entry[2:] for entry in paragraph.splitlines() if entry[1:2] == ":"}
        if "P" in fields:
            yield fields["P"], fields.get("V", "")


def _pacman() -> Iterator[Tuple[str, str]]:
    for folder in sorted(os.listdir(_PACMAN)):  # NAME-VERSION-RELEASE
        parts = folder.rsplit("-", 2)
        if len(parts) == 3:
            yield parts[0], "-".join(parts[1:])


def _rpm() -> Iterator[Tuple[str, str]]:
    import subprocess

    argv = ["rpm", "-qa", "--qf", _RPM_FORMAT]
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=_LONGEST, check=False
    )
    if done.returncode:
        raise OSError(f"rpm -qa failed: {done.stderr.decode('utf-8', 'replace').strip()[:500]}")
    for entry in sorted(done.stdout.decode("utf-8", "replace").splitlines()):
        name, _, version = entry.partition(" ")
        yield name, version
