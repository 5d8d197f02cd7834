"""The files of Debian packages that this machine lacks, for hosts. Nothing is installed on this machine."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.lab.owner import Unavailable

MOVED = ("bin", "sbin", "lib", "lib64")  # links to directories in /usr; a package may contain such a directory


def extracted(packages: Sequence[str], scratch: Path) -> Path:
    """Return a directory with the files of packages, and of those of their dependencies that this machine lacks.

    Parameters: `scratch`, a new directory. Errors: `Unavailable` if apt-get can't fetch the packages.
    """
    tree, fetched = scratch / "tree", scratch / "fetched"
    for directory in (tree / "usr", fetched):
        directory.mkdir(parents=True)
    simulated = _apt(["-s", "--no-install-recommends", "install", *packages], fetched)
    names = re.findall(r"^Inst (\S+)", simulated, re.M)
    _apt(["download", *names], fetched)
    for package in sorted(fetched.glob("*.deb")):
        one = scratch / package.name
        subprocess.run(["dpkg-deb", "-x", str(package), str(one)], check=True)
        for name in MOVED:
            if (one / name).is_dir():
                shutil.copytree(one / name, one / "usr" / name, symlinks=True, dirs_exist_ok=True)
                shutil.rmtree(one / name)
        shutil.copytree(one, tree, symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(one)
    shutil.rmtree(fetched)
    return tree


def _apt(arguments: list[str], directory: Path) -> str:
    """Run apt-get without changing this machine."""
    done = subprocess.run(["apt-get", "-q", *arguments], cwd=directory, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"apt-get {arguments[0]} failed; try apt-get update: {done.stderr.strip()}")
    return done.stdout
