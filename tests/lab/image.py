"""Directories of light hosts on an ext4 file system in an image, which the kernel mounts as a loop device."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.lab.host import Host
from tests.lab.owner import Unavailable

PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


@contextmanager
def ext4(host: Host, directory: str, size: int) -> Iterator[None]:
    """Mount a new ext4 file system on a directory of a light host while entered.

    :param size: bytes of the image, which is a sparse file of the host
    :raises Unavailable: this machine lacks mkfs.ext4 or loop devices
    """
    if not shutil.which("mkfs.ext4", path=PATH):
        raise Unavailable("Debian packages are missing: e2fsprogs")
    image = host.path(f"{directory}.image")
    host.path(directory).mkdir(parents=True, exist_ok=True)
    with open(image, "wb") as sparse:
        sparse.truncate(size)
    mounted = f"{host.home}/root{directory}"
    _with_mounts(host, "mkfs.ext4", "-q", "-F", "-E", "nodiscard", f"{mounted}.image")
    try:
        _with_mounts(host, "mount", "-o", "loop", f"{mounted}.image", mounted)
    except RuntimeError as problem:
        raise Unavailable(f"this machine can't mount ext4 in an image: {problem}") from None
    try:
        yield
    finally:
        _with_mounts(host, "umount", "--lazy", mounted)  # an executor may still be ending
        image.unlink()


def _with_mounts(host: Host, *argv: str) -> None:
    """Run a program of this machine with the mounts of the host. The host's own /dev has no loop devices.

    :raises RuntimeError: the program fails
    """
    command = ["nsenter", "--target", str(host.pid), "-m", "--", *argv]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PATH": PATH})
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr}")
