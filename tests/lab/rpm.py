"""Hosts whose packages are those of rpm, and repositories for them. dnf and zypper are Debian's packages of them.

Such a host sees the files of this machine without the database and the programs of dpkg. Its own database of rpm is
empty at first, and `/etc/os-release` names another system.
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

DATABASE = "/usr/lib/sysimage/rpm"
PLACE = "/srv/rpm"  # the path of the repository on hosts
RELEASES = {
    "fedora": 'NAME="Fedora Linux"\nVERSION="40 (Tests)"\nID=fedora\nVERSION_ID=40\n',
    "opensuse": 'NAME="openSUSE Leap"\nID="opensuse-leap"\nID_LIKE="suse opensuse"\nVERSION_ID="15.6"\n',
}
DEBIAN = ["var/lib/dpkg", "var/lib/rpm", "var/lib/dnf", "var/cache/dnf", "var/cache/zypp", "etc/yum.repos.d"]
DEBIAN += ["etc/zypp", "var/lib/zypp", "root/.rpmdb"]
DEBIAN += [f"usr/bin/{name}" for name in ("apt", "apt-get", "apt-cache", "apt-mark", "dpkg", "dpkg-query", "dpkg-deb")]


class RpmRepository:
    """A directory with packages and their index."""

    def __init__(self, directory: Path) -> None:
        """Create the directory with an empty repository. Raises `Unavailable` if a program is missing."""
        for program, package in (("rpmbuild", "rpm"), ("createrepo_c", "createrepo-c")):
            if not shutil.which(program):
                raise Unavailable(f"there is no {program} (Debian: {package})")
        self.directory, self.scratch = directory, directory.with_name(f"{directory.name}-build")
        directory.mkdir(parents=True, exist_ok=True)

    def add(
        self,
        name: str,
        version: str,
        *,
        release: str = "1",
        files: Mapping[str, tuple[str, int]] | None = None,
        config: Sequence[str] = (),
        scripts: Mapping[str, str] | None = None,
        **related: str,
    ) -> Path:
        """Build a package.

        Parameters: `files`, a map from absolute paths to texts and modes; `config`, those of them that rpm must not
        overwrite; `scripts`, by their names in a spec file, such as `post`; `related`, tags such as `requires`,
        `recommends`, `conflicts`, `provides`, `obsoletes` and `modularitylabel`. Result: the path of the .rpm file.
        """
        tree = self.scratch / f"{name}-{version}-{release}"
        for path, (text, mode) in (files or {}).items():
            target = tree / "files" / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
            target.chmod(mode)
        tags = {"Name": name, "Version": version, "Release": release, "Summary": f"{name}, for tests", "License": "MIT"}
        tags |= {"BuildArch": "noarch"} | {key.capitalize(): text for key, text in related.items()}
        parts = ["".join(f"{key}: {text}\n" for key, text in tags.items() if text), "%description\nFor tests.\n"]
        parts += [f"%install\ncp -a {tree}/files/. %{{buildroot}}\n"] if files else []
        parts += [f"%{script}\n{text}\n" for script, text in (scripts or {}).items()]
        listed = [f"%config(noreplace) {path}" if path in config else path for path in files or ()]
        parts.append("%files\n" + "\n".join(listed) + "\n")
        spec = tree / f"{name}.spec"
        spec.parent.mkdir(parents=True, exist_ok=True)
        spec.write_text("\n".join(parts))
        defines = {
            "_topdir": tree / "top",
            "_rpmdir": self.directory,
            "_dbpath": tree / "db",
            "_build_id_links": "none",
        }
        given = [word for key, value in defines.items() for word in ("--define", f"{key} {value}")]
        argv = ["rpmbuild", "-bb", "--quiet", "--target", "noarch", *given, str(spec)]
        done = subprocess.run(argv, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"rpmbuild of {name}: {done.stderr}")
        return self.directory / f"noarch/{name}-{version}-{release}.noarch.rpm"

    def index(self, comps: Path | None = None) -> None:
        """Write the index; with `comps`, a file with groups. A file `modules.yaml` in the directory is included."""
        groups = ["--groupfile", str(comps)] if comps else []
        subprocess.run(["createrepo_c", "--quiet", *groups, str(self.directory)], check=True, capture_output=True)

    def copy(self, host: Host, place: str = PLACE) -> None:
        """Copy the repository to a host, instead of what is there."""
        host.run(["rm", "-rf", place])
        shutil.copytree(self.directory, host.path(place))


def rpm_host(system: str, repository: RpmRepository) -> Host:
    """Start a light host of a system in `RELEASES`. Raises `Unavailable` if this machine can't run it.

    Its only package is one of the repository, which this function builds. It provides what scripts of packages need.
    """
    owner.require_root_hosts()
    (host,) = light_hosts(1, prefix=system, over=rpm_layer(system))
    return with_release(host, system, repository)


def with_release(host: Host, system: str, repository: RpmRepository) -> Host:
    """Return the host with its first package."""
    version = "40" if system == "fedora" else "15.6"
    provides = f"system-release({version}), /bin/sh, glibc"  # zypper solves nothing without glibc
    release = repository.add(f"{system}-release", version, provides=provides)
    target = host.path(f"/root/{release.name}")
    shutil.copy(release, target)
    host.run(["rpm", "--install", f"/root/{release.name}"])
    target.unlink()
    return host


def rpm_layer(system: str) -> Path:
    """Return the layer of a system in `RELEASES`. The first call creates it."""
    above = owner.base() / f"layer-{system}"
    if not above.exists():
        above.mkdir(mode=0o755)
        layer.hide(above, DEBIAN)
        for path, text in {
            "etc/os-release": RELEASES[system],
            "etc/dnf/plugins/versionlock.list": "",
            "etc/dnf/plugins/local.conf": "[main]\nenabled = 0\n",  # Debian enables this plugin, other systems don't
            "etc/rpm/macros": f"%_dbpath {DATABASE}\n",  # Debian's rpm uses another one, which depends on the user
        }.items():
            layer.write(above, path, text)
        for path in (DATABASE, "/etc/yum.repos.d"):
            layer.directory(above, path.lstrip("/"))
    return above
