"""Run a hook of a unit in its charm's directory with a fixed environment, log its output, and determine its result."""

from __future__ import annotations

import json
import os
import signal
import time

from statecfg.remote.hooks.run import command, missing_interpreter
from statecfg.remote.machine import durable, process
from statecfg.remote.machine.process import CHILDREN, kill_marked
from statecfg.remote.units import files as unit_files
from statecfg.remote.units import home as unit_home
from statecfg.remote.units.context import DEBUG, ERROR, INFO
from statecfg.remote.wire.channel import LONGEST_LINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    import selectors
    import subprocess
    from typing import Callable, Dict, List, Mapping, Optional

    from statecfg.remote.units.step import UnitStep

HELD = 5.0  # seconds for which output of a finished hook's child processes is still read, as in the original
MOST = 64 << 20  # maximum bytes of a hook's output
CLIENT = "JUJU_CLIENT_ID"  # the variable with the client id
RECORD = "running"  # the file in a unit's directory that describes its running hook
DISPATCH = "dispatch"  # an optional program of a charm that replaces all its hooks
# Files that identify charms built for juju 2 and later. Their hooks need the newer variables.
BUILT = (DISPATCH, "layer.yaml", "charmcraft.yaml", "manifest.yaml", "src/charm.py")
LIKE = "2.8.0"  # the first version of juju that ran `dispatch`; for earlier versions, libraries link all hooks


