"""Runs what users wrote as programs: within a time limit, without a terminal, its mistakes told as problems."""

from __future__ import annotations

import contextlib
import ctypes
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
from statecfg.problems.tokens import Lost

DEADLINE = 60.0  # seconds
LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
ARITY = re.compile(
    r"(takes|missing|got (an unexpected|multiple values)|unexpected keyword)\b.*argument|positional argument"
)
UNEXPECTED = re.compile(r"(\w+)\(\) got an unexpected keyword argument '(\w+)'")
MANGLED = re.compile(r"\b[^\W\d]\w*\b")


# The macros of `statecfg.dialects.hy`, for those who forgot to require one.
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
    """The time limit has passed. No `Exception`, so that users' own `except` clauses let it through."""


class AskedForInput(BaseException):
    """Something read standard input."""


class _NoInput(io.TextIOBase):
    def readable(self) -> bool:
        return True

    def _refuse(self, *arguments: object) -> NoReturn:
        raise AskedForInput

    read = readline = readlines = __next__ = _refuse


@contextlib.contextmanager
def guarded(
    doing: str, deadline: float | None = None, state: Callable[[], str] | None = None, file: str = "?"
) -> Iterator[None]:
    """Run what is inside as the user's program: anything that goes wrong in it becomes InvalidInput.

    What it prints goes to standard error, because standard output belongs to reports.

    :param doing: what it is run for, such as ``loading playbooks/web.py``
    :param deadline: seconds it may take; `DEADLINE` where not given
    :param state: says how far it has come, for the error; "" where there is nothing to say
    :param file: the file being read, for errors that know no place
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
        found = explain(error, doing, deadline, state() if state is not None else "", file)
        if found is None:
            raise
        raise InvalidInput([found]) from error
    finally:
        sys.stdin = stdin


@contextlib.contextmanager
def explained(doing: str, place: SourceLocation, *passed: type[Exception]) -> Iterator[None]:
    """Turn an exception in a function of the user's that is called inside into InvalidInput.

    :param doing: what it is called for
    :param place: of what it is called about
    :param passed: exceptions that mean something to the caller
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, (InvalidInput, *passed)):
            raise
        found = explain(error, doing, DEADLINE, doing)
        if found is None:
            error.add_note(f"while {doing} ({place})")
            raise
        raise InvalidInput([dataclasses.replace(found, places=(*found.places, place))]) from error


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
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left, interval)
        signal.signal(signal.SIGALRM, handler)


@contextlib.contextmanager
def _by_watchdog(seconds: float) -> Iterator[None]:
    # Signals reach the main thread only; in others Python can be told to raise at its next instruction.
    here = ctypes.c_ulong(threading.get_ident())
    raise_there = ctypes.pythonapi.PyThreadState_SetAsyncExc
    watchdog = threading.Timer(seconds, raise_there, (here, ctypes.py_object(TookTooLong)))
    watchdog.daemon = True
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()


def explain(error: BaseException, doing: str, deadline: float, state: str = "", file: str = "?") -> Problem | None:
    """Return the problem that an exception stands for; None where it is no mistake of the user's but ours."""
    frames = _user_frames(error.__traceback__)
    places = tuple(dict.fromkeys(place for place, _ in reversed(frames)))
    tail = _tail(frames, state)
    if isinstance(error, SyntaxError) and not (places and error.lineno is None):
        place = SourceLocation(error.filename or file, error.lineno or 1, error.offset)
        return problem("SC0501", _message(error.msg), _cure(error), place)
    if isinstance(error, UnicodeDecodeError) and not places:
        detail = f"the file is no UTF-8 text ({error.reason} at byte {error.start})"
        line = error.object.count(b"\n", 0, error.start) + 1
        return problem("SC0501", detail, "save the file as UTF-8", SourceLocation(file, line))
    if isinstance(error, Lost):
        return problem("SC0423", f"{error}{tail}", error.help, *places)
    if isinstance(error, TookTooLong):
        return problem("SC0507", f"{doing} took more than {deadline:g} seconds{tail}", "a loop may never end", *places)
    if not places or _is_ours(error):
        return None
    if isinstance(error, SystemExit):
        code = opaque.cleaned(repr(error.code))
        return problem("SC0505", f"it leaves the program (sys.exit {code}){tail}", "raise ValueError", *places)
    if isinstance(error, AskedForInput):
        return problem("SC0505", f"it asks for input{tail}", "take the value from a variable: -e name=value", *places)
    if isinstance(error, NameError):
        return _unknown_name(error, tail, places)
    if isinstance(error, ImportError):
        return _unknown_module(error, tail, places)
    if isinstance(error, UnicodeEncodeError) and tokens.masked(error.object) != error.object:
        detail = f"text with a secret in it can't be encoded: {tokens.masked(error.object)!r:.200}{tail}"
        return problem("SC0423", detail, "give the text itself to the node; it is written as UTF-8", *places)
    said = _told(opaque.cleaned(_said(error)) + _named_secrets(error), places[0])
    if isinstance(error, TypeError) and ARITY.search(said):
        return problem("SC0508", said + tail, _takes(said), *places)
    return problem("SC0504", f"{type(error).__name__}{': ' if said else ''}{said}{tail}", "", *places)


