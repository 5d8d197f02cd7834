"""The lock that allows one run at a time on a host."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time

from statecfg.remote.ledger.state import StateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from typing_extensions import TypedDict

    class Holder(TypedDict, total=False):
        """The run that holds the lock: its id, its user, since when (epoch seconds), and its process id.

        While the run reboots the host: until when (epoch seconds) the lock is reserved for it, the id of the boot that
        it ended, and the digest of what it continues with.
        """

        run: str
        who: str
        since: float
        pid: int
        until: float
        boot: str
        digest: str


LOCK = "lock"
LOOKING = 0.2  # seconds for which a plan of another process may hold the lock
RESUMING = 120.0  # seconds in which an earlier session of the same run notices that its connection is lost


class Lock:
    """A lock that allows one run at a time on a host. The kernel releases it when the process ends.

    A run that reboots the host reserves the lock (`write` with `until`): until then, only this run can take it.

    :ivar previous_holder: data about the run that held the lock before
    :ivar reserved: the reservation that stays until a run continues after its reboot. If the connection broke after the
        reboot, an earlier session of this run may still hold the lock
    """

    def __init__(self, state_dir: str) -> None:
        self.path = os.path.join(state_dir, LOCK)
        self.descriptor: Optional[int] = None
        self.previous_holder: Holder = {}
        self.reserved: Holder = {}

    def take(self, holder: Holder, wait: float) -> Optional[Holder]:
        """Take the lock; return None, or data about its holder if another run still holds it.

        :param holder: data about this run, which others see while it holds the lock
        :param wait: the maximum time to wait, in seconds
        :raises StateError: if the lock can't be created or written
        """
        try:
            self.descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as problem:
            raise StateError(f"cannot create the lock {self.path}: {problem.strerror}") from None
        # A plan that checks the lock holds it for a moment.
        other = self.wait(fcntl.LOCK_EX, max(wait, RESUMING if self.reserved else LOOKING), holder["run"])
        if other is None:
            holder.update(self.reserved)
            self.write(holder)
        return other

    def write(self, holder: Holder) -> None:
        """Write data about this run, which holds the lock.

        :raises StateError: if the lock can't be written
        """
        assert self.descriptor is not None
        try:
            text = json.dumps(holder).encode()
            os.pwrite(self.descriptor, text, 0)
            os.ftruncate(self.descriptor, len(text))  # not before the write: an empty file would be flushed immediately
        except OSError as problem:
            raise StateError(f"cannot write the lock {self.path}: {problem.strerror}") from None

    def current_holder(self, wait: float) -> Optional[Holder]:
        """Return data about the run that still holds the lock after `wait` seconds, or None; don't take the lock.

        :raises StateError: if the lock can't be read
        """
        try:
            self.descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise StateError(f"cannot read {self.path}: {problem.strerror}") from None
        holder = self.wait(fcntl.LOCK_SH, wait)
        self.drop()
        return holder

    def wait(self, operation: int, wait: float, run: str = "") -> Optional[Holder]:
        """Try to take the open lock for `wait` seconds; return None, or close it and return data about its holder.

        :param operation: `LOCK_EX` or `LOCK_SH`
        :param run: the id of the run that may take a reserved lock
        """
        assert self.descriptor is not None
        deadline = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(self.descriptor, operation | fcntl.LOCK_NB)
                self.previous_holder = self.holder()
                if self.previous_holder.get("until", 0) < time.time() or self.previous_holder.get("run") == run:
                    return None
                fcntl.flock(self.descriptor, fcntl.LOCK_UN)
            except OSError as problem:
                if problem.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
            if time.monotonic() >= deadline:
                holder = self.holder()
                self.drop()
                return holder
            time.sleep(0.05)

    def holder(self) -> Holder:
        """Return the data that the holder wrote about itself; it is only for messages."""
        assert self.descriptor is not None
        try:
            data: Holder = json.loads(os.pread(self.descriptor, 4096, 0))
        except ValueError:
            data = {}
        return data if isinstance(data, dict) else {}

    def drop(self) -> None:
        """Release the lock."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None
