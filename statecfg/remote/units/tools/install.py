"""The tools' files on a host: a directory of programs for PATH, which need nothing but a Python and the file beside."""

from __future__ import annotations

import hashlib
import marshal
import os
import shutil
import sys
import time
from importlib.util import MAGIC_NUMBER, find_spec

from statecfg.remote.units.tools.catalogue import TOOLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any, Dict, Tuple

FOLDER = "tools"
CURRENT = "current"  # the link to the newest directory
CODE = "modules"  # the file that all tools read
PROGRAM = "tool"  # the file that all of them are links to
OLD = 30 * 86400  # seconds after which what no run has put on a PATH is thrown away
LONGEST = 120  # bytes of a first line that every kernel reads
NAMES = ("catalogue", "client", "commands", "input", "options", "output", "start", "yaml_text")
MODULES = (
    *("statecfg.remote", "statecfg.remote.graph", "statecfg.remote.graph.errors"),
    *("statecfg.remote.units", "statecfg.remote.units.amp", "statecfg.remote.units.tools"),
    *("statecfg.remote.units.tools.%s" % name for name in NAMES),
)
TEXT = """import marshal
with open(%r, "rb") as stream:
    modules = marshal.load(stream)
names = {"__name__": "statecfg.remote.units.tools.start"}
exec(modules["statecfg.remote.units.tools.start"][1], names)
names["run"](modules)
"""


def install(place: str, python: str = sys.executable) -> str:
    """Put the tools in their place, unless they are there; return the directory that has them.

    It is named by its content, so that a program that is still running keeps the tools it was started with.

    :param place: where this host's record is kept
    :param python: the absolute path of the Python that runs them: the one that runs this, since it made the code
    :raises OSError: where they can't be written
    """
    # Of this version of the format, the same code is the same bytes.
    code = marshal.dumps(_modules(), 2)
    above = os.path.join(place, FOLDER)
    digest = hashlib.sha256(os.fsencode("%s %s " % (python, above)) + TEXT.encode() + MAGIC_NUMBER + code).hexdigest()[
        :32
    ]
    folder = os.path.join(above, digest)
    os.makedirs(above, 0o700, exist_ok=True)
    files = {CODE: (code, 0o600), PROGRAM: (_program(python, os.path.join(folder, CODE)), 0o700)}
    if not _whole(folder, files):
        _make(folder, files)
    os.utime(folder)
    _point(above, digest)
    _sweep(above, digest)
    return folder


def _modules() -> Dict[str, Tuple[bool, CodeType]]:
    """Return the modules that tools need: name → is it a package, its code."""
    found = {"statecfg": (True, compile("", "statecfg/__init__.py", "exec"))}
    for name in MODULES:
        spec = find_spec(name)
        assert spec is not None and spec.loader is not None
        loader: Any = spec.loader
        found[name] = (spec.submodule_search_locations is not None, loader.get_code(name))
    return found


def _program(python: str, code: str) -> bytes:
    """Return the text of a tool's file, all the same: which tool it is, its name says."""
    first = os.fsencode("#!%s -ISXutf8\n" % python)
    if len(first) > LONGEST or len(first.split()) != 2:
        # A shell starts what the kernel can't; Python takes the same line for a text that nobody uses.
        quoted = python.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("`", "\\`")
        first = os.fsencode("#!/bin/sh\n'''exec' \"%s\" -ISXutf8 \"$0\" \"$@\"\n' '''\n" % quoted)
    return first + (TEXT % os.fsencode(code)).encode("ascii")


def _whole(folder: str, files: Dict[str, Tuple[bytes, int]]) -> bool:
    """Tell whether a directory has all that it should, unharmed."""
    try:
        for name, (data, mode) in files.items():
            path = os.path.join(folder, name)
            with open(path, "rb") as stream:
                if stream.read() != data or os.fstat(stream.fileno()).st_mode & 0o777 != mode:
                    return False
        return all(os.readlink(os.path.join(folder, name)) == PROGRAM for name in TOOLS)
    except OSError:
        return False


def _make(folder: str, files: Dict[str, Tuple[bytes, int]]) -> None:
    """Make a directory of tools, whole or not at all."""
    trial = "%s.%d" % (folder, os.getpid())
    shutil.rmtree(trial, ignore_errors=True)
    os.mkdir(trial, 0o700)
    for name, (data, mode) in files.items():
        with open(os.open(os.path.join(trial, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
    for name in TOOLS:
        os.symlink(PROGRAM, os.path.join(trial, name))
    if os.path.lexists(folder):
        shutil.rmtree(folder)
    os.rename(trial, folder)


def _point(above: str, digest: str) -> None:
    link = os.path.join(above, CURRENT)
    if not os.path.islink(link) or os.readlink(link) != digest:
        trial = "%s.%d" % (link, os.getpid())
        if os.path.lexists(trial):
            os.unlink(trial)
        os.symlink(digest, trial)
        os.rename(trial, link)


def _sweep(above: str, digest: str) -> None:
    """Throw away the tools that no run has used for a long time."""
    for name in os.listdir(above):
        path = os.path.join(above, name)
        if name not in (digest, CURRENT) and time.time() - os.lstat(path).st_mtime > OLD:
            shutil.rmtree(path, ignore_errors=True) if not os.path.islink(path) else os.unlink(path)