def _named_secrets(error: BaseException) -> str:
    """Return the names of the secrets at hand where something was done with one that takes text only."""
    if not isinstance(error, TypeError) or not re.search(r"\b(Secret|Composed)\b", _said(error)):
        return ""
    trace, names = error.__traceback__, dict[str, None]()
    while trace is not None:
        inside = [*trace.tb_frame.f_locals.values()]
        inside += [item for each in inside if isinstance(each, (list, tuple)) for item in each]
        inside += [item for each in inside if isinstance(each, dict) for item in each.values()]
        names.update((each.name, None) for each in inside if isinstance(each, opaque.Value))
        trace = trace.tb_next
    told = f" (secrets here: {', '.join(names)})" if names else ""
    return f'{told}; where text is needed, write str(secret) or f"{{secret}}"'


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as wrong:  # the user's own class, and so the user's own mistake
        return f"its __str__ raised {type(wrong).__name__}"


def _cure(error: SyntaxError) -> str:
    if "null bytes" in str(error.msg):
        return "save the file as UTF-8 text"
    return "indent with spaces only" if isinstance(error, TabError) else ""


def _tail(frames: list[tuple[SourceLocation, str]], state: str) -> str:
    lines = [f"\nat {place} in {_told(name, place)}" for place, name in reversed(frames)]
    if len(lines) > 10:
        lines[5:-4] = [f"\n… {len(lines) - 9} more …"]
    return (f" ({state})" if state else "") + ("".join(lines) if len(lines) > 1 else "")


def _user_frames(trace: types.TracebackType | None) -> list[tuple[SourceLocation, str]]:
    found = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if not positions.is_machinery(code.co_filename) and not code.co_filename.startswith(LIBRARIES):
            found.append((_place(trace), code.co_name))
        trace = trace.tb_next
    return found


def _place(trace: types.TracebackType) -> SourceLocation:
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
    # What travels to hosts raises on purpose where it is called wrongly.
    allowed = tuple(positions.PACKAGE + part for part in ("remote/", "resources/", "playbook/user_code", "__init__"))
    return file.startswith(positions.PACKAGE) and not file.startswith(allowed)


def _told(text: str, place: SourceLocation) -> str:
    """Return a message with names as Hy writes them, where the place is in a Hy file."""
    if not place.file.endswith(".hy") or "hy" not in sys.modules:
        return text
    unmangle: Callable[[str], str] = sys.modules["hy"].unmangle  # it compiled the file, so it is there
    return MANGLED.sub(lambda found: unmangle(found[0]) if "hyx_" in found[0] or "_" in found[0] else found[0], text)


def _message(text: object) -> str:
    return " ".join(str(text).split())


def _unknown_name(error: NameError, tail: str, places: tuple[SourceLocation, ...]) -> Problem:
    name = error.name or ""
    shown = _told(name, places[0])
    also = f" ({name} in Python)" if shown != name else ""
    return problem("SC0503", f"the name {shown} is not defined{also}{tail}", suggest_name(error, places[0]), *places)


def suggest_name(error: NameError, place: SourceLocation) -> str:
    """Return a help text with the name that was probably meant, among those of the frame that failed."""
    trace = error.__traceback__
    names: set[str] = set()
    while trace is not None:
        names = {*trace.tb_frame.f_globals, *trace.tb_frame.f_locals}
        trace = trace.tb_next
    known = sorted(_told(name, place) for name in names if not name.startswith("_"))
    name = _told(error.name or "", place)
    if place.file.endswith(".hy") and name in WORDS:
        return f"(require statecfg.dialects.hy [{name}])"
    hint = suggest(name, known)
    return hint if hint.startswith("did you mean") else ""


def _takes(said: str) -> str:
    """Return a help text with the keyword that was probably meant, where one of our own functions was called."""
    wrong = UNEXPECTED.match(said)
    ours = getattr(import_module("statecfg"), wrong[1], None) if wrong else None
    return suggest(wrong[2], inspect.signature(ours).parameters, "it takes") if wrong and callable(ours) else ""


def _unknown_module(error: ImportError, tail: str, places: tuple[SourceLocation, ...]) -> Problem:
    hint = "a playbook runs on this machine, not on the hosts: install the module here, or keep it beside the playbook"
    wanted = getattr(error, "name_from", None) or _wanted(str(error))
    if wanted and error.name and not isinstance(error, ModuleNotFoundError):
        known: Any = import_module(error.name)
        hint = suggest(wanted, [name for name in dir(known) if not name.startswith("_")], f"{error.name} has")
    return problem("SC0506", _told(str(error), places[0]) + tail, hint, *places)


def _wanted(message: str) -> str:
    found = re.match(r"cannot import name '([^']+)'", message)
    return found[1] if found else ""
