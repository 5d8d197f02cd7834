"""The entry point: find the command, run it, and turn every result into an exit status."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from statecfg.cli import exit_codes

if TYPE_CHECKING:
    from statecfg.store import StoreError

COMPLETION = "_STATECFG_COMPLETE"
VERSION = "0.4.0"

# Verb → (module, what it says in the overview). A module is imported when its verb is used, so that help stays quick.
VERBS = {
    "init": ("init", "Create a project: an inventory and a playbook that works immediately."),
    "validate": ("validate", "Check playbooks for every host without contacting any host."),
    "plan": ("plan", "Show exactly what would change on the hosts. Change nothing."),
    "check": ("plan", "The same as plan."),
    "show": ("show_plan", "Show a saved plan: what would change, who made it, and from which inputs."),
    "apply": ("apply", "Apply a playbook or a saved plan to its hosts."),
    "prune": ("prune", "Remove what a playbook no longer defines. Change nothing else."),
    "destroy": ("destroy", "Remove everything that a playbook owns on its hosts."),
    "verify": ("verify", "Find drift: what changed on the hosts, and what changed in the definition."),
    "run-history": ("run_history", "Show the runs that hosts recorded: who, when, what."),
    "facts": ("facts", "Show facts about hosts: system, kernel, memory, Python."),
    "graph": ("graph", "Draw the requirements between resources, as text or as a picture."),
    "inventory": ("inventory", "Show hosts, groups and variables, and where each value comes from."),
    "hosts": ("hosts", "Show the hosts in the store; tag them, bind playbooks to them, forget them."),
    "hook": (
        "hook.command",
        "Manage hooks: programs that are called when something happens to a host.",
    ),
    "entity": ("entity.command", "Define types; create, change and delete entities of these types."),
    "serve": ("serve", "Serve the entity API and the page that shows hosts, runs and entities."),
    "service": ("service", "Show services, units and relations; change settings, resolve failures."),
    "store": ("store", "Maintain the controller's database: check, back up, migrate."),
    "completion": ("completion", "Print a shell completion script."),
}


class Verbs(click.Group):
    """The verbs, each loaded when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order in which people meet them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command for a verb, or None for an unknown one."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(f"statecfg.cli.{VERBS[cmd_name][0]}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown verb gets a suggestion."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            from statecfg.remote.graph.suggestions import did_you_mean

            ctx.fail(f"There is no verb `{args[0]}`. {did_you_mean(args[0], VERBS).capitalize()}".rstrip())
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the overview without importing a single command."""
        with formatter.section("Commands"):
            formatter.write_dl([(verb, text) for verb, (_, text) in VERBS.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a first walk through the verbs, and what the exit status says."""
        with formatter.section("Start here"):
            formatter.write_dl(
                [
                    ("statecfg init demo", "create a project in ./demo"),
                    ("cd demo", ""),
                    ("statecfg plan playbooks/hello.yml", "show what would change, and how"),
                    ("statecfg apply playbooks/hello.yml", "ask, then make exactly these changes"),
                ]
            )
        with formatter.section("Exit status"):
            formatter.write_text(
                "0 done · 1 a resource or hook failed · 2 changes pending (verify, or with --detailed-exitcode) · 3 an "
                "outcome is unknown · 4 a host could not be reached · 5 bad input, nothing was touched · 6 the saved "
                "plan is stale · 7 another run holds the host · 8 the store failed · 74 the report could not be "
                "written · 129, 130, 143 ended by SIGHUP, Ctrl-C, SIGTERM"
            )


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION, "-V", "--version", prog_name="statecfg", message="%(prog)s %(version)s")
def statecfg() -> None:
    """Describe machines as a graph of resources, see exactly what would change, and make exactly these changes.

    Many options can also be set in the environment as STATECFG_OPTION, such as STATECFG_FORKS=32.
    """


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave the process with its exit status.

    Parameters: `arguments` without the program's name, None for the process's own. What
    the statuses mean is in `exit_codes`.
    """
    # What is imported stays, and so does nearly all that is made: looking through it all the time finds no garbage.
    gc.set_threshold(100_000, 20, 20)
    _open_all()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # both are TextIOWrapper
    code = exit_codes.DONE
    try:
        code = status(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        code = _quiet_pipe()
    sys.stderr.flush()
    # All is closed and written by now; taking the interpreter apart would take as long as a host's whole exchange.
    os._exit(code)


def _open_all() -> None:
    """Let the standard streams that the caller closed lead nowhere; else the next file or socket takes their place."""
    while (handle := os.open(os.devnull, os.O_RDWR)) < 3:
        pass
    os.close(handle)
    sys.stdin = sys.stdin or open(0, closefd=False)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)
    sys.stderr = sys.stderr or open(2, "w", closefd=False)


def status(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status. Lets BrokenPipeError through."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if COMPLETION in os.environ:
            statecfg.main(given, "statecfg", COMPLETION)
        # Not click's own `main`: that one makes a broken pipe exit status 1.
        with statecfg.make_context("statecfg", given) as context:
            result = statecfg.invoke(context)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _say("Interrupted.", exit_codes.INTERRUPTED)
    except click.ClickException as problem:
        return _misused(problem, given)
    except BrokenPipeError:
        raise
    except Exception as problem:
        return _explain(problem, given)
    return result if isinstance(result, int) else exit_codes.DONE


def _misused(problem: click.ClickException, given: Sequence[str]) -> int:
    """Show what is wrong with the command line, like any other mistake of the user's."""
    from statecfg.views import stream
    from statecfg.views.problems import failure_lines

    if type(problem).__name__ == "NoArgsIsHelpError":  # nothing is wrong with what was not written
        click.echo(problem.format_message(), err=True)
        return exit_codes.BAD_INPUT
    about = " ".join(["statecfg", *given[:1]]) if given and not given[0].startswith("-") else "statecfg"
    if isinstance(problem, click.UsageError) and problem.ctx:
        about = problem.ctx.command_path
    wrong, help = problem.format_message(), f"`{about} --help` shows what the command takes"
    if _wants_json(given):
        _as_json([{"code": "usage", "summary": wrong, "detail": "", "help": help, "places": []}])
    shown = failure_lines("wrong command line; nothing was touched", wrong, help)
    stream.write(shown, sys.stderr, stream.coloured(sys.stderr, "--no-color" in given))
    return exit_codes.BAD_INPUT


