"""Write a report in the requested forms: lines, JSON and Markdown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TextIO

from statecfg.cli.output_files import Unwritten, into_file
from statecfg.cli.output_options import OutputOptions
from statecfg.run.report_model import Report
from statecfg.views import stream
from statecfg.views.lines import Line


def lines(content: Iterable[Line], output: OutputOptions, target: TextIO | None = None) -> None:
    """Write lines for people to `target`. Default: stdout, or stderr if stdout receives JSON."""
    to = target or (sys.stderr if output.json or output.json_lines else sys.stdout)
    stream.write(content, to, stream.coloured(to, output.no_color))


def report(document: Report, content: Iterable[Line], output: OutputOptions) -> None:
    """Write a report to the requested files, and as JSON, JSON lines or lines for people to stdout.

    :param document: the report, redacted
    :param content: its lines for people
    :raises Unwritten: one of them can't be written; the others are written first
    :raises BrokenPipeError: the reader of stdout has ended; the files are written first
    """
    targets: list[Callable[[], None]] = list(_files(document, output))
    last = partial(_to_stdout, document, content, output)
    # What has begun on stdout ends before the files, because one of them may be /dev/stdout.
    begun = output.stream is not None and output.stream.begun
    failed: list[Unwritten | BrokenPipeError] = []
    order: list[Callable[[], None]] = [last, *targets] if begun else [*targets, last]
    for write in order:
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


def _files(document: Report, output: OutputOptions) -> Iterator[Callable[[], None]]:
    if output.file is not None:
        yield partial(output.file.end, document)
    if output.markdown_into:
        from statecfg.views import markdown

        yield lambda: into_file(str(output.markdown_into), markdown.text(document))
