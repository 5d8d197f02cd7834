"""Child processes: each has its own process group and a deadline; its output is streamed and limited."""

from __future__ import annotations

import os
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from typing import IO, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

KEPT = 1 << 20  # bytes of output kept for the report
GRACE = 5.0  # seconds between TERM and KILL, and from KILL until statecfg gives up
LINGER = 0.2  # seconds for which output is read after the end of the program
PIPED = 1 << 20  # maximum bytes in a pipe
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MARK = "STATECFG_CHILD"
SIGKILL, SIGTERM = 9, 15  # as in `signal`, which most runs don't load


class ProcessResult:
    """How a program ended.

    :param status: exit status; if negative, the signal that ended it
    :param output: stdout and stderr in the order of their arrival (only stdout if they are separate), limited to the
        newest bytes
    :param errors: stderr, if it is separate
    :param reason: why the program was stopped or could not start, "" if it ran to its end
    :param cut: bytes of output that were dropped
    """

    __slots__ = ("cut", "errors", "output", "reason", "status")

    def __init__(self, status: int, output: bytes, errors: bytes = b"", reason: str = "", cut: int = 0) -> None:
        self.status, self.output, self.errors, self.reason, self.cut = status, output, errors, reason, cut


class ChildProcesses:
    """The running children. An interrupted run ends them through this object.

    :ivar cancelled: whether the user has stopped the run: the children run to their end, and nothing new may start
    """

    def __init__(self) -> None:
        self.stopping = self.cancelled = False
        self.protected = 0
        self._lock = threading.Lock()

    def stop(self) -> None:
        """End all interruptible children at once. The others run to their end."""
        self.stopping = True

    def protect(self, more: int) -> None:
        """Count children that must not be interrupted.

        :param more: 1 when one starts, -1 when it ends
        """
        with self._lock:
            self.protected += more


CHILDREN = ChildProcesses()


class _Kept:
    """The newest output, up to a limit; older output is dropped.

    :param most: bytes after which the program is stopped; None: no such limit
    """

    def __init__(self, limit: int, most: Optional[int] = None) -> None:
        self.limit, self.most = limit, most
        self.pieces: List[bytes] = []
        self.size = self.cut = 0

    def add(self, piece: bytes) -> None:
        self.pieces.append(piece)
        self.size += len(piece)
        while self.size - len(self.pieces[0]) >= self.limit:
            dropped = self.pieces.pop(0)
            self.size -= len(dropped)
            self.cut += len(dropped)

    def value(self) -> bytes:
        note = b"[%d bytes cut]\n" % self.cut if self.cut else b""
        return note + b"".join(self.pieces)


def environment(extra: Optional[Mapping[str, str]] = None, home: str = "/") -> Dict[str, str]:
    """Return the environment of children: a path, a plain locale, HOME and the given variables, no others."""
    return {"PATH": PATH, "LANG": "C.UTF-8", "HOME": home, **(extra or {})}


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
) -> ProcessResult:
    """Run a program to its end.

    :param timeout: seconds; after that, its process group gets TERM, and KILL 5 s later
    :param cwd: the working directory; default: the root directory
    :param user: the user who runs it (only root can choose another user)
    :param input: bytes for stdin; default: empty
    :param listen: receives each piece of output when it arrives
    :param apart: keep stderr separate from stdout
    :param interruptible: False for a program that must finish even if the run is interrupted (a package manager)
    :param kept: maximum bytes of output to keep
    :param most: maximum bytes of stdout and of stderr, after which the program is stopped (with `apart`)
    :param last: also end the processes that it leaves running
    """
    import pwd
    import subprocess

    try:
        entry = pwd.getpwnam(user) if user is not None else pwd.getpwuid(os.geteuid())
    except KeyError:
        if user is not None:
            return ProcessResult(127, b"", reason=f"no user {user} on this host")
        entry = None
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
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
        where = f" in {cwd}" if cwd and problem.filename == cwd else ""
        return ProcessResult(127, b"", reason=f"{argv[0]} can't be started{where}: {problem.strerror or problem}")
    except (ValueError, subprocess.SubprocessError) as problem:
        return ProcessResult(126, b"", reason=f"{argv[0]} can't be started: {problem}")
    CHILDREN.protect(not interruptible)
    attendant = _Attendant(child, timeout, input, listen, mark, interruptible, kept, most)
    try:
        outcome = attendant.attend()
        if last or outcome.reason:
            _kill(child.pid, mark, SIGKILL)
        return outcome
    except BaseException:
        _kill(child.pid, mark, SIGKILL)
        child.wait()
        raise
    finally:
        CHILDREN.protect(-(not interruptible))
        attendant.close()


