"""The options of a command's output."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from statecfg.problems.frozen import dataclass

if TYPE_CHECKING:
    from statecfg.cli.report_file import ReportFile
    from statecfg.views.json_stream import HostStream, JsonStream


@dataclass(frozen=True)
class OutputOptions:
    """What to show, and where.

    :param verbose: 0 to 2
    :param diff: show complete differences
    :param json: write the report to stdout as JSON, during the run
    :param json_lines: write the report to stdout as JSON lines, during the run
    :param json_into: a file for the report as JSON
    :param markdown_into: a file for the report as Markdown
    :param no_color: use no colors
    :param detailed_exitcode: exit with code 2 if changes are pending
    :param stream: writes JSON or JSON lines to stdout during the run; None without them
    :param file: writes `json_into` during the run; None without it
    """

    verbose: int = 0
    diff: bool = False
    json: bool = False
    json_lines: bool = False
    json_into: str | None = None
    markdown_into: str | None = None
    no_color: bool = False
    detailed_exitcode: bool = False
    stream: JsonStream | None = None
    file: ReportFile | None = None

    @property
    def streams(self) -> list[HostStream]:
        """What receives each host when it finishes."""
        both: tuple[HostStream | None, ...] = (self.stream, self.file)
        return [stream for stream in both if stream is not None]


def with_file(output: OutputOptions) -> OutputOptions:
    """Return the options with the file of `json_into`, which is deleted if the command ends without a report."""
    if not output.json_into:
        return output
    from statecfg.cli.report_file import ReportFile

    file = ReportFile(output.json_into)
    click.get_current_context().call_on_close(file.discard)
    return replace(output, file=file)
