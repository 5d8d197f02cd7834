"""Builds a signed repository of small packages that have the names and the structure of Docker's packages."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from email.utils import formatdate
from pathlib import Path

from tests.host.corpus.debian import codename
from tests.lab.apt import AptRepository

PARTS = Path(__file__).parent / "docker"
INDEX = "stable/binary-amd64/Packages"


def docker(directory: Path, key: Path) -> None:
    """Build the repository with the suite of this machine's release in a directory, and write its public key to `key`.

    It has two versions of docker-ce, so that a pin has something to choose from.
    """
    repository = AptRepository(directory)
    service = (PARTS / "docker.service").read_text()
    socket, daemon = (PARTS / "docker.socket").read_text(), (PARTS / "dockerd.py").read_text()
    for version in ("5:24.0.7-1", "5:26.1.4-1"):
        repository.add(
            "docker-ce",
            version,
            files={
                "/usr/bin/dockerd": (daemon, 0o755),
                "/lib/systemd/system/docker.service": (service, 0o644),
                "/lib/systemd/system/docker.socket": (socket, 0o644),
            },
            depends="containerd.io, docker-ce-cli, python3",
            scripts=_scripts("docker.service docker.socket"),
        )
        client = {"/usr/bin/docker": (f"#!/bin/sh\necho {version}\n", 0o755)}
        repository.add("docker-ce-cli", version, files=client)
    repository.add(
        "containerd.io",
        "1.6.26-1",
        files={
            "/usr/bin/containerd": ("#!/bin/sh\nexec sleep infinity\n", 0o755),
            "/lib/systemd/system/containerd.service": ((PARTS / "containerd.service").read_text(), 0o644),
            "/etc/containerd/config.toml": ("version = 2\n", 0o644),
        },
        conffiles=("/etc/containerd/config.toml",),
        scripts=_scripts("containerd.service"),
    )
    plugin = {"/usr/libexec/docker/cli-plugins/docker-compose": ("#!/bin/sh\necho compose\n", 0o755)}
    repository.add("docker-compose-plugin", "2.21.0-1", files=plugin)
    _sign(directory, key)


def _scripts(units: str) -> dict[str, str]:
    return {name: (PARTS / name).read_text().replace("@UNITS@", units) for name in ("postinst", "prerm", "postrm")}


def _sign(directory: Path, key: Path) -> None:
    """Turn a flat repository into a signed repository with a suite and a component."""
    suite = directory / "dists" / codename()
    (suite / INDEX).parent.mkdir(parents=True)
    (directory / "Packages").rename(suite / INDEX)
    data = (suite / INDEX).read_bytes()
    release = (
        f"Origin: Docker\nSuite: {codename()}\nCodename: {codename()}\nDate: {formatdate(usegmt=True)}\n"
        "Architectures: amd64 all\nComponents: stable\n"
        f"SHA256:\n {hashlib.sha256(data).hexdigest()} {len(data)} {INDEX}\n"
    )
    with tempfile.TemporaryDirectory() as home:
        gpg = ["gpg", "--homedir", home, "--batch", "--quiet", "--passphrase", "", "--pinentry-mode", "loopback"]
        owner = "Packages <packages@example.test>"
        subprocess.run([*gpg, "--quick-gen-key", owner, "ed25519", "sign", "never"], check=True, capture_output=True)
        signed = subprocess.run([*gpg, "--clearsign"], input=release.encode(), check=True, capture_output=True)
        (suite / "InRelease").write_bytes(signed.stdout)
        public = subprocess.run([*gpg, "--armor", "--export", owner], check=True, capture_output=True)
        key.write_bytes(public.stdout)
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=True, capture_output=True)
