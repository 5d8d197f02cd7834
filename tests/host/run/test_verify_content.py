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
from statecfg.resources import file
from tests.host.run import rig
from tests.host.run.site import Site
from tests.lab import Host, image
from tests.lab.fixtures import or_skip

DISK = "/srv/ext4"  # on a file system whose digests count


@pytest.fixture(scope="module")
def disk(light_host: Host) -> Iterator[Host]:
    """Give a host with an ext4 file system."""
    with ExitStack() as stack:
        with or_skip():
            stack.enter_context(image.ext4(light_host, DISK, 16 << 20))
        yield light_host


def record(host: Host, playbook: str, **defined: str) -> None:
    """Record digests of files as if they were as defined. So the outcome of a run shows whether it reads a file.

    :param defined: name → content
    """
    records = Digests(str(host.path(f"/var/lib/statecfg/{DIGESTS}")), playbook)
    for name, content in defined.items():
        now = signature(os.lstat(host.path(f"{DISK}/{name}")))
        records.current[f"{DISK}/{name}"] = [*now, hashlib.sha256(content.encode()).hexdigest()]
    records.fresh = True
    records.save()


def test_verify_content_and_verify_read_files_whose_recorded_digests_count(disk: Host, tmp_path: Path) -> None:
    site = Site(tmp_path, disk, "verify-content")
    site.play(*(f"file('{DISK}/{name}', content='defined\\n')" for name in ("changed", "sound")))
    site("apply", "site.py", "--yes")
    disk.write(f"{DISK}/changed", "by hand\n")
    record(disk, "verify-content/site.py", changed="defined\n", sound="defined\n")

    def outcomes(*arguments: str, code: int = 0, **env: str) -> dict[str, str]:
        layers = site.report(*arguments, "site.py", code=code, **env)["layers"]
        return {node["name"].rpartition("/")[2]: node["outcome"] for layer in layers for node in layer}

    trusted = {"changed": "unchanged", "sound": "unchanged"}
    read = {"changed": "changed", "sound": "unchanged"}
    assert outcomes("plan") == trusted
    assert outcomes("plan", "--verify-content") == read
    assert outcomes("plan", STATECFG_VERIFY_CONTENT="1") == read
    assert outcomes("verify", code=2) == read
    assert outcomes("apply", "--yes") == trusted
    assert disk.read(f"{DISK}/changed") == "by hand\n"
    assert outcomes("apply", "--yes", "--verify-content") == read
    assert disk.read(f"{DISK}/changed") == "defined\n"
    assert outcomes("verify") == trusted


def test_host_does_not_read_a_file_to_find_out_which_content_it_lacks(disk: Host) -> None:
    """Otherwise it would request the content, which is too large to be sent with the nodes."""
    content = "0123456789abcdef" * 4096
    definition = rig.define(file(f"{DISK}/large", content=content))
    assert rig.run(disk, definition).outcomes() == {f"file:{DISK}/large": "changed"}
    disk.write(f"{DISK}/large", content.upper())  # as large as before
    record(disk, rig.PLAYBOOK, large=content)
    done = rig.run(disk, definition)
    assert done.outcomes() == {f"file:{DISK}/large": "unchanged"}
    assert "uploading" not in done.event_names()
