"""The facet of processes, and the small program that starts and stops them."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.model import CheckError
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.machine.world import World
from statecfg.resources.shared import records

if TYPE_CHECKING:
    from typing import NotRequired, TypedDict

    class ProcessFields(TypedDict):
        """A process. statecfg does not know `group`, `env` and `definition` of one that it did not start.

        :ivar env: the names of the variables in its environment
        :ivar definition: a digest of everything that the process was started with
        :ivar running: False for a program that ran once to its end
        """

        pathname: str
        args: list[str]
        user: str
        running: bool
        group: NotRequired[str]
        env: NotRequired[list[str]]
        definition: NotRequired[str]
        pid: NotRequired[int]


# The host's Python runs this in a separate process, because the executor has threads and must not fork. It detaches the
# program and reports a failed start: a failed exec writes to a pipe that a successful exec closes. It keeps a record of
# what was started, with pid and start time, because pids are reused.
PROGRAM = r"""
import hashlib, json, os, signal, sys, time
order = json.load(sys.stdin)
record = os.path.join(order["directory"], hashlib.sha256(order["key"].encode()).hexdigest() + ".json")
def stat(pid):
    try:
        with open("/proc/%d/stat" % pid) as stream:
            fields = stream.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]
def keep(value):
    os.makedirs(order["directory"], 0o700, exist_ok=True)
    opened = os.open(record + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(opened, "w") as stream:
        json.dump(dict(value, key=order["key"]), stream)
        stream.flush()
        os.fsync(stream.fileno())
    os.rename(record + ".new", record)
def become(fields):
    import grp, pwd
    user = pwd.getpwnam(fields["user"])
    group = grp.getgrnam(fields["group"]).gr_gid
    if os.geteuid() == 0:
        os.setgroups(os.getgrouplist(user.pw_name, group))
        os.setgid(group)
        os.setuid(user.pw_uid)
    elif (user.pw_uid, group) != (os.geteuid(), os.getegid()):
        raise PermissionError(1, "only root may run it as %(user)s:%(group)s" % fields)
    base = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    return dict(base, HOME=user.pw_dir, **order["env"])
def start(fields, detached):
    told, tell = os.pipe()
    if os.fork() == 0:
        try:
            if detached:
                if os.fork() != 0:
                    os._exit(0)
                os.setsid()
                null = os.open("/dev/null", os.O_RDWR)
                for number in (0, 1, 2):
                    os.dup2(null, number)
            os.chdir("/")
            pid = str(os.getpid())
            env = become(fields)
            os.write(tell, ("pid %s\n" % pid).encode())
            os.execve(fields["pathname"], [fields["pathname"]] + fields["args"], env)
        except BaseException as problem:
            os.write(tell, ("error %s" % (getattr(problem, "strerror", None) or problem)).encode())
            os._exit(127)
    os.close(tell)
    with os.fdopen(told) as stream:
        answer = stream.read()
    if "error " in answer:
        sys.exit("%s can't be started: %s" % (fields["pathname"], answer.partition("error ")[2]))
    return int(answer.split()[1])
def stop(pid):
    started = stat(pid)
    # What we started leads its own group, and its children end with it.
    end = os.killpg if os.getpgid(pid) == pid else os.kill
    for number, patience in ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0)):
        deadline = time.monotonic() + patience
        try:
            end(pid, number)
        except ProcessLookupError:
            return
        while time.monotonic() < deadline:
            if stat(pid) != started:
                return
            time.sleep(0.02)
    sys.exit("process %d does not end" % pid)
if order["do"] == "stop":
    if order["pid"] and stat(order["pid"]) is not None:
        stop(order["pid"])
    if os.path.exists(record):
        os.unlink(record)
elif order["do"] == "start":
    pid = start(order["fields"], True)
    # A program that ends in its first moments was never running: report that now, and how to find the cause.
    began = stat(pid)
    time.sleep(0.1)
    if began is None or stat(pid) != began:
        sys.exit("%s ended at once; block? is for programs that end" % order["fields"]["pathname"])
    keep(dict(order["fields"], pid=pid, started=began))
else:
    pid = start(order["fields"], False)
    status = os.waitpid(pid, 0)[1]
    if status:
        sys.exit("%s: %s" % (order["fields"]["pathname"],
            "exit status %d" % (status >> 8) if status >> 8 else "ended by signal %d" % (status & 127)))
    keep(order["fields"])
