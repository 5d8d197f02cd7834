"""A local apt repository of small packages, for hosts without a network.

- `webd` 1.0 and 1.1: a web server on port 8080. It has a unit that can reload, a conffile `/etc/webd/webd.conf` (which
  differs between the versions) and Debian's maintainer scripts, which enable and start the unit. The exit code of
  `webd --check FILE` shows whether a configuration is valid.
- `tool-a` 1.0 and 2.0: `/usr/bin/tool-a` prints its version. `tool-b` 1.0 depends on it.
- `broken` 1.0: its postinst fails if `/etc/broken-works` does not exist.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.lab.host import Host
from tests.lab.owner import Unavailable

PLACE = "/srv/apt"  # the path of the repository on hosts
WEBD = Path(__file__).parent / "webd"
CONFFILES = {"1.0": "port = 8080\nmessage = hello\n", "1.1": "# webd 1.1\nport = 8080\nmessage = hello\n"}


class AptRepository:
    """A directory with packages and their index. `use` makes it the only package source of a host."""

    def __init__(self, directory: Path) -> None:
        """Create the directory with an empty repository."""
        self.directory = directory
        self._index: list[str] = []
        directory.mkdir(parents=True, exist_ok=True)
        self._write_index()

    def add(
        self,
        name: str,
        version: str,
        *,
        files: Mapping[str, tuple[str, int]] | None = None,
        conffiles: tuple[str, ...] = (),
        depends: str = "",
        conflicts: str = "",
        provides: str = "",
        recommends: str = "",
        more: Mapping[str, str] | None = None,
        scripts: Mapping[str, str] | None = None,
    ) -> Path:
        """Build a package and add it to the index.

        Parameters: `files`, a map from absolute paths to texts and modes; `conffiles`, the files that dpkg must not
        overwrite; `depends`, `conflicts`, `provides` and `recommends`, as in a control file; `scripts`, maintainer
        scripts by name, such as `postinst`; `more`, other files for dpkg, such as `templates`. Result: the path of the
        .deb file.
        """
        fields = {"Package": name, "Version": version, "Architecture": "all", "Maintainer": "Tests <tests@example.org>"}
        related = {"Depends": depends, "Conflicts": conflicts, "Provides": provides, "Recommends": recommends}
        fields.update((key, value) for key, value in related.items() if value)
        fields["Description"] = f"{name}, a package for tests"
        control = "".join(f"{key}: {value}\n" for key, value in fields.items())
        package = self.directory / f"{name}_{version}_all.deb"
        with tempfile.TemporaryDirectory() as scratch:
            tree = Path(scratch, "tree")  # scratch has mode 0700, and the package would contain this mode
            _write(tree / "DEBIAN/control", control, 0o644)
            if conffiles:
                _write(tree / "DEBIAN/conffiles", "".join(f"{path}\n" for path in conffiles), 0o644)
            for file, text in (more or {}).items():
                _write(tree / "DEBIAN" / file, text, 0o644)
            for script, text in (scripts or {}).items():
                _write(tree / "DEBIAN" / script, text, 0o755)
            for path, (text, mode) in (files or {}).items():
                _write(tree / path.lstrip("/"), text, mode)
            build = ["dpkg-deb", "--root-owner-group", "-Znone", "--build", str(tree), str(package)]
            subprocess.run(build, check=True, capture_output=True)
        digest = hashlib.sha256(package.read_bytes()).hexdigest()
        self._index.append(f"{control}Filename: ./{package.name}\nSize: {package.stat().st_size}\nSHA256: {digest}\n")
        self._write_index()
        return package

    def take(self, package: Path) -> None:
        """Add an existing package, such as one of Debian's."""
        shutil.copy(package, self.directory / package.name)
        ask = ["dpkg-deb", "--field", str(package)]
        fields = subprocess.run(ask, check=True, capture_output=True, text=True).stdout
        digest = hashlib.sha256(package.read_bytes()).hexdigest()
        size = package.stat().st_size
        self._index.append(f"{fields.strip()}\nFilename: ./{package.name}\nSize: {size}\nSHA256: {digest}\n")
        self._write_index()

    def use(self, host: Host) -> None:
        """Copy the repository to a host, make it the only package source, and update the package lists."""
        shutil.copytree(self.directory, host.path(PLACE), dirs_exist_ok=True)
        host.write("/etc/apt/sources.list.d/tests.list", f"deb [trusted=yes] file:{PLACE} ./\n")
        host.run(["apt-get", "-q", "update"])

    def _write_index(self) -> None:
        (self.directory / "Packages").write_text("\n".join(self._index))


def apt_repository(directory: Path) -> AptRepository:
    """Build the repository of this module in a directory. Raises `Unavailable` if dpkg-deb is missing."""
    if not shutil.which("dpkg-deb"):
        raise Unavailable("there is no dpkg-deb (Debian: dpkg)")
    repository = AptRepository(directory)
    program, unit = (WEBD / "webd.py").read_text(), (WEBD / "webd.service").read_text()
    scripts = {name: (WEBD / name).read_text() for name in ("postinst", "prerm", "postrm")}
    for version, configuration in CONFFILES.items():
        files = {
            "/usr/sbin/webd": (program.replace("@VERSION@", version), 0o755),
            "/lib/systemd/system/webd.service": (unit, 0o644),
            "/etc/webd/webd.conf": (configuration, 0o644),
        }
        repository.add(
            "webd", version, files=files, conffiles=("/etc/webd/webd.conf",), depends="python3", scripts=scripts
        )
    for version in ("1.0", "2.0"):
        repository.add("tool-a", version, files={"/usr/bin/tool-a": (f"#!/bin/sh\necho {version}\n", 0o755)})
    repository.add("tool-b", "1.0", depends="tool-a", files={"/usr/bin/tool-b": ("#!/bin/sh\ntool-a\n", 0o755)})
    repository.add("broken", "1.0", scripts={"postinst": "#!/bin/sh\ntest -e /etc/broken-works\n"})
    return repository


def _write(path: Path, text: str, mode: int) -> None:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
