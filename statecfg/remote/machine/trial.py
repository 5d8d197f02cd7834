"""Try a validator in a plan: it sees the host as planned, and its own changes are lost.

The program runs in its own mount namespace. Overlays in memory cover the directories of the host, and contain the files
as planned. The host itself has no part of them, so nothing is left behind, even if the program is killed.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from typing import TYPE_CHECKING, Any, List, Mapping, Optional, Sequence, Tuple

from statecfg.remote.graph.model import Blob
from statecfg.remote.graph.results import Result, error
from statecfg.remote.machine import files
from statecfg.remote.machine.overlay import FILES, Entry
from statecfg.remote.machine.world import Stat

if TYPE_CHECKING:
    from typing import Dict, Protocol

    from statecfg.remote.machine.overlay import Before, Cause
    from statecfg.remote.machine.world import Fields

    class Simulated(Protocol):
        """What a trial needs of the planned machine."""

        base: Any
        entries: Dict[str, Entry]
        facets: Dict[str, Dict[str, Tuple[Optional[Fields], int]]]
        causes: List[Cause]
        ticks: List[str]
        before: Before
        root: bool
        notes: List[str]

        def apparent(self, path: str) -> Optional[Stat]:
            """Return what is at a canonical path."""


TIMEOUT = 60.0  # seconds, as in an apply
LARGEST = 64 << 20  # bytes of planned files that a validator gets
PRIVATE = "/etc/.statecfg-trial"  # a directory that exists only in the view
HIDDEN = "its output is not shown because the content contains a secret"
ABSENT = "no such program in memory"  # what the machine of tests says, which has no programs
MOST = 4000  # characters of a validator's output in an error

# Runs in a new process on the host, and replaces itself by the validator. It ends with a message if this host does not
# allow it to make the view.
VIEW = r"""
import base64, ctypes, json, os, stat, sys
order = json.loads(sys.stdin.buffer.read())
libc = ctypes.CDLL(None, use_errno=True)
UNSEEN = "autofs", "ceph", "cifs", "nfs", "nfs4", "smb3"  # a server may not answer
whole = True

def mount(source, target, kind, flags, data=""):
    if libc.mount(source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), data.encode()):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)

def mounted():
    found = {}
    with open("/proc/self/mountinfo", "rb") as stream:
        for line in stream:
            fields = line.split(b" ")
            path = fields[4].decode("unicode_escape").encode("latin-1")
            found[os.fsdecode(path)] = fields[fields.index(b"-", 6) + 1].decode()
    return found

def within(path, above):
    return path == above or path.startswith(above.rstrip("/") + "/")

def cover(path, number):
    lower = os.open(path, os.O_PATH | os.O_DIRECTORY)
    own = "%s/%d" % (memory, number)
    for name in ("/upper", "/work"):
        os.makedirs(own + name)
    info = os.stat(path)
    os.chown(own + "/upper", info.st_uid, info.st_gid)
    os.chmod(own + "/upper", info.st_mode & 0o7777)
    data = "lowerdir=/proc/self/fd/%d,upperdir=%s/upper,workdir=%s/work" % (lower, own, own)
    mount("overlay", path, "overlay", 0, data)

def above(path):  # other users may put links in their directories at any moment, also links to the real host
    here = os.open("/", os.O_PATH | os.O_DIRECTORY)
    for name in path.split("/")[1:-1]:
        try:
            os.mkdir(name, 0o755, dir_fd=here)
        except FileExistsError:
            pass
        below = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
        os.close(here)
        here = below
    return here

