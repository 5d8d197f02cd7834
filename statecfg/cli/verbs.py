"""Declare subcommands as functions that receive the open store and return their output."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from statecfg.cli import options
from statecfg.cli.options import VerbGroup
from statecfg.cli.printing import line, write
from statecfg.cli.project_store import ProjectStore
from statecfg.problems.frozen import dataclass

if TYPE_CHECKING:
    from statecfg.views.lines import Line

Function = Callable[..., Any]
JSON, COLOR = options.json_option, options.no_color_option


@dataclass(frozen=True)
class VerbResult:
    """The output of a command: lines for people, data for programs (`--json`), and the exit code."""

    lines: Iterable[Line]
    data: Any = None
    code: int = 0


def one_line(text: str, data: Any = None) -> VerbResult:
    """Return output with one line for people."""
    return VerbResult([line(text)], data)


class StoreGroup(VerbGroup):
    """A group whose verbs use a store.

    :param opens: returns the store from click's `context.obj`; each verb enters it
    """

    def __init__(self, *args: Any, opens: Callable[[Any], ProjectStore], **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.opens = opens

    def verb(
        self, name: str, examples: str, *more: Callable[[Function], Function]
    ) -> Callable[[Function], click.Command]:
        """Add a command. Its function receives the entered store and the arguments, and returns VerbResult or one line.

        :param examples: lines for the help
        :param more: the options JSON and COLOR if the command takes them; they follow its own options
        """

        def add(function: Function) -> click.Command:
            def run(context_object: Any, /, as_json: bool = False, no_color: bool = False, **values: Any) -> int:
                with self.opens(context_object) as opened:
                    result = function(opened, **values)
                output = one_line(result) if isinstance(result, str) else result
                write(output.lines, output.data, as_json, no_color)
                return int(output.code)

            for option in reversed(more):
                run = option(run)
            parameters = [*getattr(run, "__click_params__", ()), *getattr(function, "__click_params__", ())]
            functools.update_wrapper(run, function)
            run.__click_params__ = parameters  # type: ignore[attr-defined]  # click keeps parameters there
            return self.command(name, examples=examples)(click.pass_obj(run))

        return add
