"""Digests of files that an earlier run read, so that a run does not read a file again that can't have changed.

As in git's index, a digest counts as long as the file has the same device, inode, size, mtime and ctime. Each change of
a file sets its ctime, and programs can't choose that. Where this does not hold, the file is read each time:

- A file that changed shortly before it was read. A later change could get the same time, and a program that changes the
  file through mapped memory sets its times only once until the kernel has written the change to the disk.
- A file system that may not know all changes, such as a network file system, or that stores whole seconds.
- A file with times in the future, and all files if the clock is behind the time of the records.
- All files after a boot. If the power failed, the disk can have the new content of a file with its former times.
"""

from __future__ import annotations

import json
import os
import stat as st
import time
import zlib
from typing import Any, Dict, List, Optional, Set

from statecfg.remote.graph.sha256 import sha256
from statecfg.remote.machine.paths import content_digest, open_file, open_parent

FORMAT = 1
LOCAL = ("btrfs", "ext2", "ext3", "ext4", "f2fs", "xfs")  # file systems that set the ctime with each change
SETTLED = 60.0  # seconds since the last change, in addition to those after which the kernel writes changes to the disk
BOOT = "/proc/sys/kernel/random/boot_id"  # the kernel makes a new one at each boot
EXPIRES = "/proc/sys/vm/dirty_expire_centisecs"
SECOND = 10**9  # nanoseconds


class Digests:
    """The recorded digests of the files of one playbook.

    :param folder: the directory of the records
    :param playbook: the playbook
    :param partial: the run sees only some of the playbook's nodes, so keep the records of the other files
    :param trusting: use the records; otherwise only make new ones
    """

    def __init__(self, folder: str, playbook: str, partial: bool = False, trusting: bool = True) -> None:
        name = sha256(playbook.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        self.path = os.path.join(folder, name)
        self.recorded = self._load()
        self.trusting, self.fresh = trusting, False
        self.current: Dict[str, List[Any]] = dict(self.recorded) if partial else {}
        self._devices: Optional[Set[int]] = None
        self._margin = 0

    def _load(self) -> Dict[str, List[Any]]:
        """Return the records: path → signature and digest. Ignore a file that is damaged or that others can write."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb", 0) as stream:
                info, data = os.fstat(descriptor), stream.read()
            if info.st_uid != os.geteuid() or info.st_mode & 0o077 or data[:8] != b"%08x" % zlib.crc32(data[8:]):
                return {}
            found = json.loads(data[8:].decode())
            # If the clock was set back, a change could get the time of an earlier one.
            if found["format"] != FORMAT or found["time"] > time.time() or found["boot"] != boot_id():
                return {}
            records: Dict[str, List[Any]] = found["files"]
            return records
        except (OSError, ValueError, KeyError):
            return {}

    def of(self, path: str) -> str:
        """Return the digest of a file: the recorded one, or that of its content, which is then recorded.

        :param path: a path that contains no links
        :raises OSError: if it cannot be read or is not a regular file
        """
        known = self.known(path)
        if known:
            return known
        began, opened = time.time(), open_file(path)
        try:
            before, digest = os.fstat(opened), content_digest(opened)
            self.learn(path, began, before, os.fstat(opened), digest)
            return digest
        finally:
            os.close(opened)

    def known(self, path: str) -> str:
        """Return the recorded digest of a file, "" if the file has to be read."""
        record = self.recorded.get(path) if self.trusting else None
        if record is None:
            return ""
        try:
            parent, name, _ = open_parent(path)
        except OSError:
            return ""
        try:
            info = os.lstat(name, dir_fd=parent)
        except OSError:
            return ""
        finally:
            os.close(parent)
        if record[:-1] != signature(info) or info.st_dev not in self.devices:
            return ""
        self.current[path] = record
        return str(record[-1])

    def learn(self, path: str, began: float, before: os.stat_result, after: os.stat_result, digest: str) -> None:
        """Record the digest of a file that was read, if it is safe to use later.

        :param began: the time before the file was read
        :param before: the file's data before it was read
        :param after: the same after it was read
        """
        newest = max(before.st_mtime_ns, before.st_ctime_ns)
        whole = not (before.st_mtime_ns % SECOND and before.st_ctime_ns % SECOND)
        if whole or newest + self.margin > began * SECOND or signature(before) != signature(after):
            self.current.pop(path, None)
        elif st.S_ISREG(before.st_mode) and before.st_dev in self.devices:
            self.current[path], self.fresh = [*signature(before), digest], True

    @property
    def margin(self) -> int:
        """The nanoseconds for which a file must be unchanged before its digest is recorded."""
        if not self._margin:
            self._margin = int(SETTLED * SECOND) + _hundredths(EXPIRES) * (SECOND // 100)
        return self._margin

    @property
    def devices(self) -> Set[int]:
        """The devices of the mounted file systems that set the ctime with each change."""
        if self._devices is None:
            self._devices = _local_devices()
        return self._devices

    def save(self) -> None:
        """Write the records of the files that this run saw. Without them, the next run reads the files."""
        if not self.fresh and self.current.keys() == self.recorded.keys():
            return
        from statecfg.remote.machine import durable  # most runs have nothing to write

        try:
            found = {"format": FORMAT, "time": time.time(), "boot": boot_id(), "files": self.current}
            text = json.dumps(found).encode()
            os.makedirs(os.path.dirname(self.path), 0o700, exist_ok=True)
            data = b"%08x%s" % (zlib.crc32(text), text)
            # Not synced: after a power failure, the checksum shows whether the file is complete.
            durable.replace(self.path, [data], synced=False, trial=self.path + ".new")
        except OSError:
            pass  # the records are only a cache: the next run reads the files


def boot_id() -> str:
    """Return the id of the current boot.

    :raises OSError: if it can't be read
    """
    with open(BOOT, encoding="utf-8") as stream:
        return stream.read().strip()


def _hundredths(path: str) -> int:
    """Return the number in a file of the kernel, and a year if it can't be read, so that no digest is recorded."""
    try:
        with open(path, encoding="utf-8") as stream:
            return int(stream.read())
    except (OSError, ValueError):
        return 365 * 86400 * 100


def _local_devices() -> Set[int]:
    devices = set()
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape", newline="\n") as stream:
            for line in stream:
                first, _, second = line.partition(" - ")
                if second.split(" ", 1)[0] in LOCAL:
                    major, _, minor = first.split(" ", 3)[2].partition(":")
                    devices.add(os.makedev(int(major), int(minor)))
    except OSError:
        return set()
    return devices


def signature(info: os.stat_result) -> List[int]:
    """Return what changes with each change of a file."""
    return [info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns]