def put(path, kind, mode, owner, data):
    parent, name = above(path), path.rpartition("/")[2]
    here = "/proc/self/fd/%d/%s" % (parent, name)
    real_directory = os.path.isdir(here) and not os.path.islink(here)
    if os.path.lexists(here) and not (kind == "directory" and real_directory):
        if real_directory:
            import shutil
            shutil.rmtree(here)
        else:
            os.unlink(here)
        real_directory = False
    if kind == "symlink":
        os.symlink(data, here)
        os.chown(here, owner[0], owner[1], follow_symlinks=False)
    elif kind:
        if kind == "directory" and not real_directory:
            os.mkdir(here)
        flags = os.O_DIRECTORY if kind == "directory" else os.O_WRONLY | os.O_CREAT | os.O_EXCL
        opened = os.open(here, flags | os.O_NOFOLLOW, 0o600)
        if kind == "file":
            with open(opened, "wb", closefd=False) as stream:
                stream.write(base64.b64decode(data))
        os.fchown(opened, owner[0], owner[1])
        os.fchmod(opened, mode)
        os.close(opened)
    os.close(parent)

if libc.unshare(0x20000):
    sys.exit("it allows no mount namespace")
mount("none", "/", "", 0x4000 | 0x40000)  # private, with everything below
before = mounted()
tops = ["/" + name for name in sorted(os.listdir("/")) if name not in ("proc", "sys", "dev", "lost+found")]
tops = [path for path in tops if os.path.isdir(path) and not os.path.islink(path)]
places = [path for path in ("/mnt", "/media", "/srv", "/opt") if path in tops and not os.listdir(path)]
holder = (places or ["/tmp"])[0]
inside = {}
for path, kind in sorted(before.items()):
    if path in tops or within(path, "/run") or not any(within(path, top) for top in tops):
        continue
    if kind in UNSEEN or kind.startswith("fuse") or len(inside) > 200:
        whole = False
        continue
    inside[path] = os.open(path, os.O_PATH)
live = []
if "/run" in tops:  # services answer there: keep their directories and sockets
    run = "/proc/self/fd/%d/" % os.open("/run", os.O_PATH)
    kinds = {name: os.lstat(run + name).st_mode for name in os.listdir(run)}
    live = ["/run/" + name for name, mode in kinds.items() if stat.S_ISDIR(mode) or stat.S_ISSOCK(mode)]
mount("tmpfs", holder, "tmpfs", 0, "mode=1777,size=%d" % order["memory"])
memory = "/proc/self/fd/%d" % os.open(holder, os.O_PATH)
for number, path in enumerate(top for top in tops if top != holder):
    cover(path, number)
for number, (path, opened) in enumerate(sorted(inside.items()), 1000):
    if within(path, holder) or not os.path.lexists(path):
        continue
    mount("/proc/self/fd/%d" % opened, path, "", 0x1000)
    try:
        cover(path, number)
    except OSError:
        mount("none", path, "", 0x1000 | 0x20 | 0x1)  # read-only
for path in live:
    mount(run + path[5:], path, "", 0x1000 | 0x4000)
for path, *more in order["paths"]:
    if more[0] == "directory" and os.path.isdir(path) and not os.path.islink(path) and within(path, "/run"):
        continue
    if any(within(path, real) for real in (holder, *live)) or not any(within(path, top) for top in tops):
        whole = False
        continue
    put(path, *more)
os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
sys.stderr.write(order["started"] + (" whole\n" if whole else " in part\n"))
sys.stderr.flush()
try:
    os.execvp(order["argv"][0], order["argv"])
except OSError as problem:
    sys.stderr.write("%s can't be started: %s\n" % (order["argv"][0], problem.strerror))
    os._exit(127)
