"""The entry point: find the command, run it, and turn every result into an exit status."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import click

from statecfg.cli import exit_codes

if TYPE_CHECKING:
    from statecfg.store import StoreError
    from statecfg.views.json_stream import JsonStream
    from statecfg.views.problems import ProblemData

COMPLETION = "_STATECFG_COMPLETE"
VERSION = "0.4.0"

# Verb → (module, its text in the overview). A module is imported only when its verb is used, so that help is fast.
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
    "explain": ("explain", "Explain a node, a variable or a host: where it is defined, and what determines it."),
    "roles": ("roles", "Show roles and their parameters."),
    "inventory": ("inventory", "Show hosts, groups and variables, and where each value comes from."),
    "hosts": ("hosts", "Show the hosts in the store; tag them, bind playbooks to them, forget them."),
    "hook": (
        "hook.command",
        "Manage hooks: programs that are called when something happens to a host.",
    ),
    "entity": ("entity.command", "Define types; create, change and delete entities of these types."),
    "secret": ("secret", "Rotate or show secrets that hosts generated."),
    "serve": ("serve", "Serve the entity API and the page that shows hosts, runs and entities."),
    "service": ("service", "Show services, units and relations; change settings, resolve failures."),
    "store": ("store", "Maintain the controller's database: check, back up, migrate."),
    "fmt": ("fmt", "Format YAML files; keep comments, order and blank lines."),
    "schema": ("schema", "Print JSON Schemas for editors."),
    "completion": ("completion", "Print a shell completion script."),
}


class Verbs(click.Group):
    """The group of all verbs. It imports the module of a verb when the verb is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order of the overview."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a verb, or None if the verb is unknown."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(f"statecfg.cli.{VERBS[cmd_name][0]}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command. The error for an unknown verb suggests a similar one."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            from statecfg.problems import did_you_mean, sentence

            ctx.fail(f"Unknown command `{args[0]}`.{sentence(did_you_mean(args[0], VERBS))}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the overview without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl([(verb, text) for verb, (_, text) in VERBS.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first steps and the meanings of the exit status."""
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
                "outcome is unknown · 4 a host could not be reached · 5 bad input, no host was changed · 6 the saved "
                "plan is stale · 7 another run has locked the host · 8 the store failed · 74 the report could not be "
                "written · 129, 130, 143 ended by SIGHUP, Ctrl-C, SIGTERM"
            )


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION, "-V", "--version", prog_name="statecfg", message="%(prog)s %(version)s")
def statecfg() -> None:
    """Describe machines as a graph of resources, see exactly what would change, and make exactly these changes.

    Many options can also be set in the environment as STATECFG_OPTION, such as STATECFG_FORKS=32.
    """


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and end the process with its exit status (see `exit_codes`).

    :param arguments: the arguments without the program's name; None for those of the process
    """
    # Modules and nearly all objects live until the process ends, so frequent collections would find no garbage.
    gc.set_threshold(250_000, 20, 20)
    _open_all()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # both are TextIOWrapper
    code = exit_codes.DONE
    try:
        code = status(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        code = _quiet_pipe()
    with contextlib.suppress(OSError):  # the reader of stderr may have ended, and the exit status counts
        sys.stderr.flush()
    # Everything is closed and written. A normal interpreter shutdown would take as long as all the work with a host.
    os._exit(code)


def _open_all() -> None:
    """Open /dev/null for the standard streams that the caller closed, so that no file or socket gets their numbers."""
    while (handle := os.open(os.devnull, os.O_RDWR)) < 3:
        pass
    os.close(handle)
    sys.stdin = sys.stdin or open(0, closefd=False)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)
    sys.stderr = sys.stderr or open(2, "w", closefd=False)


def status(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    :param arguments: the arguments without the program's name; None for those of the process
    :raises BrokenPipeError: the reader of the output has ended
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    streams: list[JsonStream] = []  # what writes a report to stdout during a run
    try:
        if COMPLETION in os.environ:
            statecfg.main(words, "statecfg", COMPLETION)
        # click's own `main` would turn a broken pipe into exit status 1.
        with statecfg.make_context("statecfg", words, obj=streams) as context:
            result = statecfg.invoke(context)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except (click.Abort, KeyboardInterrupt):
        _close(streams, "interrupted")
        return _say("Interrupted.", exit_codes.INTERRUPTED)
    except click.ClickException as problem:
        return _misused(problem, words, streams)
    except BrokenPipeError:
        raise
    except Exception as problem:
        return _explain(problem, words, streams)
    return result if isinstance(result, int) else exit_codes.DONE


def _misused(problem: click.ClickException, words: Sequence[str], streams: Sequence[JsonStream]) -> int:
    """Show what is wrong with the command line in the form of all user errors; return the exit status."""
    from statecfg.views import stream
    from statecfg.views.problems import failure_lines

    if type(problem).__name__ == "NoArgsIsHelpError":  # without any argument, show the help without an error
        click.echo(problem.format_message(), err=True)
        return exit_codes.BAD_INPUT
    about = " ".join(["statecfg", *words[:1]]) if words and not words[0].startswith("-") else "statecfg"
    if isinstance(problem, click.UsageError) and problem.ctx:
        about = problem.ctx.command_path
    wrong, help = problem.format_message(), f"`{about} --help` shows what the command takes"
    if _wants_json(words):
        _as_json(words, streams, [{"code": "usage", "summary": wrong, "detail": "", "help": help, "places": []}])
    lines = failure_lines("wrong command line; no host was changed", wrong, help)
    stream.write(lines, sys.stderr, stream.coloured(sys.stderr, "--no-color" in words))
    return exit_codes.BAD_INPUT


def _explain(problem: Exception, words: Sequence[str], streams: Sequence[JsonStream]) -> int:
    """Show the user's mistakes and failed writes, and return the exit status. Raise any other error again, as a bug."""
    from statecfg.problems import InvalidInput, StalePlan
    from statecfg.store import StoreError

    if isinstance(problem, StoreError):
        return _store_failed(problem, words, streams)
    if type(problem).__name__ == "Unwritten":  # defined in `output_files`, which is not imported for this
        _close(streams, "unwritten")
        _nowhere()
        return _say(f"error: can't write {problem}", getattr(problem, "code", exit_codes.UNWRITTEN))
    if isinstance(problem, OSError) and problem.errno in _FULL and problem.filename is None:
        _nowhere()
        return _say(f"error: can't write standard output: {problem.strerror}", exit_codes.UNWRITTEN)
    if not isinstance(problem, InvalidInput):
        problem.add_note("This is a bug in statecfg. Please report it with the lines above.")
        raise problem
    from pathlib import Path

    from statecfg.views import stream
    from statecfg.views.problems import problem_data, problem_lines

    stale = isinstance(problem, StalePlan)
    if _wants_json(words):
        _as_json(words, streams, problem_data(problem.problems), "stale" if stale else "bad-input")
    no_color = "--no-color" in words
    stream.write(problem_lines(problem.problems, Path.cwd()), sys.stderr, stream.coloured(sys.stderr, no_color))
    return exit_codes.STALE if stale else exit_codes.BAD_INPUT


