"""Shows a report in every form that was asked for."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO

import click

from statecfg.cli.options import Output
from statecfg.views import stream
from statecfg.views.lines import Line


def lines(shown: Iterable[Line], output: Output, target: TextIO | None = None) -> None:
    """Write lines for people to stdout, or to stderr where stdout is taken by JSON."""
    to = target or (sys.stderr if output.json else sys.stdout)
    stream.write(shown, to, stream.coloured(to, output.no_color))


def report(document: Mapping[str, Any], shown: Iterable[Line], output: Output) -> None:
    """Write a report: JSON or lines on stdout, and the files that were asked for.

    Parameters: `document` the report, redacted; `shown` the same for people; `output` what was asked for. Raises
    click.FileError for a file that can't be written.
    """
    if output.json:
        from statecfg.views import as_json

        sys.stdout.write(as_json.text(document))
        sys.stdout.flush()
    else:
        lines(shown, output)
    if output.json_into:
        from statecfg.views import as_json

        into_file(output.json_into, as_json.text(document))
    if output.markdown_into:
        from statecfg.views import markdown

        into_file(output.markdown_into, markdown.text(document))


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


def into_file(name: str, text: str) -> None:
    """Write `text` into a file, all of it or nothing. Raises click.FileError."""
    path = Path(name)
    if path.exists() and not path.is_file():
        # /dev/stdout, a pipe or $GITHUB_STEP_SUMMARY's kin: nothing to rename over.
        path.write_text(text, encoding="utf-8")
        return
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as problem:
        raise click.FileError(name, str(problem)) from problem
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as problem:
        os.unlink(temporary)
        raise click.FileError(name, str(problem)) from problem


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
