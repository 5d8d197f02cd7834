"""What a host says: text that may contain anything, and that programs must not run or read as rules.

A fact is a `HostText`. Texts that are made of it, in templates and with the methods of `str`, are such texts again, and
keep the parts that came from hosts. Parts that consist of harmless letters can be used everywhere.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Self

from pyrsistent import PVector

from statecfg.graph import shell_places
from statecfg.graph.code_files import LINES, SHELL
from statecfg.graph.value import CHANGING, Value

# Text that is one harmless word in shells, in rules and in units.
_HARMLESS = re.compile(r"[A-Za-z0-9_./:@+,=][A-Za-z0-9_./:@+,=~-]*|")
_SHORT = 4  # characters; shorter parts are not looked for in plain text
_LISTS = (list, tuple, set, frozenset, PVector)


class Watch:
    """What one definition has read.

    :ivar used: whether it has read any text of a host
    :ivar parts: the texts of hosts that are not harmless
    :ivar quoted: texts in which parts are quoted for a shell
    """

    def __init__(self) -> None:
        self.used = False
        self.parts: dict[str, None] = {}
        self.quoted: dict[str, None] = {}


_WATCH: ContextVar[Watch | None] = ContextVar("the texts of hosts in the evaluation that is running", default=None)


@contextlib.contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Note the texts of hosts that the block reads."""
    token = _WATCH.set(watch)
    try:
        yield
    finally:
        _WATCH.reset(token)


class HostText(str):
    """Text that came from a host, or contains such text.

    :ivar parts: the texts of hosts in it that are not harmless
    :ivar whole: the whole text came from a host
    """

    parts: tuple[str, ...]
    whole: bool

    def __new__(cls, text: str, parts: tuple[str, ...] | None = None) -> Self:
        """Mark a string.

        :param parts: the texts of hosts in it; None if the whole text is one
        """
        made = super().__new__(cls, text)
        made.parts = parts if parts is not None else () if _HARMLESS.fullmatch(text) else (str.__str__(made),)
        made.whole = parts is None
        watch = _WATCH.get()
        if watch is not None:
            watch.used = True
            watch.parts.update(dict.fromkeys(made.parts))
        return made

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Value) or not isinstance(other, str):
            return NotImplemented
        return HostText(str.__add__(self, other), self.parts + parts_of(other))

    def __radd__(self, other: Any) -> Any:
        return HostText(str.__add__(other, self), self.parts) if isinstance(other, str) else NotImplemented

    def __mod__(self, other: Any) -> Any:
        return HostText(str.__mod__(self, other))

    def __rmod__(self, text: Any) -> Any:
        if isinstance(text, Value) or not isinstance(text, str):
            return NotImplemented
        return carried(str.__mod__(text, self), (text, self))

    def __mul__(self, times: Any) -> Any:
        return HostText(str.__mul__(self, times))

    __rmul__ = __mul__

    def __iter__(self) -> Iterator[str]:
        return map(HostText, str.__iter__(self))

    def __getitem__(self, at: Any) -> Any:
        return HostText(str.__getitem__(self, at))

    def __reduce__(self) -> Any:
        return str, (str.__str__(self),)


def _changing(name: str) -> Any:
    function = getattr(str, name)

    def method(self: HostText, *arguments: Any, **named: Any) -> Any:
        return carried(function(self, *arguments, **named), (self, *arguments))

    method.__name__ = name
    method.__doc__ = f"Call `str.{name}`, and mark its text."
    return method


for _name in CHANGING:
    setattr(HostText, _name, _changing(_name))


def told(value: Any) -> Any:
    """Return a fact with its texts marked, also in lists and maps."""
    if isinstance(value, str):
        return HostText(value)
    if isinstance(value, dict):
        return {told(key): told(item) for key, item in value.items()}
    return type(value)(map(told, value)) if type(value) in (list, tuple) else value


def parts_of(value: Any) -> tuple[str, ...]:
    """Return the texts of hosts in a value that are not harmless, also in lists and maps."""
    if isinstance(value, str):
        return value.parts if isinstance(value, HostText) else ()
    if isinstance(value, Mapping):
        return parts_of([*value, *value.values()]) if isinstance(value, dict) else ()
    if isinstance(value, _LISTS):
        return tuple(part for item in value for part in parts_of(item))
    return ()


def in_use() -> bool:
    """Return whether the definition has read a string of a host that is not harmless."""
    watch = _WATCH.get()
    return watch is not None and bool(watch.parts)


def was_read() -> bool:
    """Return whether the definition has read any text of a host."""
    watch = _WATCH.get()
    return watch is not None and watch.used


def carried(result: Any, sources: Iterable[Any]) -> Any:
    """Return the result of a function with its texts marked if an argument was.

    :param sources: the arguments
    """
    parts = tuple(dict.fromkeys(parts_of(list(sources))))
    return _marked(result, parts) if parts else result


def _marked(result: Any, parts: tuple[str, ...]) -> Any:
    if isinstance(result, str):
        if isinstance(result, HostText):
            return result
        inside = tuple(part for part in parts if part in result)
        return HostText(result, inside or None)
    if isinstance(result, dict):
        return {_marked(key, parts): _marked(item, parts) for key, item in result.items()}
    return type(result)(_marked(item, parts) for item in result) if type(result) in (list, tuple) else result


def quoted(text: str, sources: Iterable[Any]) -> str:
    """Return a string that is quoted for a shell, without its mark.

    :param sources: what it was before
    """
    plain, watch = str.__str__(text), _WATCH.get()
    if watch is not None and parts_of([*sources]):
        watch.quoted[plain] = None
    return plain


def harmful(value: Any, how: str = SHELL) -> str:
    """Return a string of a host in a string that is neither harmless nor quoted; "" if there is none.

    :param how: how programs read it: the text can be quoted in `SHELL`, and without line breaks in `LINES`
    """
    if not isinstance(value, str):
        return ""
    watch = _WATCH.get()
    parts = list(value.parts) if isinstance(value, HostText) else []
    rest = str.__str__(value)
    if watch is not None:
        parts += [part for part in watch.parts if len(part) >= _SHORT and part in rest]
    forms = {shlex.quote(part): part for part in parts}
    forms.update({f"'{part}'": part for part in parts if shlex.quote(part) == part})
    if watch is not None:
        forms.update({form: forms.get(form, form) for form in watch.quoted})
    for form in sorted(forms, key=len, reverse=True):
        for match in re.finditer(re.escape(form), rest):
            breaks = how == LINES and re.search(r"[\r\n]", form)
            if how not in (SHELL, LINES) or breaks or shell_places.refused(rest[: match.start()], form):
                return forms[form]
        rest = rest.replace(form, "_")
    return next((part for part in parts if part in rest), "")
