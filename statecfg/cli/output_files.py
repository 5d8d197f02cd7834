"""Files that receive output: check before a run that they can be written, and write them in one step."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterable, Iterator

import click

from statecfg.cli import exit_codes
from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.machine import durable

_LINKS = 40  # that lead to a file; the kernel's limit


class Unwritten(StatecfgError):
    """Output can't be written; `code` is the exit status."""

    code = exit_codes.UNWRITTEN


@contextlib.contextmanager
def telling(code: int) -> Iterator[None]:
    """While entered, let a failed write (Unwritten) end the command with `code`, or with UNWRITTEN if `code` is 0."""
    try:
        yield
    except Unwritten as problem:
        problem.code = code or exit_codes.UNWRITTEN
        raise


def check_files(*names: str | None) -> None:
    """Check before a run that its output files can be written.

    :param names: paths; None and "" are ignored
    :raises click.FileError: a file can't be written
    """
    for name in filter(None, names):
        if _descriptor(name) is not None:
            continue
        path = os.path.realpath(name)
        info, parent = _stat(name, path), os.path.dirname(path)
        if info is not None and stat.S_ISDIR(info.st_mode):
            raise click.FileError(name, "it is a directory")
        if _stat(name, parent) is None:
            raise click.FileError(name, f"directory {parent} does not exist")
        writes = parent if info is None or stat.S_ISREG(info.st_mode) else path
        if not os.access(writes, os.W_OK):
            raise click.FileError(name, "permission denied")


def _stat(name: str, path: str) -> os.stat_result | None:
    """Return the status of a path, None if it does not exist.

    :raises click.FileError: it is not accessible; the error shows `name`
    """
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise click.FileError(name, problem.strerror) from problem


def replaced(name: str) -> str | None:
    """Return the real path of an output file that is replaced in one step; None for pipes, devices and open files."""
    path = os.path.realpath(name)
    regular = os.path.isfile(path) or not os.path.exists(path)
    return path if regular and _descriptor(name) is None else None


def _descriptor(name: str) -> int | None:
    """Return the number of the open file that a path such as /dev/stdout names; None for other paths."""
    own, path = f"/proc/{os.getpid()}/fd", os.path.abspath(name)
    for _ in range(_LINKS):
        parent, last = os.path.split(path)
        if os.path.realpath(parent) == own and last.isdecimal():
            return int(last)
        if not os.path.islink(path):
            return None
        path = os.path.join(parent, os.readlink(path))
    return None


def into_file(name: str, content: str | bytes | Iterable[str]) -> None:
    """Write a file. A regular file is replaced in one step.

    :param content: the content, or its pieces
    :raises Unwritten: the file can't be written
    """
    texts = [content] if isinstance(content, str) else content
    pieces = [texts] if isinstance(texts, bytes) else (text.encode() for text in texts)
    path = replaced(name)
    try:
        if path is not None:
            durable.replace(path, pieces, 0o666)
            return
        descriptor = _descriptor(name)
        # What is written to /dev/stdout follows what was written before, also if stdout is a regular file.
        sys.stdout.flush()
        with open(name, "wb") if descriptor is None else os.fdopen(os.dup(descriptor), "wb") as stream:
            stream.writelines(pieces)
    except OSError as problem:
        raise Unwritten(f"{name}: {problem.strerror}") from problem