"""
ROUNDS = 200_000  # of PBKDF2 for the digest of an environment with a secret: about 0.1 s
LAUNCHER = [sys.executable, "-I", "-S", "-c", PROGRAM]


def directory() -> str:
    """Return the directory with the records of processes."""
    from statecfg.remote.ledger import state

    return os.path.join(state.directory(), "processes")


def fields(
    pathname: str,
    args: Sequence[str],
    env: Mapping[str, str],
    user: str,
    group: str,
    once: bool | None,
    secret: bool | None = None,
) -> ProcessFields:
    """Return the fields of a process in its wanted state.

    :param once: whether the program runs once to its end, instead of in the background
    :param secret: whether its environment contains a secret. Plans show the digest, so guessing from it must be slow
    """
    text = json.dumps([pathname, list(args), dict(env), user, group, bool(once)], sort_keys=True)
    if secret:
        text = hashlib.pbkdf2_hmac("sha256", text.encode(), directory().encode() + pathname.encode(), ROUNDS).hex()
    return {
        "pathname": pathname,
        "args": list(args),
        "env": sorted(env),
        "user": user,
        "group": group,
        "running": not once,
        "definition": hashlib.sha256(text.encode()).hexdigest()[:16],
    }


@facet("processes", runtime=("pid", "started"))
def processes(host: Any) -> dict[str, records.Fields]:
    """Load the recorded processes by the names of their nodes, and all running ones as `pid 123`."""
    loaded: dict[str, records.Fields] = {}
    folder = directory()
    if host.stat(folder) is not None:
        for file in host.listdir(folder):
            if file.endswith(".json"):
                record = json.loads(host.read(os.path.join(folder, file)).decode())
                if not record["running"] or _started(record["pid"]) == record["started"]:
                    loaded[record.pop("key")] = record
    for name in os.listdir("/proc"):
        if name.isdigit():
            running = _running(int(name))
            if running is not None:
                loaded["pid " + name] = running
    return loaded


def _started(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/stat") as stream:
            values = stream.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if values[0] in "ZX" else values[19]


def _running(pid: int) -> records.Fields | None:
    from statecfg.remote.machine.accounts import user_name

    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            words = [word.decode("utf-8", "surrogateescape") for word in stream.read().split(b"\0")[:-1]]
        with open(f"/proc/{pid}/status", "rb") as stream:
            uids = next(line for line in stream if line.startswith(b"Uid:"))
    except OSError:
        return None
    # The real user, who started it: a set-user-id program runs as root for any user, with any name and arguments.
    owner = int(uids.split()[1])
    if not words or _started(pid) is None:
        return None
    return {"pathname": words[0], "args": words[1:], "user": user_name(owner), "running": True, "pid": pid}


def find(loaded: Mapping[str, ProcessFields], key: str, wanted: ProcessFields) -> ProcessFields | None:
    """Return a node's process: the recorded one, else an equal running one, else None.

    :param loaded: the facet `processes`
    """
    if key in loaded:
        return loaded[key]
    if not wanted["running"]:
        return None
    for entry in loaded.values():
        if all(entry.get(field) == wanted.get(field) for field in ("pathname", "args", "user", "running")):
            return entry
    return None


def same(now: ProcessFields, wanted: ProcessFields) -> bool:
    """Tell whether a process is as wanted. If statecfg did not start it, its group and environment are unknown."""
    return "definition" not in now or now["definition"] == wanted.get("definition")


def require_program(world: World, path: str) -> None:
    """Check that the program exists, or may still be installed by a required node.

    :raises CheckError: if it does not exist
    """
    if world.is_known(path) and world.stat(path) is None:
        raise CheckError(f"program {path} is not on this host")


def absolute(path: str) -> str:
    """Return the path unchanged.

    :raises ValueError: if it is not absolute
    """
    if not path.startswith("/"):
        raise ValueError("the path of a program starts with /")
    return path


def texts(env: Mapping[Any, Any]) -> dict[str, str]:
    """Return an environment with names and values as text. Secrets stay secrets.

    :raises ValueError: if a value is neither text nor a number
    """
    named = {str(getattr(name, "name", name)): value for name, value in env.items()}
    return {name: value if hasattr(value, "reveal") else _text(value) for name, value in named.items()}


def words(args: Sequence[Any]) -> list[str]:
    """Return arguments as text.

    :raises PublicSecret: if one is a secret
    :raises ValueError: if one is neither text nor a number
    """
    if hasattr(args, "reveal") or any(hasattr(value, "reveal") for value in args):
        from statecfg.remote.graph.wrong_values import PublicSecret

        raise PublicSecret("put it into `env`", "args")
    return [_text(value) for value in args]


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError(f"expected a string or a number, got {value!r}")
    return str(value)
