"""Declare the commands of `statecfg entity` as functions that receive the open store and return their output."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from statecfg.cli import options
from statecfg.cli.answers import write
from statecfg.cli.entity.calls import EntityCalls
from statecfg.cli.options import Command

if TYPE_CHECKING:
    from statecfg.views.lines import Line

Function = Callable[..., Any]
JSON, COLOR = options.json_option, options.no_color_option


@dataclass(frozen=True)
class Result:
    """The output of a command: lines for people, data for programs (`--json`), and the exit code."""

    lines: Iterable[Line]
    data: Any = None
    code: int = 0


def said(text: str, data: Any = None) -> Result:
    """Return output with one line for people."""
    from statecfg.views.lines import make

    return Result([make(text)], data)


def verb(
    group: click.Group, name: str, examples: str, *more: Callable[[Function], Function]
) -> Callable[[Function], click.Command]:
    """Add a command to a group. Its function receives EntityCalls and the arguments, and returns Result or one line.

    :param examples: lines for the help
    :param more: the options JSON and COLOR if the command takes them
    """

    def add(function: Function) -> click.Command:
        def run(store: str | None, /, as_json: bool = False, no_color: bool = False, **values: Any) -> int:
            with EntityCalls(store) as entities:
                result = function(entities, **values)
            output = said(result) if isinstance(result, str) else result
            write(output.lines, output.data, as_json, no_color)
            return int(output.code)

        for option in reversed(more):
            run = option(run)
        parameters = [*getattr(run, "__click_params__", ()), *getattr(function, "__click_params__", ())]
        functools.update_wrapper(run, function)
        run.__click_params__ = parameters  # type: ignore[attr-defined]  # click keeps parameters there
        command: click.Command = group.command(name, cls=Command, examples=examples)(click.pass_obj(run))
        return command

    return add
