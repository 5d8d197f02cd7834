"""Hosts whose packages are those of pacman, and repositories for them. pacman is Debian's package of it.

Such a host sees the files of this machine without the database and the programs of dpkg. Its own database of pacman is
empty at first, and `/etc/os-release` names Arch Linux.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.lab import layer, owner
from tests.lab.host import Host
from tests.lab.light import light_hosts
from tests.lab.owner import Unavailable
from tests.lab.rpm import DEBIAN

PLACE = "/srv/pacman"  # the path of the repository on hosts
RELEASE = 'NAME="Arch Linux"\nID=arch\nBUILD_ID=rolling\n'
CONFIGURATION = "[options]\nArchitecture = auto\nSigLevel = Never\n"
HIDDEN = ["var/lib/pacman", "var/cache/pacman", "etc/pacman.conf", "etc/pacman.d"]


class PacmanRepository:
    """A directory with packages and their index, of which each package has its newest version."""

    def __init__(self, directory: Path, name: str = "tests") -> None:
        """Create the directory with an empty repository. Raises `Unavailable` if a program is missing."""
        for program, package in (("repo-add", "pacman-package-manager"), ("bsdtar", "libarchive-tools")):
            if not shutil.which(program):
                raise Unavailable(f"there is no {program} (Debian: {package})")
        self.directory, self.name = directory, name
        self.scratch = directory.with_name(f"{directory.name}-build")
        directory.mkdir(parents=True, exist_ok=True)

    def add(
        self,
        name: str,
        version: str,
        *,
        files: Mapping[str, tuple[str, int]] | None = None,
        backup: Sequence[str] = (),
        script: str = "",
        **related: str,
    ) -> Path:
        """Build a package, and add it to the index.

        Parameters: `files`, a map from absolute paths to texts and modes; `backup`, those of them that pacman must not
        overwrite; `script`, functions such as `post_install`; `related`, fields such as `depend`, `optdepend`,
        `conflict` and `provides`. Result: the path of the package.
        """
        tree = self.scratch / f"{name}-{version}"
        tree.mkdir(parents=True)
        for path, (text, mode) in (files or {}).items():
            target = tree / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
            target.chmod(mode)
        fields = [("pkgname", name), ("pkgver", f"{version}-1"), ("pkgdesc", "for tests"), ("builddate", "1")]
        fields += [("size", "1"), ("arch", "any"), *related.items(), *(("backup", path.lstrip("/")) for path in backup)]
        (tree / ".PKGINFO").write_text("".join(f"{key} = {value}\n" for key, value in fields))
        if script:
            (tree / ".INSTALL").write_text(script)
        package = self.directory / f"{name}-{version}-1-any.pkg.tar.gz"
        names = sorted(entry.name for entry in tree.iterdir())
        subprocess.run(["bsdtar", "-C", str(tree), "--uid=0", "--gid=0", "-czf", str(package), *names], check=True)
        index = self.directory / f"{self.name}.db.tar.gz"
        subprocess.run(["repo-add", "--quiet", str(index), str(package)], check=True, capture_output=True)
        return package

    def copy(self, host: Host, place: str = PLACE) -> None:
        """Copy the repository to a host, instead of what is there."""
        host.run(["rm", "-rf", place])
        shutil.copytree(self.directory, host.path(place), symlinks=True)

    def section(self, place: str = PLACE) -> str:
        """Return the section of pacman's configuration that uses the repository."""
        return f"[{self.name}]\nServer = file://{place}\n"


def arch_host() -> Host:
    """Start a light host with pacman, without any package. Raises `Unavailable` if this machine can't run it."""
    owner.require_root_hosts()
    above = owner.base() / "layer-arch"
    if not above.exists():
        above.mkdir(mode=0o755)
        layer.hide(above, [*DEBIAN, *HIDDEN])
        for path in ("var/lib/pacman", "var/cache/pacman", "etc/pacman.d"):
            layer.directory(above, path)
        for path in ("var/lib/pacman/local", "var/lib/pacman/sync", "var/cache/pacman/pkg"):
            (above / path).mkdir(mode=0o755)
        if (above / "etc/pacman.conf").is_char_device():
            (above / "etc/pacman.conf").unlink()
        layer.write(above, "etc/pacman.conf", CONFIGURATION)
        layer.write(above, "etc/os-release", RELEASE)
    (host,) = light_hosts(1, prefix="arch", over=above)
    return host
