"""Types of arguments that name files."""

from __future__ import annotations

import os
from typing import Any

import click


class ExistingFile(click.Path):
    """The path of an existing file. The error for a missing file suggests a similar name."""

    def __init__(self, allow_dash: bool = False) -> None:
        super().__init__(exists=True, dir_okay=False, allow_dash=allow_dash)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path.

        :raises click.BadParameter: the file does not exist, or the path is a directory
        """
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as wrong:
            from statecfg.problems import suggest_file

            hint = "" if os.path.exists(value) else suggest_file(value)
            self.fail(f"{wrong.message}{f' {hint.capitalize()}' if hint else ''}", param, ctx)


class PlaybookFile(ExistingFile):
    """The path of a playbook. A missing file is the same error (SC0118) as in a playbook.

    :param what: what the path may name, for the error
    """

    def __init__(self, what: str = "playbook", allow_dash: bool = False) -> None:
        super().__init__(allow_dash)
        self.what = what

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path.

        :raises InvalidInput: the file does not exist
        :raises click.BadParameter: the path is a directory
        """
        if not os.path.exists(value) and not (self.allow_dash and value == "-"):
            from statecfg import dialects

            raise dialects.missing_playbook(value, self.what)
        return super().convert(value, param, ctx)
