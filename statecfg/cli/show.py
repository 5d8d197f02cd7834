"""Write a report in the requested forms: lines, JSON and Markdown."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TextIO

import click

from statecfg.cli import exit_codes
from statecfg.cli.options import OutputOptions
from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.machine import durable
from statecfg.run.report_model import Report
from statecfg.views import stream
from statecfg.views.lines import Line


def lines(content: Iterable[Line], output: OutputOptions, target: TextIO | None = None) -> None:
    """Write lines for people to `target`. Default: stdout, or stderr if stdout receives JSON."""
    to = target or (sys.stderr if output.json or output.json_lines else sys.stdout)
    stream.write(content, to, stream.coloured(to, output.no_color))


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


def report(document: Report, content: Iterable[Line], output: OutputOptions) -> None:
    """Write a report to the requested files, and as JSON, JSON lines or lines for people to stdout.

    :param document: the report, redacted
    :param content: its lines for people
    :raises Unwritten: one of them can't be written; the others are written first
    :raises BrokenPipeError: the reader of stdout has ended; the files are written first
    """
    targets = [partial(into_file, name, pieces) for name, pieces in _files(document, output)]
    last = partial(_to_stdout, document, content, output)
    # What has begun on stdout ends before the files, because one of them may be /dev/stdout.
    begun = output.stream is not None and output.stream.begun
    failed: list[Unwritten | BrokenPipeError] = []
    for write in [last, *targets] if begun else [*targets, last]:
        try:
            write()
        except (Unwritten, BrokenPipeError) as problem:
            failed.append(problem)
    if failed:
        raise next((problem for problem in failed if isinstance(problem, BrokenPipeError)), failed[0])


def _to_stdout(document: Report, content: Iterable[Line], output: OutputOptions) -> None:
    try:
        if output.stream is not None:
            output.stream.end(document)
        elif output.json:
            from statecfg.views import as_json

            for piece in as_json.pieces(document):
                sys.stdout.write(piece)
            sys.stdout.flush()
        else:
            lines(content, output)
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise Unwritten(f"standard output: {problem.strerror}") from problem


def _files(document: Report, output: OutputOptions) -> Iterator[tuple[str, Iterable[str]]]:
    if output.json_into:
        from statecfg.views import as_json

        yield output.json_into, as_json.pieces(document)
    if output.markdown_into:
        from statecfg.views import markdown

        yield output.markdown_into, [markdown.text(document)]


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