def _identity(uid: int, gid: int, name: str) -> Mapping[str, Any]:
    """Return the options that start a program as another user, with all groups of that user."""
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
    """Feeds a child, reads its output and watches its deadline."""

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

    def attend(self) -> ProcessResult:
        """Wait for the child and return how it ended."""
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
                time.sleep(0.005)  # it closed its output and still runs
                continue
            got = self._exchange(0.05 if ended or self.reason else 0.2)
            drained += got if ended else 0
            # Do not wait for background processes, which may keep the pipe open forever.
            if ended and (drained > PIPED or (not got and time.monotonic() - ended > LINGER)):
                break
        self.reason = self.reason or self._too_much()
        output, errors, *_ = [*(kept.value() for kept in self.kept.values()), b""]
        status = self.child.returncode if self.child.returncode is not None else -SIGKILL
        cut = sum(kept.cut for kept in self.kept.values())
        return ProcessResult(status, output, errors, self.reason, cut)

    def _overdue(self, now: float) -> bool:
        """Stop a child that is overdue: TERM, then KILL. Return True if it survives both."""
        if self.child.returncode is not None:
            return False
        if not self.reason:
            self.reason = self._too_long(now)
            if not self.reason:
                return False
        elif now < self.due:
            return False
        if self.kills > 1:
            self.reason += f"; it can't be killed (process {self.child.pid})"
            return True
        _kill(self.child.pid, self.mark, SIGKILL if self.kills else SIGTERM)
        self.kills += 1
        self.due = now + GRACE
        return False

    def _too_long(self, now: float) -> str:
        """Return why a child must be stopped, "" if it may continue."""
        if now > self.deadline:
            return f"still running after {self.timeout:g} s, stopped"
        if self.interruptible and CHILDREN.stopping:
            return "stopped: the run was cut off"
        return self._too_much()

    def _too_much(self) -> str:
        """Return which limit the output exceeds, "" for none."""
        for name, kept in zip(("stdout", "stderr"), self.kept.values()):
            if kept.most is not None and kept.size + kept.cut > kept.most:
                return f"output limit: more than {kept.most} bytes on {name}, stopped"
        return ""

    def _exchange(self, wait: float) -> int:
        """Write and read what is possible within `wait` seconds; return how many bytes were read."""
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
        except BrokenPipeError:  # it does not read its input; only its exit status counts
            self.unsent = memoryview(b"")
        if not self.unsent and self.child.stdin is not None:
            self.waiting.unregister(descriptor)
            self.child.stdin.close()

    def close(self) -> None:
        """Close the child's pipes."""
        self.waiting.close()
        for stream in (self.child.stdin, self.child.stdout, self.child.stderr):
            if stream is not None:
                try:
                    stream.close()
                except OSError:  # it never read its input; ignore the unsent rest
                    pass


def _kill(group: int, mark: str, number: int) -> None:
    """Signal the group and the descendants that left it. They have our mark in their environment."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass
    kill_marked(MARK, mark, number)


def kill_marked(name: str, value: str, number: int, but: int = 0) -> None:
    """Signal every process whose environment has this variable with this value.

    :param but: the id of a process to leave out
    """
    # Repeat it, because a dying process may be starting others.
    for _ in range(10 if number == SIGKILL else 1):
        if not _kill_marked(f"{name}={value}".encode(), number, but):
            return


def _kill_marked(needle: bytes, number: int, but: int) -> int:
    """Signal every process with this text in its environment; return how many there were."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != but:
            try:
                with open(f"/proc/{name}/environ", "rb") as stream:
                    if needle in stream.read().split(b"\0"):
                        os.kill(int(name), number)
                        count += 1
            except OSError:  # it has ended, or belongs to another user
                continue
    return count
