"""Child processes: each in a group of its own, with a deadline, its output streamed and bounded."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from typing import IO, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

KEPT = 1 << 20  # bytes of output kept for the report
GRACE = 5.0  # seconds between TERM and KILL, and from KILL until a program is given up
LINGER = 0.2  # seconds for which output is still read after the program has ended
PIPED = 1 << 20  # bytes that a pipe may hold at most
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MARK = "STATECFG_CHILD"


class Outcome:
    """How a program ended.

    :param status: exit status; negative: the signal that ended it
    :param output: stdout and stderr as they came (stdout alone where they were kept apart), the newest that is kept
    :param errors: stderr, where it was kept apart
    :param reason: why it was stopped or could not be started, "" where it ran to its end
    :param cut: bytes of output that were not kept
    """

    __slots__ = ("cut", "errors", "output", "reason", "status")

    def __init__(self, status: int, output: bytes, errors: bytes = b"", reason: str = "", cut: int = 0) -> None:
        self.status, self.output, self.errors, self.reason, self.cut = status, output, errors, reason, cut


class Children:
    """The children under way, so that a run that is cut off can end them."""

    def __init__(self) -> None:
        self.stopping = False
        self.protected = 0
        self._lock = threading.Lock()

    def stop(self) -> None:
        """End every child that may be interrupted, at once; those that may not run to their own end."""
        self.stopping = True

    def protect(self, more: int) -> None:
        """Count a child that must not be cut off half-way in (1) or out (-1)."""
        with self._lock:
            self.protected += more


CHILDREN = Children()


class _Kept:
    """The newest output, up to a limit: the beginning is what is cut. More than `most` bytes are too much."""

    def __init__(self, limit: int, most: Optional[int] = None) -> None:
        self.limit, self.most = limit, most
        self.pieces: List[bytes] = []
        self.size = 0
        self.cut = 0

    def add(self, piece: bytes) -> None:
        self.pieces.append(piece)
        self.size += len(piece)
        while self.size - len(self.pieces[0]) >= self.limit:
            gone = self.pieces.pop(0)
            self.size -= len(gone)
            self.cut += len(gone)

    def value(self) -> bytes:
        note = b"[%d bytes cut]\n" % self.cut if self.cut else b""
        return note + b"".join(self.pieces)


def environment(extra: Optional[Mapping[str, str]] = None, home: str = "/") -> Dict[str, str]:
    """Return the environment children get: nothing of ours but a path and a plain locale, and what is given."""
    values = {"PATH": PATH, "LANG": "C.UTF-8", "HOME": home}
    values.update(extra or {})
    return values


def run(
    argv: Sequence[str],
    timeout: float,
    cwd: Optional[str] = None,
    env: Optional[Mapping[str, str]] = None,
    user: Optional[str] = None,
    input: Optional[bytes] = None,
    listen: Optional[Callable[[bytes], None]] = None,
    apart: bool = False,
    interruptible: bool = True,
    kept: int = KEPT,
    most: Optional[Tuple[int, int]] = None,
    last: bool = False,
) -> Outcome:
    """Run a program to its end.

    :param timeout: seconds; past it the group gets TERM, and KILL 5 s later
    :param cwd: the directory it runs in; the root directory where not given
    :param user: whom it runs as (only root may change it)
    :param input: what it reads on stdin; nothing where not given
    :param listen: gets each piece of output as it comes
    :param apart: keep stderr apart from stdout
    :param interruptible: False for what must not be cut off half-way (a package manager) when the controller goes
    :param kept: bytes of output that are kept
    :param most: bytes of stdout and of stderr past which it is stopped (with `apart`)
    :param last: end what it left running behind it, too
    """
    import pwd
    import subprocess

    try:
        entry = pwd.getpwnam(user) if user is not None else pwd.getpwuid(os.geteuid())
    except KeyError:
        if user is not None:
            return Outcome(127, b"", reason="no user %s on this host" % user)
        entry = None
    mark = "%d-%d" % (os.getpid(), time.monotonic_ns())
    values = environment(env, entry.pw_dir if entry is not None else "/")
    values[MARK] = mark
    try:
        child = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE if input is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if apart else subprocess.STDOUT,
            cwd=cwd or "/",
            env=values,
            start_new_session=True,
            **_identity(entry.pw_uid, entry.pw_gid, entry.pw_name) if user is not None and entry is not None else {},
        )
    except OSError as problem:
        where = " in %s" % cwd if cwd and problem.filename == cwd else ""
        return Outcome(127, b"", reason="%s can't be started%s: %s" % (argv[0], where, problem.strerror or problem))
    except (ValueError, subprocess.SubprocessError) as problem:
        return Outcome(126, b"", reason="%s can't be started: %s" % (argv[0], problem))
    CHILDREN.protect(not interruptible)
    attendant = _Attendant(child, timeout, input, listen, mark, interruptible, kept, most)
    try:
        outcome = attendant.attend()
        if last or outcome.reason:
            _kill(child.pid, mark, signal.SIGKILL)
        return outcome
    except BaseException:
        _kill(child.pid, mark, signal.SIGKILL)
        child.wait()
        raise
    finally:
        CHILDREN.protect(-(not interruptible))
        attendant.close()


def _identity(uid: int, gid: int, name: str) -> Dict[str, Any]:
    """Return the options that start a program as another user, with all of that user's groups."""
    if uid == os.geteuid():
        return {}
    groups = os.getgrouplist(name, gid)
    if sys.hexversion >= 0x03090000:
        return {"user": uid, "group": gid, "extra_groups": groups}

    def become() -> None:
        os.setgroups(groups)
        os.setgid(gid)
        os.setuid(uid)

    return {"preexec_fn": become}