def _explain(problem: Exception, given: Sequence[str]) -> int:
    """Show the user's mistakes with their places, and what can't be written; let our own mistakes go up as bugs."""
    from statecfg.problems import InvalidInput, StalePlan
    from statecfg.store import StoreError

    if isinstance(problem, StoreError):
        return _store_failed(problem, given)
    if type(problem).__name__ == "Unwritten":  # of `show`, which help need not load
        _nowhere()
        return _say(f"error: can't write {problem}", getattr(problem, "code", exit_codes.UNWRITTEN))
    if isinstance(problem, OSError) and problem.errno in _FULL and problem.filename is None:
        _nowhere()
        return _say(f"error: can't write standard output: {problem.strerror}", exit_codes.UNWRITTEN)
    if not isinstance(problem, InvalidInput):
        problem.add_note("This is a mistake in statecfg, not yours. Please report it with the lines above.")
        raise problem
    from pathlib import Path

    from statecfg.views import stream
    from statecfg.views.problems import problem_data, problem_lines

    stale = isinstance(problem, StalePlan)
    if _wants_json(given):
        _as_json(problem_data(problem.problems), "stale" if stale else "bad-input")
    no_color = "--no-color" in given
    stream.write(problem_lines(problem.problems, Path.cwd()), sys.stderr, stream.coloured(sys.stderr, no_color))
    return exit_codes.STALE if stale else exit_codes.BAD_INPUT


def _store_failed(problem: StoreError, given: Sequence[str]) -> int:
    """Show why the store can't be used, and what to do."""
    from statecfg.views import stream
    from statecfg.views.problems import failure_lines

    if _wants_json(given):
        data = {"code": "store", "summary": "store failed", "detail": problem.detail, "help": problem.help}
        _as_json([{**data, "places": []}], "store")
    shown = failure_lines("store failed", problem.detail, problem.help)
    stream.write(shown, sys.stderr, stream.coloured(sys.stderr, "--no-color" in given))
    return exit_codes.STORE


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def _wants_json(given: Sequence[str]) -> bool:
    return "--json" in given or os.environ.get("STATECFG_JSON", "").lower() in ("1", "true", "yes", "on")


def _as_json(problems: list[dict[str, Any]], error: str = "bad-input") -> None:
    """Tell programs what people read on stderr."""
    from statecfg.views import as_json

    sys.stdout.write(as_json.text({"format": 1, "error": error, "problems": problems}))
    sys.stdout.flush()


def _say(text: str, code: int) -> int:
    with contextlib.suppress(OSError):  # the exit status says it, too
        click.echo(text, err=True)
    return code


def _quiet_pipe() -> int:
    # Whoever read us is gone.
    _nowhere()
    return exit_codes.BROKEN_PIPE


def _nowhere() -> None:
    """Let stdout lead nowhere: Python would complain once more when it flushes what is left at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
