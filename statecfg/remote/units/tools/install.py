"""Install the tools on a host: a directory of programs for PATH. They need only Python and the file `modules`."""

from __future__ import annotations

import hashlib
import marshal
import os
import shutil
import sys
import time
from importlib.util import MAGIC_NUMBER, find_spec

from statecfg.remote.machine import durable
from statecfg.remote.units.tools.catalogue import TOOLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any, Dict, Tuple

FOLDER = "tools"
CURRENT = "current"  # the link to the newest directory
CODE = "modules"  # the file with the code of all tools
PROGRAM = "tool"  # the file that all tools are links to
OLD = 30 * 86400  # seconds after which tools that no run has used are deleted
LONGEST = 120  # maximum bytes of a first line that every kernel reads
NAMES = ("catalogue", "client", "commands", "input", "options", "output", "start", "yaml_text")
MODULES = (
    *("statecfg.remote", "statecfg.remote.graph", "statecfg.remote.graph.errors"),
    *("statecfg.remote.units", "statecfg.remote.units.amp", "statecfg.remote.units.tools"),
    *(f"statecfg.remote.units.tools.{name}" for name in NAMES),
)
TEXT = """import marshal
with open(%r, "rb") as stream:
    modules = marshal.load(stream)
names = {"__name__": "statecfg.remote.units.tools.start"}
exec(modules["statecfg.remote.units.tools.start"][1], names)
names["run"](modules)
"""


def install(state_dir: str, python: str = sys.executable) -> str:
    """Install the tools unless they are installed already; return their directory.

    The directory's name is a digest of its content, so a running program keeps the tools that it was started with.

    :param state_dir: the state directory
    :param python: absolute path of the Python that runs the tools. It must be the one that runs this function, because
        that one compiles the code
    :raises OSError: the tools can't be written
    """
    # In version 2 of the format, equal code gives equal bytes.
    code = marshal.dumps(_modules(), 2)
    above = os.path.join(state_dir, FOLDER)
    digest = hashlib.sha256(os.fsencode(f"{python} {above} ") + TEXT.encode() + MAGIC_NUMBER + code).hexdigest()[:32]
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
    """Return the modules that the tools need: name → whether it is a package, and its code."""
    modules = {"statecfg": (True, compile("", "statecfg/__init__.py", "exec"))}
    for name in MODULES:
        spec = find_spec(name)
        assert spec is not None and spec.loader is not None
        loader: Any = spec.loader
        modules[name] = (spec.submodule_search_locations is not None, loader.get_code(name))
    return modules


def _program(python: str, code: str) -> bytes:
    """Return the content of the program file. It is the same for all tools; the name of the link selects the tool."""
    first = os.fsencode(f"#!{python} -ISXutf8\n")
    if len(first) > LONGEST or len(first.split()) != 2:
        # A shell starts the Python that the kernel can't start. For Python, the shell's line is an unused string.
        quoted = python.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("`", "\\`")
        first = os.fsencode(f"#!/bin/sh\n'''exec' \"{quoted}\" -ISXutf8 \"$0\" \"$@\"\n' '''\n")
    return first + (TEXT % os.fsencode(code)).encode("ascii")


def _whole(folder: str, files: Dict[str, Tuple[bytes, int]]) -> bool:
    """Return whether a directory contains all files and links unchanged."""
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
    """Create a directory of tools atomically. `durable.put` can't do this: it makes one file or link."""
    trial = f"{folder}.{os.getpid()}"
    shutil.rmtree(trial, ignore_errors=True)
    os.mkdir(trial, 0o700)
    for name, (data, mode) in files.items():
        durable.create(os.path.join(trial, name), [data], mode)
        os.chmod(os.path.join(trial, name), mode)  # the umask does not count
    for name in TOOLS:
        os.symlink(PROGRAM, os.path.join(trial, name))
    if os.path.lexists(folder):
        shutil.rmtree(folder)
    os.rename(trial, folder)


def _point(above: str, digest: str) -> None:
    link = os.path.join(above, CURRENT)
    if not os.path.islink(link) or os.readlink(link) != digest:
        durable.put(link, lambda trial: os.symlink(digest, trial))


def _sweep(above: str, digest: str) -> None:
    """Delete tools that no run has used for a long time."""
    for name in os.listdir(above):
        path = os.path.join(above, name)
        if name not in (digest, CURRENT) and time.time() - os.lstat(path).st_mtime > OLD:
            shutil.rmtree(path, ignore_errors=True) if not os.path.islink(path) else os.unlink(path)
