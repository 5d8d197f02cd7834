"""Files that receive output: check before a run that they can be written, and write them in one step."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from statecfg.cli import exit_codes
from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.machine import durable


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
        path = Path(name)
        if path.is_dir():
            raise click.FileError(name, "it is a directory")
        if not path.parent.is_dir():
            raise click.FileError(name, f"directory {path.parent} does not exist")
        if not os.access(path if path.exists() and not path.is_file() else path.parent, os.W_OK):
            raise click.FileError(name, "permission denied")


def into_file(name: str, content: str | bytes | Iterable[str]) -> None:
    """Write a file. A regular file is replaced in one step.

    :param content: the content, or its pieces
    :raises Unwritten: the file can't be written
    """
    path = Path(name)
    texts = [content] if isinstance(content, str) else content
    pieces = [texts] if isinstance(texts, bytes) else (text.encode() for text in texts)
    try:
        if path.exists() and not path.is_file():
            # /dev/stdout, a pipe and similar files can't be replaced by renaming a file.
            with path.open("wb") as stream:
                stream.writelines(pieces)
        else:
            durable.replace(str(path.resolve()), pieces, 0o666)
    except OSError as problem:
        raise Unwritten(f"{name}: {problem.strerror}") from problem
