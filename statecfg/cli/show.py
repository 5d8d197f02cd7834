"""Shows a report in every form that was asked for."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

import click

from statecfg.cli import exit_codes
from statecfg.cli.options import Output
from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.machine import durable
from statecfg.views import stream
from statecfg.views.lines import Line


def lines(shown: Iterable[Line], output: Output, target: TextIO | None = None) -> None:
    """Write lines for people to stdout, or to stderr where stdout is taken by JSON."""
    to = target or (sys.stderr if output.json else sys.stdout)
    stream.write(shown, to, stream.coloured(to, output.no_color))


class Unwritten(StatecfgError):
    """What there is to say can't be written; `code` is the exit status."""

    code = exit_codes.UNWRITTEN


@contextlib.contextmanager
def telling(code: int) -> Iterator[None]:
    """While entered, what can't be written ends the command: with `code`, unless that is "done"."""
    try:
        yield
    except Unwritten as problem:
        problem.code = code or exit_codes.UNWRITTEN
        raise


def report(document: Mapping[str, Any], shown: Iterable[Line], output: Output) -> None:
    """Write a report: the files that were asked for, then JSON or lines on stdout.

    Parameters: `document` the report, redacted; `shown` the same for people; `output` what was asked for. Raises
    Unwritten where one of them can't be written, after the others were.
    """
    failed: list[Unwritten] = []
    for name, text in _files(document, output):
        try:
            into_file(name, text)
        except Unwritten as problem:
            failed.append(problem)
    try:
        if output.json:
            from statecfg.views import as_json

            sys.stdout.write(as_json.text(document))
            sys.stdout.flush()
        else:
            lines(shown, output)
    except BrokenPipeError:
        raise
    except OSError as problem:
        failed.append(Unwritten(f"standard output: {problem.strerror}"))
    if failed:
        raise failed[0]


def _files(document: Mapping[str, Any], output: Output) -> Iterator[tuple[str, str]]:
    if output.json_into:
        from statecfg.views import as_json

        yield output.json_into, as_json.text(document)
    if output.markdown_into:
        from statecfg.views import markdown

        yield output.markdown_into, markdown.text(document)


def check_files(*names: str | None) -> None:
    """Refuse a file that can't be written before anything is done: afterwards it would be too late to say so.

    Raises click.FileError.
    """
    for name in filter(None, names):
        path = Path(name)
        if path.is_dir():
            raise click.FileError(name, "it is a directory")
        if not path.parent.is_dir():
            raise click.FileError(name, f"there is no directory {path.parent}")
        if not os.access(path if path.exists() and not path.is_file() else path.parent, os.W_OK):
            raise click.FileError(name, "permission denied")


def into_file(name: str, text: str | bytes) -> None:
    """Write `text` into a file, all of it or nothing. Raises Unwritten."""
    path = Path(name)
    data = text.encode() if isinstance(text, str) else text
    try:
        if path.exists() and not path.is_file():
            # /dev/stdout, a pipe or $GITHUB_STEP_SUMMARY's kin: nothing to rename over.
            path.write_bytes(data)
        else:
            durable.replace(str(path.resolve()), [data], 0o666)
    except OSError as problem:
        raise Unwritten(f"{name}: {problem.strerror}") from problem
