"""Hosts whose packages are those of zypper. Their programs come from Debian's packages of it.

Debian can't install zypper beside dnf's plugins, so this module fetches the packages and extracts them into a layer.
"""

from __future__ import annotations

import shutil

from tests.lab import debs, layer, owner
from tests.lab.host import Host
from tests.lab.light import light_hosts
from tests.lab.rpm import RpmRepository, rpm_layer, with_release

PACKAGES = ("zypper", "libzypp-config", "libzypp-common", "libzypp-bin")
HIDDEN = ["usr/bin/dnf", "usr/bin/dnf-3"]


def suse_host(repository: RpmRepository) -> Host:
    """Start a light host with zypper, whose only package is its release. See `rpm_host`.

    Raises `Unavailable` if this machine can't run it, or if it can't fetch the packages.
    """
    owner.require_root_hosts()
    above = owner.base() / "layer-opensuse"
    if not above.exists():
        programs = debs.extracted(PACKAGES, owner.base() / "zypper")
        rpm_layer("opensuse")
        layer.hide(above, HIDDEN)
        for path in ("var/lib/zypp", "var/cache/zypp", "etc/zypp", "etc/zypp/repos.d"):
            layer.directory(above, path)
        shutil.copytree(programs, above, symlinks=True, dirs_exist_ok=True)
    (host,) = light_hosts(1, prefix="opensuse", over=above)
    return with_release(host, "opensuse", repository)
