"""Run user code with a time limit and without a terminal, and describe its mistakes as problems."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import io
import re
import signal
import sys
import sysconfig
import threading
import types
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NoReturn

from statecfg.graph import opaque
from statecfg.problems import InvalidInput, Problem, SourceLocation, positions, problem, suggest, tokens
from statecfg.problems.tokens import SecretError

DEADLINE = 60.0  # seconds
LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
ARITY = re.compile(
    r"(takes|missing|got (an unexpected|multiple values)|unexpected keyword)\b.*argument|positional argument"
)
UNEXPECTED = re.compile(r"(\w+)\(\) got an unexpected keyword argument '(\w+)'")
MANGLED = re.compile(r"\b[^\W\d]\w*\b")


# The macros of `statecfg.dialects.hy`, to suggest a missing `require`.
WORDS = (
    "def",
    "defmethod",
    "defnodefn",
    "defop",
    "defplay",
    "defservice",
    "make-validators",
    "node-type",
    "validator-maker",
)


class TookTooLong(BaseException):
    """The time limit has passed. Not an `Exception`, so that `except Exception` in user code does not catch it."""


class AskedForInput(BaseException):
    """User code read standard input."""


class _NoInput(io.TextIOBase):
    def readable(self) -> bool:
        return True

    def _refuse(self, *arguments: object) -> NoReturn:
        raise AskedForInput

    read = readline = readlines = __next__ = _refuse


@contextlib.contextmanager
def guarded(
    activity: str, deadline: float | None = None, state: Callable[[], str] | None = None, file: str = "?"
) -> Iterator[None]:
    """Run user code in the block. Its failures become InvalidInput.

    Its output goes to standard error, because reports use standard output.

    :param activity: what the code does, such as ``loading playbooks/web.py``
    :param deadline: time limit in seconds; default: `DEADLINE`
    :param state: returns the progress for the error message; "" for none
    :param file: the file being read, for errors without a source location
    """
    deadline = DEADLINE if deadline is None else deadline
    stdin = sys.stdin
    sys.stdin = _NoInput()
    try:
        with contextlib.redirect_stdout(sys.stderr), _limited(deadline):
            yield
    except (InvalidInput, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        explained_problem = explain(error, activity, deadline, state() if state is not None else "", file)
        if explained_problem is None:
            raise
        raise InvalidInput([explained_problem]) from error
    finally:
        sys.stdin = stdin


class explained:
    """Replace an exception of a user's function that the block calls by InvalidInput.

    :param activity: what the function does
    :param location: the source location of the node or play that it processes
    :param passed: exceptions that the caller handles
    """

    __slots__ = ("_activity", "_location", "_passed")

    def __init__(self, activity: str, location: SourceLocation, *passed: type[Exception]) -> None:
        self._activity, self._location, self._passed = activity, location, passed

    def __enter__(self) -> None:
        pass

    def __exit__(self, error_type: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, Exception) or isinstance(error, (InvalidInput, *self._passed)):
            return
        found = explain(error, self._activity, DEADLINE, self._activity)
        if found is None:
            error.add_note(f"while {self._activity} ({self._location})")
            return
        raise InvalidInput([dataclasses.replace(found, locations=(*found.locations, self._location))]) from error


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    if threading.current_thread() is threading.main_thread():
        with _by_signal(seconds):
            yield
    else:
        with _by_watchdog(seconds):
            yield


@contextlib.contextmanager
def _by_signal(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: types.FrameType | None) -> None:
        raise TookTooLong

    handler = signal.signal(signal.SIGALRM, stop)
    remaining, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, remaining, interval)
        signal.signal(signal.SIGALRM, handler)


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """Stop the time limit of the user's code in the block, in which statecfg waits for a user or a program."""
    if threading.current_thread() is not threading.main_thread():  # other threads don't ask the user
        yield
        return
    remaining, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        yield
    finally:
        if remaining:
            signal.setitimer(signal.ITIMER_REAL, remaining)


@contextlib.contextmanager
def _by_watchdog(seconds: float) -> Iterator[None]:
    # Signals reach only the main thread. In other threads, Python can raise an exception at the next instruction.
    import ctypes  # takes time to import; most playbooks are read by the main thread

    thread = ctypes.c_ulong(threading.get_ident())
    raise_in_thread = ctypes.pythonapi.PyThreadState_SetAsyncExc
    watchdog = threading.Timer(seconds, raise_in_thread, (thread, ctypes.py_object(TookTooLong)))
    watchdog.daemon = True
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()