class _Attendant:
    """Feeds a child, reads what it says, and watches its deadline."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        timeout: float,
        input: Optional[bytes],
        listen: Optional[Callable[[bytes], None]],
        mark: str,
        interruptible: bool,
        kept: int,
        most: Optional[Tuple[int, int]] = None,
    ) -> None:
        import selectors

        self.child, self.timeout, self.listen, self.mark = child, timeout, listen, mark
        self.interruptible = interruptible
        self.deadline = time.monotonic() + timeout
        self.reason = ""
        self.kills = 0
        self.due = 0.0
        self.waiting = selectors.DefaultSelector()
        self.kept: Dict[int, _Kept] = {}
        for stream, limit in zip((child.stdout, child.stderr), most or (None, None)):
            if stream is not None:
                self._watch(stream, selectors.EVENT_READ)
                self.kept[stream.fileno()] = _Kept(kept, limit)
        self.unsent = memoryview(input or b"")
        if child.stdin is not None:
            self._watch(child.stdin, selectors.EVENT_WRITE)

    def _watch(self, stream: IO[bytes], event: int) -> None:
        os.set_blocking(stream.fileno(), False)
        self.waiting.register(stream.fileno(), event)

    def attend(self) -> Outcome:
        """Return how the child ended."""
        ended, drained = 0.0, 0
        while True:
            now = time.monotonic()
            if not ended and self.child.poll() is not None:
                ended = now
            if self._overdue(now):
                break
            if not self.waiting.get_map():
                if ended:
                    break
                time.sleep(0.005)  # it closed its output and runs on
                continue
            got = self._exchange(0.05 if ended or self.reason else 0.2)
            drained += got if ended else 0
            # What a program left running in the background may hold the pipe for ever: it is not waited for.
            if ended and (drained > PIPED or (not got and time.monotonic() - ended > LINGER)):
                break
        self.reason = self.reason or self._too_much()
        outputs = [kept.value() for kept in self.kept.values()]
        status = self.child.returncode if self.child.returncode is not None else -int(signal.SIGKILL)
        cut = sum(kept.cut for kept in self.kept.values())
        return Outcome(status, outputs[0], outputs[1] if len(outputs) > 1 else b"", self.reason, cut)

    def _overdue(self, now: float) -> bool:
        """Stop a child whose time is over, harder each time; return True where nothing stops it."""
        if self.child.returncode is not None:
            return False
        if not self.reason:
            self.reason = self._too_long(now)
            if not self.reason:
                return False
        elif now < self.due:
            return False
        if self.kills > 1:
            self.reason += "; it can't be killed (process %d)" % self.child.pid
            return True
        _kill(self.child.pid, self.mark, signal.SIGKILL if self.kills else signal.SIGTERM)
        self.kills += 1
        self.due = now + GRACE
        return False

    def _too_long(self, now: float) -> str:
        """Return why a child is to be stopped, "" where it may go on."""
        if now > self.deadline:
            return "still running after %g s, stopped" % self.timeout
        if self.interruptible and CHILDREN.stopping:
            return "stopped: the run was cut off"
        return self._too_much()

    def _too_much(self) -> str:
        """Return which limit its output is over, "" where it is below them."""
        for name, kept in zip(("stdout", "stderr"), self.kept.values()):
            if kept.most is not None and kept.size + kept.cut > kept.most:
                return "output limit: more than %d bytes on %s, stopped" % (kept.most, name)
        return ""

    def _exchange(self, wait: float) -> int:
        """Write and read what can be at once; return how many bytes were read."""
        got = 0
        for key, _ in self.waiting.select(wait):
            kept = self.kept.get(key.fd)
            if kept is None:
                self._feed(key.fd)
                continue
            piece = os.read(key.fd, 65536)
            if not piece:
                self.waiting.unregister(key.fd)
                continue
            got += len(piece)
            kept.add(piece)
            if self.listen is not None:
                self.listen(piece)
        return got

    def _feed(self, descriptor: int) -> None:
        try:
            if self.unsent:
                self.unsent = self.unsent[os.write(descriptor, self.unsent[:65536]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it does not want its input: it is judged by how it ends
            self.unsent = memoryview(b"")
        if not self.unsent and self.child.stdin is not None:
            self.waiting.unregister(descriptor)
            self.child.stdin.close()

    def close(self) -> None:
        """Let go of the child's pipes."""
        self.waiting.close()
        for stream in (self.child.stdin, self.child.stdout, self.child.stderr):
            if stream is not None:
                try:
                    stream.close()
                except OSError:  # a program that never read its input: what was left unsent is no matter
                    pass


def _kill(group: int, mark: str, number: int) -> None:
    """Signal the group, and the descendants that left it: they carry our mark in their environment."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass
    kill_marked(MARK, mark, number)


def kill_marked(name: str, value: str, number: int, but: int = 0) -> None:
    """Signal every process that has a variable of this value in its environment, but for one."""
    # Again and again, since what is about to die may be starting others.
    for _ in range(10 if number == signal.SIGKILL else 1):
        if not _kill_marked(("%s=%s" % (name, value)).encode(), number, but):
            return


def _kill_marked(needle: bytes, number: int, but: int) -> int:
    """Signal every process with these words in its environment; return how many there were."""
    found = 0
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != but:
            try:
                with open("/proc/%s/environ" % name, "rb") as stream:
                    if needle in stream.read().split(b"\0"):
                        os.kill(int(name), number)
                        found += 1
            except OSError:  # it ended meanwhile, or is none of ours
                continue
    return found
