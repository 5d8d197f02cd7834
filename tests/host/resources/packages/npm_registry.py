"""A registry of npm on a test host: a web server with packages that the test makes."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import shutil
import tarfile

import pytest

from tests.lab import Host

PORT = 8477
URL = f"http://127.0.0.1:{PORT}"
# Names of packages contain no dots here, so a file without an ending is the description of a package.
UNIT = "[Service]\nExecStart=/usr/bin/python3 -m http.server --bind 127.0.0.1 --directory {directory} {port}\n"


def package(name: str, version: str) -> bytes:
    """Return a package with a program that prints its version, and a script that npm should not run."""
    description = {
        "name": name,
        "version": version,
        "bin": {name.rpartition("/")[2]: "run.js"},
        "scripts": {"postinstall": "touch script-ran"},
    }
    files = {"package.json": json.dumps(description), "run.js": f"#!/usr/bin/env node\nconsole.log('{version}')\n"}
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as packed:
        for path, text in files.items():
            member = tarfile.TarInfo(f"package/{path}")
            member.size, member.mode = len(text), 0o755
            packed.addfile(member, io.BytesIO(text.encode()))
    return stream.getvalue()


def on_host(host: Host, directory: str, *packages: tuple[str, str]) -> None:
    """Start a registry with these packages: names and versions. Skip the test if this machine has no npm."""
    if not shutil.which("npm"):
        pytest.skip("not run on this machine: there is no npm (Debian: npm)")
    described: dict[str, dict[str, object]] = {}
    for name, version in packages:
        content = package(name, version)
        path = host.path(f"{directory}/files/{name}-{version}.tgz")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
        dist = {"tarball": f"{URL}/files/{name}-{version}.tgz", "integrity": f"sha512-{digest}"}
        described.setdefault(name, {})[version] = {
            "name": name, "version": version, "dist": dist, "bin": {name: "run.js"}, "hasInstallScript": True,
        }  # fmt: skip
    for name, versions in described.items():
        latest = {"latest": list(versions)[-1]}
        host.write(f"{directory}/{name}", json.dumps({"name": name, "dist-tags": latest, "versions": versions}))
    host.write("/etc/systemd/system/npm-registry.service", UNIT.format(directory=directory, port=PORT))
    host.run(["systemctl", "daemon-reload"])
    host.run(["systemctl", "restart", "npm-registry"])
    host.run(["sh", "-c", f"until curl -fs {URL}/ >/dev/null; do sleep 0.1; done"])