def explain(error: BaseException, activity: str, deadline: float, state: str = "", file: str = "?") -> Problem | None:
    """Return the problem that describes an exception; None if the exception is a bug of statecfg, not of the user.

    :param activity: what the code does
    :param deadline: its time limit in seconds
    :param state: its progress; "" for none
    :param file: the file being read, for errors without a source location
    """
    frames = _user_frames(error.__traceback__)
    locations = tuple(dict.fromkeys(location for location, _ in reversed(frames)))
    tail = _tail(frames, state)
    if isinstance(error, SyntaxError) and not (locations and error.lineno is None):
        location = SourceLocation(error.filename or file, error.lineno or 1, error.offset)
        return problem("SC0501", _message(error.msg), _syntax_help(error), location)
    if isinstance(error, UnicodeDecodeError) and not locations:
        detail = f"the file is not UTF-8 text ({error.reason} at byte {error.start})"
        line = error.object.count(b"\n", 0, error.start) + 1
        return problem("SC0501", detail, "save the file as UTF-8", SourceLocation(file, line))
    if isinstance(error, SecretError):
        return problem(error.code, f"{error}{tail}", error.help, *locations)
    if isinstance(error, TookTooLong):
        detail = f"{activity} took more than {deadline:g} seconds{tail}"
        return problem("SC0507", detail, "check for a loop that never ends", *locations)
    if not locations or _is_ours(error):
        return None
    if isinstance(error, SystemExit):
        code = opaque.mask_secrets(repr(error.code))
        detail = f"the code exits the program (sys.exit {code}){tail}"
        return problem("SC0505", detail, "raise ValueError instead", *locations)
    if isinstance(error, AskedForInput):
        help = "read the value from a variable, and set it with -e name=value"
        return problem("SC0505", f"the code asks for input{tail}", help, *locations)
    if isinstance(error, NameError):
        return _unknown_name(error, tail, locations)
    if isinstance(error, ImportError):
        return _unknown_module(error, tail, locations)
    if isinstance(error, UnicodeEncodeError) and tokens.masked(error.object) != error.object:
        detail = f"text with a secret in it can't be encoded: {tokens.masked(error.object)!r:.200}{tail}"
        return problem("SC0423", detail, "pass the text itself to the node; statecfg writes it as UTF-8", *locations)
    message = _as_written(opaque.mask_secrets(_exception_text(error)) + _named_secrets(error), locations[0])
    if isinstance(error, TypeError) and ARITY.search(message):
        return problem("SC0508", message + tail, _suggest_keyword(message), *locations)
    return problem("SC0504", f"{type(error).__name__}{': ' if message else ''}{message}{tail}", "", *locations)


def _named_secrets(error: BaseException) -> str:
    """Return a hint with the names of local secrets if an operation on a secret requires plain text."""
    if not isinstance(error, TypeError) or not re.search(r"\b(Secret|Composed)\b", _exception_text(error)):
        return ""
    trace, names = error.__traceback__, dict[str, None]()
    while trace is not None:
        values = [*trace.tb_frame.f_locals.values()]
        values += [item for value in values if isinstance(value, (list, tuple)) for item in value]
        values += [item for value in values if isinstance(value, dict) for item in value.values()]
        names.update((value.name, None) for value in values if isinstance(value, opaque.Value))
        trace = trace.tb_next
    found_names = f" (secrets here: {', '.join(names)})" if names else ""
    return f'{found_names}; where text is needed, write str(secret) or f"{{secret}}"'


def _exception_text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as wrong:  # the class is user code, so this is the user's mistake
        return f"its __str__ raised {type(wrong).__name__}"


def _syntax_help(error: SyntaxError) -> str:
    if "null bytes" in str(error.msg):
        return "save the file as UTF-8 text"
    return "indent with spaces only" if isinstance(error, TabError) else ""


