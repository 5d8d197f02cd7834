"""Podman on test hosts: its files are those of the host, its containers have no cgroups, and images are made here."""

from __future__ import annotations

import hashlib
import json
import shutil
from typing import Any

import pytest

from tests.lab import Host

STORAGE = '[storage]\ndriver = "vfs"\nrunroot = "/run/containers/storage"\ngraphroot = "/srv/containers"\n'
SETTINGS = """\
[containers]
cgroups = "disabled"
default_sysctls = []
keyring = false
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
PROGRAMS = ["/bin/sh", "/bin/sleep", "/bin/cat", "/usr/bin/env"]
# Copies programs and the libraries that they need.
COPY = """\
for file; do
    mkdir -p "/srv/image$(dirname "$file")"
    cp -L "$file" "/srv/image$file"
    ldd "$file" | grep -o '/[^ ]*' | while read -r library; do
        mkdir -p "/srv/image$(dirname "$library")"
        cp -L "$library" "/srv/image$library"
    done
done
"""
# Ends at once when it is stopped.
STAY = "trap 'exit 0' TERM; while :; do sleep 0.2; done\n"

PORT = 8478
# A registry that can only be read. Its files are those of `skopeo copy … dir:`: a directory per tag.
REGISTRY = """\
import hashlib, http.server, json, pathlib, sys
OCI = "application/vnd.oci.image.manifest.v1+json"
ROOT = pathlib.Path("/srv/registry")
class Registry(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self, body=True):
        place, _, wanted = self.path.rpartition("/")
        found, kind = None, "application/octet-stream"
        for manifest in ROOT.glob("*/manifest.json"):
            text = manifest.read_bytes()
            digest = "sha256:" + hashlib.sha256(text).hexdigest()
            if place.endswith("/manifests") and wanted in (digest, manifest.parent.name):
                found, kind = text, json.loads(text).get("mediaType", OCI)
            blob = manifest.parent / wanted.partition(":")[2]
            if place.endswith("/blobs") and wanted.startswith("sha256:") and blob.is_file():
                found = blob.read_bytes()
        if self.path == "/v2/":
            found, kind = b"{}", "application/json"
        self.send_response(200 if found is not None else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(found or b"")))
        self.end_headers()
        if body:
            self.wfile.write(found or b"")
    def do_HEAD(self):
        self.do_GET(False)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Registry).serve_forever()
"""


def serve(host: Host, *names: str, source: str = "containers-storage") -> str:
    """Start a registry with images of the host, and return the name of its repository. The tags are those of the names.

    :param source: where skopeo finds the images, such as `docker-daemon`
    Skip the test if this machine has no skopeo.
    """
    if not shutil.which("skopeo"):
        pytest.skip("not run on this machine: there is no skopeo (Debian: skopeo)")
    host.run(["mkdir", "-p", "/srv/registry"])
    for name in names:
        host.run(["skopeo", "copy", "-q", f"{source}:{name}", f"dir:/srv/registry/{name.rpartition(':')[2]}"])
    host.write("/srv/registry.py", REGISTRY)
    host.run(["systemd-run", "--quiet", "--unit=registry", "python3", "/srv/registry.py", str(PORT)])
    host.run(["sh", "-c", f"until curl -fs http://127.0.0.1:{PORT}/v2/ >/dev/null; do sleep 0.1; done"])
    return f"127.0.0.1:{PORT}/shop"


def digest(host: Host, tag: str) -> str:
    """Return the digest of an image in the registry."""
    return f"sha256:{hashlib.sha256(host.path(f'/srv/registry/{tag}/manifest.json').read_bytes()).hexdigest()}"


def prepare(host: Host, *names: str) -> None:
    """Configure podman on a host, and create images with these names. Skip the test if this machine has no podman."""
    if not shutil.which("podman"):
        pytest.skip("not run on this machine: there is no podman (Debian: podman)")
    host.write("/etc/containers/storage.conf", STORAGE)
    host.write("/etc/containers/containers.conf", SETTINGS)
    host.run(["sh", "-c", COPY, "sh", *PROGRAMS])
    for name in names:
        create_image(host, name)


def create_image(host: Host, name: str, text: str = "") -> None:
    """Create an image; its content differs with `text`, and it runs until it is stopped."""
    host.write("/srv/image/text", text or name)
    host.write("/srv/image/stay", STAY)
    command = 'tar -C /srv/image -c . | podman import --quiet --change "$1" - "$2"'
    host.run(["sh", "-c", command, "sh", 'CMD=["/bin/sh","/stay"]', name])


def inspect(host: Host, name: str, kind: str = "container") -> dict[str, Any]:
    """Return what podman tells about a container or image."""
    found: dict[str, Any] = json.loads(host.run(["podman", kind, "inspect", name]).stdout)[0]
    return found


def exists(host: Host, name: str, kind: str = "container") -> bool:
    """Return whether there is a container or image."""
    return host.run(["podman", kind, "exists", name], check=False).returncode == 0


def allow_networks(host: Host) -> None:
    """Let podman create networks: it sets kernel settings of the host's own network."""
    host.run(["mount", "-o", "remount,rw", "/proc/sys"])
