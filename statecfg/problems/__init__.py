"""Represent mistakes in the user's input as values, so that statecfg can show all of them at once. Imports only
`remote`.

The exceptions of statecfg, with their rooms. The root is in `statecfg/remote/graph/errors.py`.

    StatecfgError
    ├── InvalidInput              problems        the user's input is wrong; it contains all problems
    │   ├── TooLarge              problems        a definition exceeds a limit
    │   ├── StalePlan             problems        a saved plan does not fit what it was made from
    │   ├── MissingFact           facts           a definition reads a fact that is not known yet
    │   ├── WrongRead             facts           a definition reads a fact that it can't have
    │   │   ├── UnknownFact       facts           the fact does not exist
    │   │   └── UnusableFact      facts           the fact of another host is not in the store, or is too old
    │   ├── UnknownHost           facts           a definition reads a host or group that does not exist
    │   ├── UnknownField          facts           a definition reads something that hosts don't have
    │   └── UnknownVariable       facts           a play uses a variable that does not exist
    ├── CheckError                remote.graph    a node can't be applied on this host
    │   ├── Conflict              remote.graph    the run can't succeed and does not start
    │   └── Refusal               resources.packages  dnf refuses a change of packages
    ├── Unknown                   remote.graph    a check needs what another node's action decides
    ├── Excluded                  remote.graph    a condition of a node is false on this host
    ├── Stays                     remote.graph    an orphan can't be undone in this run
    ├── Wrong                     remote.graph    a value is not allowed (also a ValueError)
    │   ├── PublicSecret          remote.graph    a program's arguments contain a secret
    │   └── Mismatch              graph           a value does not have the type of its attribute
    │       └── ElementMismatch   graph           the value is inside a list or a map
    ├── WriteAttempt              remote.machine  a check tried to change the host
    ├── UnsafePath                remote.machine  another user controls a link on the way (also an OSError)
    ├── ProtocolError             remote.wire     bytes that are not a frame
    ├── StateError                remote.ledger   the host can't keep its ledger
    ├── Malformed                 remote.hooks    a hook's output has an invalid shape
    ├── UnitError                 remote.units    a unit's command can't be answered, on the host
    ├── AmpError                  remote.units    bytes that are not an AMP message
    ├── ToolError                 remote.units    a hook's tool failed
    │   └── AgentError            remote.units    the agent refused the tool's request
    ├── NotEditable               resources.text  a file has no key that can be edited safely
    ├── UnsafeArchive             resources.files  an archive is a bomb or leads out (also a ValueError)
    ├── SecretError               problems        a secret can't be used in this way (also a ValueError)
    ├── TypeProblem               graph           an annotation of a node type is not supported
    ├── Refused                   templates.filters  a template does something that is not allowed
    ├── TooMuch                   templates.filters  a template exceeds a limit
    ├── Missing                   templates       a template uses an undefined name (also Jinja's UndefinedError)
    ├── _CantSend                 playbook        a node's attribute can't be sent
    ├── _Stop                     dialects        the rest of a YAML file can't be read
    ├── BadForm                   dialects        a Hy macro received an invalid form
    ├── OtherData                 dialects        a laid out YAML text would load to other data
    ├── WrongRange                dialects        a range or port in an Ansible inventory is invalid
    ├── WrongOption               dialects        an Ansible inventory passes an option to ssh that statecfg can't use
    ├── TransportError            transport       a connection to a host failed
    │   ├── Unreachable           transport       no connection could be made
    │   ├── HostKeyRejected       transport       the host's key is unknown, changed or revoked
    │   ├── AuthenticationFailed  transport       the host refused every key
    │   ├── ConnectionLost        transport       the connection broke
    │   │   └── WorkerLost        transport       the worker that held the connection ended
    │   └── BecomeFailed          transport       sudo or su failed
    ├── ChannelEnded              engines         the channel between controller and worker has ended
    ├── ConfigProblem             transport       an ssh_config file is invalid (also a ValueError)
    ├── KeyLocked                 transport       a private key needs a passphrase
    ├── KeyUnusable               transport       a private key can't be used
    ├── TooMuchSent               transport       an SSH server sent more than a limit
    ├── _TurnedAway               transport       an SSH server dropped the connection before its greeting
    ├── StoreError                store           the store can't be used
    │   ├── Busy                  store           another process holds the lock
    │   ├── Lost                  store           the connection to PostgreSQL broke
    │   ├── Again                 store           PostgreSQL asks to repeat the transaction
    │   └── Unmade                store           the database has no schema yet
    ├── UnitRequestError          store           a unit asked for what it can't have
    ├── Broken                    run             a host sent an invalid event, or nothing
    │   └── StillUp               run             a host that should reboot has not done so yet
    ├── Disconnected              run             a host waits without a connection
    ├── Invalid                   run             JSON has another shape than its class (also a ValueError)
    ├── HookFailure               run             a hook's failure ended the run of a host
    ├── NotStarted                run             the user stopped the run before this host
    ├── OtherHost                 run             the host's key is not that of the plan
    ├── Unjoined                  run             a lookup that all hosts wait for failed
    ├── _TakeBack                 units           ends the transaction of a plan
    ├── HookError                 hooks           an HTTP hook reports its failure
    ├── AddressError              hooks           the address of an HTTP hook can't be resolved
    ├── Unreadable                hooks           an HTTP hook's answer is invalid
    ├── Unanswered                hooks           an HTTP hook did not answer
    ├── NotOurs                   hooks           an answer has the marker of another hook's secret
    ├── ApiError                  entities        an API request is refused
    ├── TemplateError             entities        a template of a behavior is invalid
    ├── TooSlow                   entities        a regular expression took too long
    ├── Unsupported               server          the client asks for an unknown API version
    └── Unwritten                 cli             the report can't be written

`playbook` also has TookTooLong and AskedForInput. They derive from BaseException, so that `except Exception` in the
code of users lets them pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

from statecfg.problems import former_names, tokens
from statecfg.problems.codes import CODES
from statecfg.problems.frozen import dataclass
from statecfg.problems.positions import SourceLocation
from statecfg.problems.suggestions import sentence, suggest, suggest_file
from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.graph.suggestions import did_you_mean, nearest

__all__ = [
    "CODES",
    "InvalidInput",
    "Problem",
    "SourceLocation",
    "TooLarge",
    "collecting",
    "did_you_mean",
    "nearest",
    "problem",
    "report",
    "reported",
    "reporting",
    "sentence",
    "suggest",
    "suggest_file",
]


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in the user's input.

    :param code: ``SC`` and four digits, a key of `CODES`
    :param summary: the short, fixed text for the code
    :param detail: what is wrong, and why
    :param help: what to do; "" if there is no advice
    :param locations: the source locations, the most important first
    """

    code: str
    summary: str
    detail: str
    help: str = ""
    locations: tuple[SourceLocation, ...] = ()

    @property
    def places(self) -> tuple[SourceLocation, ...]:
        """`locations`, under its name until 0.3, which will be removed in 1.0."""
        former_names.warn_of_former("Problem.places", "Problem.locations")
        return self.locations

    def __str__(self) -> str:
        text = f"error[{self.code}]: {self.summary}: {self.detail}"
        text += "".join(f"\n  --> {location}" for location in self.locations)
        return text + (f"\n  help: {self.help}" if self.help else "")