class Hook:
    """One hook to run.

    :param path: its file
    :param charm: the directory it runs in
    :param name: its name in the log
    :param timeout: seconds until all its processes receive TERM; 5 s later they receive KILL
    :param log: receives the output, one or more complete lines at a time: level, text
    """

    def __init__(self, path: str, charm: str, name: str, timeout: float, log: Callable[[int, str], None]) -> None:
        self.path, self.charm, self.name, self.timeout, self.log = path, charm, name, timeout, log
        self.reason = ""  # why it was stopped
        self.output_size = 0  # bytes
        self._mark, self._kills, self._due = "", 0, 0.0

    def run(self, environment: Mapping[str, str], started: Callable[[int], None], ended: Callable[[], None]) -> str:
        """Run the hook; return the error, "" if it succeeded. Source of the error texts: the original.

        :param environment: contains the client id, which is unique on the host and identifies the hook's processes
        :param started: receives the hook's process id, which is also its session id
        :param ended: is called as soon as that process has ended; processes that it started may still run
        """
        if not os.path.isfile(self.path) or not os.access(self.path, os.X_OK):
            ended()
            return f"Error processing {self.path!r}: hook is not executable"
        self._mark = environment[CLIENT]
        record = os.path.join(os.path.dirname(self.charm), RECORD)
        _write(record, self._mark, 0)
        try:
            child = self._start(environment)
            if child is None:
                ended()
                return self._judge(1)
            try:
                started(child.pid)
                _write(record, self._mark, child.pid)
                self._attend(child, record, ended)
            except BaseException:
                self._kill(child.pid, signal.SIGKILL)
                child.wait()
                raise
            finally:
                for stream in (child.stdout, child.stderr):
                    if stream is not None:
                        stream.close()
        finally:
            _forget(record)
        return self._judge(-signal.SIGKILL if child.returncode is None else child.returncode)

    def _start(self, environment: Mapping[str, str]) -> Optional[subprocess.Popen[bytes]]:
        import subprocess

        try:
            child = subprocess.Popen(
                command(self.path),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.charm,
                env=dict(environment),
                start_new_session=True,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as problem:
            why = getattr(problem, "strerror", None) or problem
            self.log(ERROR, f"{self.path} can't be started: {why}{missing_interpreter(self.path)}\n")
            return None
        assert child.stdin is not None
        child.stdin.close()
        return child

    def _judge(self, status: int) -> str:
        how = f"exit code {status}." if status >= 0 else "signal %d." % -status
        self.log(DEBUG, f"hook {self.name} exited, {how}")
        return f"Error processing {self.path!r}: {self.reason or how}" if status or self.reason else ""

    def _attend(self, child: subprocess.Popen[bytes], record: str, ended: Callable[[], None]) -> None:
        """Log the hook's output until it ends. Stop it after its timeout or at a limit."""
        import selectors

        deadline = time.monotonic() + self.timeout
        over = 0.0
        with selectors.DefaultSelector() as waiting:
            for stream, level in ((child.stdout, INFO), (child.stderr, ERROR)):
                assert stream is not None
                os.set_blocking(stream.fileno(), False)
                waiting.register(stream, selectors.EVENT_READ, _Said(level, self.log))
            voices = [key.data for key in waiting.get_map().values()]
            # Its child processes may keep its output open forever: don't wait for them.
            while not over or (waiting.get_map() and self.output_size <= MOST and time.monotonic() - over < HELD):
                self._listen(waiting, 0.05 if over else 0.1)
                if not over and _ended(child, 0 if waiting.get_map() else 0.1):
                    over = time.monotonic()
                    _forget(record)  # processes that still run are meant to stay
                    ended()
                    if self.reason:
                        self._kill(child.pid, signal.SIGKILL)
                elif not over and self._overdue(child.pid, deadline):
                    ended()
                    break
        for voice in voices:
            voice.end()

    def _listen(self, waiting: selectors.BaseSelector, wait: float) -> None:
        for key, _ in waiting.select(wait) if waiting.get_map() else ():
            piece = os.read(key.fd, 65536)
            self.output_size += len(piece)
            if piece:
                key.data.add(piece)
            else:
                waiting.unregister(key.fileobj)

    def _overdue(self, pid: int, deadline: float) -> bool:
        """Stop the hook if its time is over, its output too long or the run stopped: first with TERM, then with KILL.

        :returns: whether it still runs after that, so that the caller must give up
        """
        now = time.monotonic()
        if not self.reason:
            if self.output_size > MOST:
                self.reason = f"output limit: more than {MOST} bytes, stopped"
            elif now > deadline:
                self.reason = f"still running after {self.timeout:g} s, stopped"
            elif CHILDREN.stopping:
                self.reason = "stopped: the run was cut off"
            else:
                return False
        elif now < self._due:
            return False
        if self._kills > 1:
            self.reason += f"; it can't be killed (process {pid})"
            return True
        self._kill(pid, signal.SIGKILL if self._kills else signal.SIGTERM)
        self._kills, self._due = self._kills + 1, now + process.GRACE
        return False

    def _kill(self, group: int, number: int) -> None:
        """Send a signal to its process group, and to descendants that left the group."""
        try:
            os.killpg(group, number)
        except (ProcessLookupError, PermissionError):
            pass
        kill_marked(CLIENT, self._mark, number)


class _Said:
    """Logs one of a hook's two outputs line by line, even if a line arrives in pieces."""

    def __init__(self, level: int, log: Callable[[int, str], None]) -> None:
        import codecs

        self.level, self.log = level, log
        self.decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self.rest = ""

    def add(self, piece: bytes) -> None:
        text = self.rest + self.decode(piece)
        end = text.rfind("\n") + 1 if len(text) < LONGEST_LINE else len(text)
        self.rest = text[end:]
        if end:
            self.log(self.level, text[:end])

    def end(self) -> None:
        text = self.rest + self.decode(b"", True)
        if text:
            self.log(self.level, text)


def environment(step: UnitStep, charm: str, tools: str, socket: str, token: str) -> Dict[str, str]:
    """Return the complete environment of a hook, with the variables of the document and of the original.

    Charms that were built for juju 2 also receive its variables.

    :param step: the hook
    :param charm: the charm's directory
    :param tools: the directory of the command-line tools
    :param socket: path of the agent's socket
    :param token: the client id
    """
    variables = {
        "PATH": os.pathsep.join([tools, process.PATH]),
        "DEBIAN_FRONTEND": "noninteractive",
        "APT_LISTCHANGES_FRONTEND": "none",
        "CHARM_DIR": charm,
        "JUJU_CHARM": step.charm,
        "JUJU_SERVICE": step.service,
        "JUJU_UNIT_NAME": step.unit,
        "JUJU_LOCAL_UNIT": step.unit,
        "JUJU_SOCKET": socket,
        "JUJU_AGENT_SOCKET": socket,
        CLIENT: token,
    }
    relation = step.relation
    if relation is not None:
        variables["JUJU_RELATION"], variables["JUJU_RELATION_ID"] = relation.name, relation.id
        variables["JUJU_REMOTE_UNIT"] = "" if relation.broken else relation.remote
        variables["JUJU_MEMBERS"] = " ".join(relation.members)
    if any(os.path.lexists(os.path.join(charm, name)) for name in BUILT):
        variables.update(_newer(step, charm))
    return variables


def _newer(step: UnitStep, charm: str) -> Dict[str, str]:
    """Return the variables that juju 2 added."""
    hook = step.hook
    variables = {
        "JUJU_HOOK_NAME": hook,
        "JUJU_DISPATCH_PATH": "hooks/" + hook,
        "JUJU_CHARM_DIR": charm,
        "JUJU_VERSION": LIKE,
    }
    relation = step.relation
    if relation is not None:
        variables["JUJU_REMOTE_APP"] = step.services[relation.id]
        if hook.endswith("-relation-departed"):
            variables["JUJU_DEPARTING_UNIT"] = relation.remote
    return variables


def end_left(state_dir: str) -> List[str]:
    """Kill the hooks of killed runs that are still running; return the names of their units.

    The caller holds this host's lock, so no other run has hooks.
    """
    units = []
    for own in [own for home in unit_home.homes(state_dir) for own in unit_files.directories(home)]:
        record = os.path.join(own, RECORD)
        try:
            with open(record, encoding="utf-8") as stream:
                left = json.load(stream)
        except (FileNotFoundError, NotADirectoryError, ValueError):  # a record torn by a power cut has no process
            continue
        if left["pid"] and left["since"] == _since(left["pid"]):
            try:
                os.killpg(left["pid"], signal.SIGKILL)
            except ProcessLookupError:
                pass
        kill_marked(CLIENT, left["mark"], signal.SIGKILL)
        os.unlink(record)
        service, _, number = os.path.basename(own).rpartition("-")
        units.append(f"{service}/{number}")
    return units


def _write(record: str, mark: str, pid: int) -> None:
    """Record a running hook atomically. The record need not survive a crash of the host: no hook survives one."""
    data = json.dumps({"mark": mark, "pid": pid, "since": _since(pid) if pid else ""}).encode()
    durable.replace(record, [data], 0o644, synced=False, trial=record + ".new")


def _forget(record: str) -> None:
    if os.path.exists(record):
        os.unlink(record)


def _since(pid: int) -> str:
    """Return the start time and boot id of a process, which tell it from others with its id; "" if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            ticks = stream.read().rpartition(")")[2].split()[19]
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as stream:
            return f"{ticks} {stream.read().strip()}"
    except FileNotFoundError:
        return ""


def _ended(child: subprocess.Popen[bytes], wait: float) -> bool:
    import subprocess

    try:
        child.wait(wait)
    except subprocess.TimeoutExpired:
        return False
    return True