"""


def content_refusal(machine: Simulated, argv: Sequence[str], path: str, blob: Blob, stat: Stat) -> Optional[Result]:
    """Let a validator check new content; return an error if it refuses it.

    :param argv: the validator; statecfg replaces `{}` by the path of a file with the content
    :param path: the canonical path of this file
    :param stat: its mode, owner and group
    """
    if blob.origin:
        machine.notes.append(f"{argv[0]} checks the content in the apply: it is not known yet")
        return None
    directory, name = os.path.split(path)
    trial = f"{directory.rstrip('/')}/.statecfg-trial-{os.getpid()}"
    if _exposed(machine, directory):  # as in an apply: programs also obey files that others put next to the content
        trial = f"{PRIVATE}-{os.getpid()}/{name}"
    said = refusal(machine, [word.replace("{}", trial) for word in argv], {trial: Entry(stat, 0, blob)})
    if said is None:
        return None
    text = HIDDEN if blob.hides() else said.replace(trial, path)
    return error(f"{argv[0]} rejects the new content: {text}", text)


def refusal(machine: Simulated, argv: Sequence[str], more: Mapping[str, Entry]) -> Optional[str]:
    """Let a validator check the planned host; return its output if it refuses it.

    If only the apply can tell, add a note to `machine.notes`.

    :param more: path → file, which exists for the validator in addition to the planned ones
    """
    program = argv[0] if os.path.basename(argv[0]) != "sh" else "the validator"
    if not machine.root:
        machine.notes.append(f"{program} checks the result in the apply: it needs root to see the planned files")
        return None
    paths, whole = _paths(machine, more)
    started = f"statecfg: the view is complete {os.urandom(8).hex()}"
    order = {"argv": list(argv), "paths": paths, "started": started, "memory": 2 * LARGEST}
    source = json.dumps(order).encode()
    try:
        probe = machine.base.probe([sys.executable, "-I", "-S", "-c", VIEW], TIMEOUT, input=source, last=True)
    except OSError as problem:
        machine.notes.append(f"{program} checks the result in the apply: {problem.strerror}")
        return None
    before, mark, errors = probe.errors.decode("utf-8", "replace").partition(started)
    if not mark:
        if before != ABSENT:
            last = before.strip().rsplit("\n", 1)[-1]
            machine.notes.append(f"{program} checks the result in the apply: this host can't show it the plan ({last})")
        return None
    if probe.status == 0:
        return None
    cause = _cause(machine)
    if cause or not whole or not errors.startswith(" whole\n"):
        after = f"known after {cause}" if cause else "a plan can't show it all files"
        machine.notes.append(f"{program} does not accept the present state; the apply checks the result: {after}")
        return None
    errors = errors.partition("\n")[2]
    text = "\n".join(filter(None, (errors.strip(), probe.text.strip())))
    return text[-MOST:] or f"exit status {probe.status}"


def _exposed(machine: Simulated, directory: str) -> bool:
    """Tell whether other users than root can put files in a directory, or exchange it, after the plan."""
    here = directory
    while True:
        stat = machine.apparent(here)
        sticky = here != directory and stat is not None and stat.mode & 0o1000
        if stat is not None and (stat.owner != "root" or (stat.mode & 0o022 and not sticky)):
            return True
        if here in ("/", ""):
            return False
        here = os.path.dirname(here)


def _cause(machine: Simulated) -> str:
    """Return a node that changes files, accounts or packages in a way that a validator can't see, "" if none does.

    A node that the present node requires comes first.
    """
    kinds = ("packages", "users", "groups")
    found = [cause.node for cause in machine.causes if cause.paths or cause.facets & {"*", FILES, *kinds}]
    found += [machine.ticks[when] for name in kinds for _, when in machine.facets.get(name, {}).values()]
    return next((node for node in found if node in machine.before.ancestors), found[0] if found else "")


def _paths(machine: Simulated, more: Mapping[str, Entry]) -> Tuple[List[Any], bool]:
    """Return the planned files as data, and whether they are complete."""
    paths: List[Any] = []
    whole, room = True, LARGEST
    for path, entry in sorted({**machine.entries, **more}.items()):
        stat, blob = entry.stat, entry.blob
        if stat is None:
            paths.append((path, "", 0, (0, 0), ""))
        elif stat.file_type in ("directory", "symlink"):
            paths.append((path, stat.file_type, stat.mode, _ids(stat), stat.target))
        elif stat.file_type == "file" and blob is not None:
            room -= blob.size
            readable = not blob.origin and (blob.data is not None or blob.path is not None)
            if room < 0 or not readable:
                whole = False
                continue
            paths.append((path, "file", stat.mode, _ids(stat), base64.b64encode(blob.read()).decode()))
    return paths, whole


def _ids(stat: Stat) -> Tuple[int, int]:
    """Return the numbers of owner and group; those of root for names that the host does not know yet."""
    try:
        return files.ids(stat.owner, stat.group)
    except LookupError:
        return 0, 0
