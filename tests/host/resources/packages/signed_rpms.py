"""Repositories of rpm with signed packages."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests import lab
from tests.lab.rpm import RpmRepository

KEYS = ("key.asc", "key.gpg")  # the public key as text and binary


def require_programs() -> None:
    """Skip the test if this machine can't sign packages."""
    if not shutil.which("gpg") or not shutil.which("rpmsign"):
        pytest.skip("not run on this machine: there is no gpg or no rpmsign (Debian: gnupg, rpm)")


def sign(repository: RpmRepository, home: Path, *, index: bool = False) -> None:
    """Sign the packages with a new key, index them, and put the public key next to them.

    :param home: the directory of gpg, which does not exist yet
    :param index: sign the index, too
    """
    home.mkdir(mode=0o700)
    gpg = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--yes", "--passphrase", ""]
    try:
        subprocess.run([*gpg, "--quick-gen-key", "Tests <tests@example.org>", "rsa3072", "sign", "never"], check=True)
        values = (f"_gpg_path {home}", "_gpg_name tests@example.org", f"__gpg {shutil.which('gpg')}")  # rpm wants gpg2
        defines = [word for value in values for word in ("--define", value)]
        packages = sorted(map(str, repository.directory.rglob("*.rpm")))
        subprocess.run(["rpmsign", "--addsign", *defines, *packages], check=True, capture_output=True)
        repository.index()
        if index:
            path = str(repository.directory / "repodata/repomd.xml")
            subprocess.run([*gpg, "--armor", "--output", f"{path}.asc", "--detach-sign", path], check=True)
        for name, armor in zip(KEYS, (["--armor"], []), strict=True):
            subprocess.run([*gpg, *armor, "--output", str(repository.directory / name), "--export"], check=True)
    finally:
        subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "gpg-agent"], check=True)


def copy_keys(host: lab.Host, place: str, project: Path) -> None:
    """Copy the keys of a repository on a host to the files of a project."""
    (project / "files").mkdir()
    for name in KEYS:
        shutil.copy(host.path(f"{place}/{name}"), project / "files" / name)
