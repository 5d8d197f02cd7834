"""Hosts whose packages are those of zypper. Their programs come from Debian's packages of it.

Debian can't install zypper beside dnf's plugins, so this module fetches the packages and extracts them into a layer.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from tests.lab import layer, owner
from tests.lab.host import Host
from tests.lab.light import light_hosts
from tests.lab.owner import Unavailable
from tests.lab.rpm import RpmRepository, rpm_layer, with_release

PACKAGES = ("zypper", "libzypp-config", "libzypp-common", "libzypp-bin")
MOVED = ("bin", "sbin", "lib", "lib64")  # links to directories in /usr; a package may contain such a directory
HIDDEN = ["usr/bin/dnf", "usr/bin/dnf-3"]


def suse_host(repository: RpmRepository) -> Host:
    """Start a light host with zypper, whose only package is its release. See `rpm_host`.

    Raises `Unavailable` if this machine can't run it, or if it can't fetch the packages.
    """
    owner.require_root_hosts()
    above = owner.base() / "layer-opensuse"
    if not above.exists():
        programs = _programs(owner.base() / "zypper")
        rpm_layer("opensuse")
        layer.hide(above, HIDDEN)
        for path in ("var/lib/zypp", "var/cache/zypp", "etc/zypp", "etc/zypp/repos.d"):
            layer.directory(above, path)
        shutil.copytree(programs, above, symlinks=True, dirs_exist_ok=True)
    (host,) = light_hosts(1, prefix="opensuse", over=above)
    return with_release(host, "opensuse", repository)


def _programs(scratch: Path) -> Path:
    """Return a directory with zypper and those of its packages that this machine lacks."""
    tree, fetched = scratch / "tree", scratch / "fetched"
    for directory in (tree / "usr", fetched):
        directory.mkdir(parents=True)
    simulated = _apt(["-s", "--no-install-recommends", "install", *PACKAGES], fetched)
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
    shutil.rmtree(fetched)
    return tree


def _apt(arguments: list[str], directory: Path) -> str:
    """Run apt-get without changing this machine."""
    done = subprocess.run(["apt-get", "-q", *arguments], cwd=directory, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(f"apt-get can't fetch zypper; try apt-get update: {done.stderr.strip()}")
    return done.stdout