def _tail(frames: list[tuple[SourceLocation, str]], state: str) -> str:
    lines = [f"\nat {location} in {_as_written(name, location)}" for location, name in reversed(frames)]
    if len(lines) > 10:
        lines[5:-4] = [f"\n… {len(lines) - 9} more …"]
    return (f" ({state})" if state else "") + ("".join(lines) if len(lines) > 1 else "")


def _user_frames(trace: types.TracebackType | None) -> list[tuple[SourceLocation, str]]:
    frames = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if not positions.is_machinery(code.co_filename) and not code.co_filename.startswith(LIBRARIES):
            frames.append((_location(trace), code.co_name))
        trace = trace.tb_next
    return frames


def innermost(error: BaseException) -> SourceLocation | None:
    """Return where user code caused an exception; None if no user code was running."""
    frames = _user_frames(error.__traceback__)
    return frames[-1][0] if frames else None


def _location(trace: types.TracebackType) -> SourceLocation:
    column = None
    for index, (start, _, offset, _) in enumerate(trace.tb_frame.f_code.co_positions()):
        if index * 2 == trace.tb_lasti and start == trace.tb_lineno and offset is not None:
            column = offset + 1
    return SourceLocation(trace.tb_frame.f_code.co_filename, trace.tb_lineno, column)


def _is_ours(error: BaseException) -> bool:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    file = trace.tb_frame.f_code.co_filename if trace is not None else ""
    # The code for hosts and `graph/attributes` raise exceptions for wrong calls on purpose.
    parts = ("remote/", "resources/", "graph/attributes", "playbook/user_code", "__init__")
    allowed = tuple(positions.PACKAGE + part for part in parts)
    return file.startswith(positions.PACKAGE) and not file.startswith(allowed)


def _as_written(text: str, location: SourceLocation) -> str:
    """Return a message with names in Hy's spelling if the location is in a Hy file."""
    if not location.file.endswith(".hy") or "hy" not in sys.modules:
        return text
    unmangle: Callable[[str], str] = sys.modules["hy"].unmangle  # it compiled the file, so it is there
    return MANGLED.sub(lambda match: unmangle(match[0]) if "hyx_" in match[0] or "_" in match[0] else match[0], text)


def _message(text: object) -> str:
    return " ".join(str(text).split())


def _unknown_name(error: NameError, tail: str, locations: tuple[SourceLocation, ...]) -> Problem:
    name = error.name or ""
    written = _as_written(name, locations[0])
    also = f" ({name} in Python)" if written != name else ""
    return problem(
        "SC0503", f"the name {written} is not defined{also}{tail}", suggest_name(error, locations[0]), *locations
    )


def suggest_name(error: NameError, location: SourceLocation) -> str:
    """Return a help text with the name that was probably meant, from the names of the frame that failed."""
    trace = error.__traceback__
    names: set[str] = set()
    while trace is not None:
        names = {*trace.tb_frame.f_globals, *trace.tb_frame.f_locals}
        trace = trace.tb_next
    similar = sorted(_as_written(name, location) for name in names if not name.startswith("_"))
    name = _as_written(error.name or "", location)
    if location.file.endswith(".hy") and name in WORDS:
        return f"(require statecfg.dialects.hy [{name}])"
    hint = suggest(name, similar)
    return hint if hint.startswith("did you mean") else ""


def _suggest_keyword(message: str) -> str:
    """Return a help text with the keyword that was probably meant if the call was to one of our functions."""
    match = UNEXPECTED.match(message)
    function = getattr(import_module("statecfg"), match[1], None) if match else None
    return suggest(match[2], inspect.signature(function).parameters, "it takes") if match and callable(function) else ""


def _unknown_module(error: ImportError, tail: str, locations: tuple[SourceLocation, ...]) -> Problem:
    hint = "install the module on this machine, where the playbook runs, or put it in the playbook's directory"
    wanted = getattr(error, "name_from", None) or _wanted(str(error))
    if wanted and error.name and not isinstance(error, ModuleNotFoundError):
        module: Any = import_module(error.name)
        hint = suggest(wanted, [name for name in dir(module) if not name.startswith("_")], f"{error.name} has")
    message = _as_written(opaque.mask_secrets(str(error)), locations[0])
    return problem("SC0506", message + tail, hint, *locations)


def _wanted(message: str) -> str:
    match = re.match(r"cannot import name '([^']+)'", message)
    return match[1] if match else ""