def _with_places(init: Callable[..., None]) -> Callable[..., None]:
    """Return an `__init__` that accepts `places`, the name of `locations` until 0.3."""

    def accepting(self: Problem, *args: Any, places: tuple[SourceLocation, ...] | None = None, **fields: Any) -> None:
        if places is not None:
            former_names.warn_of_former("places of Problem", "locations")
            fields["locations"] = places
        init(self, *args, **fields)

    return accepting


setattr(Problem, "__init__", _with_places(Problem.__init__))  # noqa: B010  # mypy refuses to assign to a method


class InvalidInput(StatecfgError):
    """The user's input is wrong. Any other exception that reaches the command line is a bug in statecfg.

    :param problems: all mistakes
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: list[Problem] = list(problems)
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self) -> tuple[type[InvalidInput], tuple[list[Problem]]]:
        return InvalidInput, (self.problems,)


class StalePlan(InvalidInput):
    """A saved plan does not match the project, or another version saved it. Nothing was changed (exit code 6)."""


class TooLarge(InvalidInput):
    """A definition exceeds a limit. Its evaluation stops at once, because the rest could take minutes."""


class _Collected(list[Problem]):
    """Problems in the order in which they were reported, without duplicates."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[Problem] = set()

    def add(self, item: Problem) -> None:
        if item not in self._seen:
            self._seen.add(item)
            self.append(item)


_COLLECTED: ContextVar[_Collected | None] = ContextVar("collected problems", default=None)


class _Collecting:
    __slots__ = ("_token",)

    def __enter__(self) -> list[Problem]:
        problems = _Collected()
        self._token = _COLLECTED.set(problems)
        return problems

    def __exit__(self, *error: object) -> None:
        _COLLECTED.reset(self._token)


def collecting() -> _Collecting:
    """Collect the problems that the block reports, so that evaluation continues and all are shown at once."""
    return _Collecting()


class _Reporting:
    def __enter__(self) -> None:
        pass

    # The return type `bool` tells type checkers that the block can end early.
    def __exit__(self, error_type: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, InvalidInput) or isinstance(error, TooLarge) or _COLLECTED.get() is None:
            return False
        report(*error.problems)
        return True


def reporting() -> _Reporting:
    """Report the problems of an InvalidInput that the block raises, and continue after the block.

    If problems are not being collected, the exception passes through.
    """
    return _Reporting()


def problem(code: str, detail: str, help: str = "", *locations: SourceLocation) -> Problem:
    """Return a problem with the summary of its code. Secrets in the strings are masked.

    :param code: a key of `CODES`
    :param detail: what is wrong, and why
    :param help: what to do; "" if there is no advice
    :param locations: the source locations, the most important first
    :raises KeyError: the code is not in `CODES`
    """
    return Problem(code, CODES[code][0], tokens.masked(detail), tokens.masked(help), tuple(dict.fromkeys(locations)))


def reported() -> bool:
    """Return whether problems are being collected and there is one already."""
    return bool(_COLLECTED.get())


def report(*problems: Problem) -> None:
    """Add problems to those being collected.

    :raises InvalidInput: problems are not being collected
    """
    if not problems:
        return
    collected = _COLLECTED.get()
    if collected is None:
        raise InvalidInput(problems)
    for item in problems:
        collected.add(item)


def clipped(name: str, most: int = 100) -> str:
    """Return a name shortened to at most `most` characters, for messages."""
    return name if len(name) <= most else f"{name[: most - 31]}…{name[-30:]}"