def _store_failed(problem: StoreError, words: Sequence[str], streams: Sequence[JsonStream]) -> int:
    """Show why the store can't be used and what to do; return the exit status."""
    from statecfg.views import stream
    from statecfg.views.problems import failure_lines

    if _wants_json(words):
        detail, help = problem.detail, problem.help
        wrong: ProblemData = {"code": "store", "summary": "store failed", "detail": detail, "help": help, "places": []}
        _as_json(words, streams, [wrong], "store")
    lines = failure_lines("store failed", problem.detail, problem.help)
    stream.write(lines, sys.stderr, stream.coloured(sys.stderr, "--no-color" in words))
    return exit_codes.STORE


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def _wants_json(words: Sequence[str]) -> bool:
    return any(_given(words, flag) for flag in ("--json", "--json-lines"))


def _given(words: Sequence[str], flag: str) -> bool:
    """Return whether a flag is among the words, or set in the environment."""
    variable = "STATECFG_" + flag[2:].replace("-", "_").upper()
    return flag in words or os.environ.get(variable, "").lower() in ("1", "true", "yes", "on")


def _as_json(
    words: Sequence[str], streams: Sequence[JsonStream], problems: list[ProblemData], error: str = "bad-input"
) -> None:
    """Write to stdout, for programs, the problems that people read on stderr."""
    from statecfg.views import as_json, json_lines

    wrong = {"format": 1, "error": error, "problems": problems}
    if streams:
        if not streams[0].ended:
            streams[0].fail(wrong)
        return
    lines = _given(words, "--json-lines")
    sys.stdout.write(json_lines.text({"type": "error", **wrong}) if lines else as_json.text(wrong))
    sys.stdout.flush()


def _close(streams: Sequence[JsonStream], error: str) -> None:
    """Complete what a run has begun to write to stdout, although an error ends the command."""
    with contextlib.suppress(OSError, KeyboardInterrupt):  # the exit status reports the first error
        for stream in streams:
            if stream.begun and not stream.ended:
                stream.fail({"format": 1, "error": error, "problems": []})


def _say(text: str, code: int) -> int:
    with contextlib.suppress(OSError):  # the exit status reports it, too
        click.echo(text, err=True)
    return code


def _quiet_pipe() -> int:
    # The program that read our output has ended.
    _nowhere()
    return exit_codes.BROKEN_PIPE


def _nowhere() -> None:
    """Redirect stdout to /dev/null. Otherwise Python reports the error again when it flushes the rest at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
