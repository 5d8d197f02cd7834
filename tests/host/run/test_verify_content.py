"""Runs trust the recorded digest of a file, except with `--verify-content` and in `verify`, which read each file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from statecfg.remote.ledger.state import DIGESTS
from statecfg.remote.machine.digests import Digests, signature
from tests.host.run.site import Site
from tests.lab import Host, image
from tests.lab.fixtures import or_skip

DISK = "/srv/ext4"  # on a file system whose digests count


@pytest.fixture
def site(tmp_path: Path, light_host: Host) -> Iterator[Site]:
    """Give a project with two files. The content of `changed` is not as defined, but its recorded digest is.

    So the outcome of a run shows whether it reads the file.
    """
    found = Site(tmp_path, light_host, "verify-content")
    with ExitStack() as stack:
        with or_skip():
            stack.enter_context(image.ext4(light_host, DISK, 16 << 20))
        found.play(*(f"file('{DISK}/{name}', content='defined\\n')" for name in ("changed", "sound")))
        found("apply", "site.py", "--yes")
        light_host.write(f"{DISK}/changed", "by hand\n")
        records = Digests(str(light_host.path(f"/var/lib/statecfg/{DIGESTS}")), f"{found.name}/site.py")
        digest, records.fresh = hashlib.sha256(b"defined\n").hexdigest(), True
        for name in ("changed", "sound"):
            records.current[f"{DISK}/{name}"] = [*signature(os.lstat(light_host.path(f"{DISK}/{name}"))), digest]
        records.save()
        yield found


def outcomes(site: Site, *arguments: str, code: int | None = 0, **env: str) -> dict[str, str]:
    """Run the command. Return the outcome of each file."""
    layers = site.report(*arguments, "site.py", code=code, **env)["layers"]
    return {node["name"].rpartition("/")[2]: node["outcome"] for layer in layers for node in layer}


def test_verify_content_and_verify_read_files_whose_recorded_digests_count(site: Site, light_host: Host) -> None:
    trusted = {"changed": "unchanged", "sound": "unchanged"}
    read = {"changed": "changed", "sound": "unchanged"}
    assert outcomes(site, "plan") == trusted
    assert outcomes(site, "plan", "--verify-content") == read
    assert outcomes(site, "plan", STATECFG_VERIFY_CONTENT="1") == read
    assert outcomes(site, "verify", code=2) == read
    assert outcomes(site, "apply", "--yes") == trusted
    assert light_host.read(f"{DISK}/changed") == "by hand\n"
    assert outcomes(site, "apply", "--yes", "--verify-content") == read
    assert light_host.read(f"{DISK}/changed") == "defined\n"
    assert outcomes(site, "verify") == trusted
