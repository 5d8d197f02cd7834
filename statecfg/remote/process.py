"""Child processes: each in a group of its own, with a deadline, its output streamed and bounded."""

from __future__ import annotations

import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from typing import Callable, Dict, List, Mapping, Optional, Sequence

KEPT = 1 << 20  # bytes of output kept for the report
GRACE = 5.0  # seconds between TERM and KILL
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MARK = "STATECFG_CHILD"


class Outcome:
    """How a program ended.

    :param status: exit status; negative: the signal that ended it
    :param output: stdout and stderr as they came (stdout alone where they were kept apart), at most `KEPT` bytes
    :param errors: stderr, where it was kept apart
    :param reason: why it was stopped or could not be started, "" where it ran to its end
    """

    __slots__ = ("errors", "output", "reason", "status")

    def __init__(self, status: int, output: bytes, errors: bytes = b"", reason: str = "") -> None:
        self.status, self.output, self.errors, self.reason = status, output, errors, reason


class Children:
    """The children under way, so that a run that is cut off can end them."""

    def __init__(self) -> None:
        self.stopping = False
        self.protected = 0

    def stop(self) -> None:
        """End every child that may be interrupted, at once; those that may not run to their own end."""
        self.stopping = True


CHILDREN = Children()


class _Kept:
    """The newest output, up to `KEPT` bytes: the beginning is what is cut."""

    def __init__(self) -> None:
        self.pieces: List[bytes] = []
        self.size = 0
        self.cut = 0

    def add(self, piece: bytes) -> None:
        self.pieces.append(piece)
        self.size += len(piece)
        while self.size - len(self.pieces[0]) >= KEPT:
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
) -> Outcome:
    """Run a program to its end.

    :param timeout: seconds; past it the group gets TERM, and KILL 5 s later
    :param user: whom it runs as (only root may change it)
    :param input: what it reads on stdin; nothing where not given
    :param listen: gets each piece of output as it comes
    :param apart: keep stderr apart from stdout
    :param interruptible: False for what must not be cut off half-way (a package manager) when the controller goes
    """
    import subprocess

    home = "/"
    identity = None
    if user is not None:
        import pwd

        try:
            entry = pwd.getpwnam(user)
        except KeyError:
            return Outcome(127, b"", reason="no user %s on this host" % user)
        home = entry.pw_dir
        if entry.pw_uid != os.geteuid():
            identity = (entry.pw_uid, entry.pw_gid, os.getgrouplist(user, entry.pw_gid))
    mark = "%d-%d" % (os.getpid(), time.monotonic_ns())
    values = environment(env, home)
    values[MARK] = mark

    def become() -> None:
        if identity is not None:
            uid, gid, groups = identity
            os.setgroups(groups)
            os.setgid(gid)
            os.setuid(uid)

    try:
        child = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE if input is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if apart else subprocess.STDOUT,
            cwd=cwd,
            env=values,
            start_new_session=True,
            preexec_fn=become if identity is not None else None,
        )
    except OSError as problem:
        return Outcome(127, b"", reason="%s can't be started: %s" % (argv[0], problem.strerror or problem))
    except subprocess.SubprocessError as problem:
        return Outcome(126, b"", reason="%s can't be started as %s: %s" % (argv[0], user, problem))
    CHILDREN.protected += not interruptible
    try:
        return _attend(child, time.monotonic() + timeout, timeout, input, listen, mark, interruptible)
    except BaseException:
        _kill(child.pid, mark, signal.SIGKILL)
        raise
    finally:
        CHILDREN.protected -= not interruptible
        for stream in (child.stdin, child.stdout, child.stderr):
            if stream is not None:
                try:
                    stream.close()
                except OSError:  # a program that never read its input: what was left unsent is no matter
                    pass


def _attend(
    child: subprocess.Popen[bytes],
    deadline: float,
    timeout: float,
    input: Optional[bytes],
    listen: Optional[Callable[[bytes], None]],
    mark: str,
    interruptible: bool,
) -> Outcome:
    """Feed the child, read what it says, and watch its deadline."""
    import selectors

    waiting = selectors.DefaultSelector()
    kept = {}
    for stream in (child.stdout, child.stderr):
        if stream is not None:
            os.set_blocking(stream.fileno(), False)
            waiting.register(stream, selectors.EVENT_READ)
            kept[stream] = _Kept()
    unsent = memoryview(input or b"")
    if child.stdin is not None:
        os.set_blocking(child.stdin.fileno(), False)
        waiting.register(child.stdin, selectors.EVENT_WRITE)
    reason, killed, ended = "", 0.0, 0.0
    try:
        while True:
            now = time.monotonic()
            if not ended and child.poll() is not None:
                ended = now
            # What a program left running in the background may hold the pipe for ever: it is not waited for.
            if ended and (not waiting.get_map() or now - ended > 0.2):
                break
            if not reason and (now > deadline or (CHILDREN.stopping and interruptible)):
                late = now > deadline
                reason = "still running after %g s, stopped" % timeout if late else "stopped: the run was cut off"
                _kill(child.pid, mark, signal.SIGTERM)
                killed = now
            if killed and now - killed > GRACE:
                _kill(child.pid, mark, signal.SIGKILL)
                killed = now
            if not waiting.get_map():  # it closed its output and runs on
                time.sleep(0.005)
                continue
            for key, _ in waiting.select(0.05 if ended or killed else 0.2):
                stream = key.fileobj
                if stream is child.stdin:
                    unsent = _feed(key.fd, unsent)
                    if not unsent:
                        waiting.unregister(stream)
                        child.stdin.close()  # type: ignore[union-attr]
                    continue
                piece = os.read(key.fd, 65536)
                if not piece:
                    waiting.unregister(stream)
                    continue
                kept[stream].add(piece)  # type: ignore[index]
                if listen is not None:
                    listen(piece)
    finally:
        waiting.close()
    if reason:
        _kill(child.pid, mark, signal.SIGKILL)
    output = kept[child.stdout].value() if child.stdout is not None else b""
    errors = kept[child.stderr].value() if child.stderr is not None else b""
    return Outcome(child.returncode, output, errors, reason)


def _feed(descriptor: int, unsent: memoryview) -> memoryview:
    try:
        return unsent[os.write(descriptor, unsent[:65536]) :] if unsent else unsent
    except BlockingIOError:
        return unsent
    except BrokenPipeError:  # it does not want its input: it is judged by how it ends
        return memoryview(b"")


def _kill(group: int, mark: str, number: int) -> None:
    """Signal the group, and the descendants that left it: they carry our mark in their environment."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass
    needle = ("%s=%s" % (MARK, mark)).encode()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/environ" % name, "rb") as stream:
                    if needle in stream.read().split(b"\0"):
                        os.kill(int(name), number)
            except OSError:  # it ended meanwhile, or is none of ours
                continue
