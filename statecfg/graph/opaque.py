"""Values that are used and never shown: secrets, and text composed with them.

A value has pieces: text, and secrets; what nodes produce on a host will be a third kind. Formatting a value gives text
with a token for each secret (`statecfg.problems.tokens`); `found` makes a value of such text again, where it is used.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from pyrsistent import PVector, pvector

from statecfg.problems import tokens
from statecfg.problems.tokens import Lost

if TYPE_CHECKING:
    from typing import Self

DEEPEST = 120  # lists and maps inside each other; what is deeper is refused where it is used
SHORTEST = 4  # characters: shorter ones can't be masked in output
_USED: ContextVar[tuple[dict[str, Secret], ...]] = ContextVar("secrets in use", default=())
_KEY = os.urandom(32)
_TOKENS: dict[tuple[str, bytes], str] = {}  # one for each name and value
# Methods of text that a value has as well; their text is a secret again.
CHANGING = [
    "capitalize", "casefold", "center", "expandtabs", "format", "join", "ljust", "lower", "lstrip", "partition",
    "removeprefix", "removesuffix", "replace", "rjust", "rpartition", "rsplit", "rstrip", "split", "splitlines",
    "strip", "swapcase", "title", "translate", "upper", "zfill",
]  # fmt: skip
TELLING = [
    "count", "endswith", "find", "index", "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier",
    "islower", "isnumeric", "isprintable", "isspace", "istitle", "isupper", "rfind", "rindex", "startswith",
]  # fmt: skip


class Value:
    """A text that must not be shown as it is: a secret, or text and secrets side by side.

    `repr` shows its masks. `str`, f-strings, `%` and `.format` give text with a token for each secret: attributes,
    templates and environments get the value in its place. Comparisons compare the value. What the methods of text
    return is a value again; `apply` does the same for any function.
    """

    __slots__ = ()
    __iter__ = None
    name: str
    available: bool

    def reveal(self) -> str:
        """Return the value, and note the use for `recording`."""
        raise NotImplementedError

    def secrets(self) -> tuple[Secret, ...]:
        """Return the secrets in it."""
        raise NotImplementedError

    def apply(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Return what a function makes of the value, with each text of it a value again: `token.apply(shlex.quote)`.

        Raises `Lost` where the function fails, without the value, or returns a text too short to be masked, or the
        number that the text is.
        """
        sources: list[Secret] = [*self.secrets()]
        given = [opened(each, sources) for each in arguments]
        options = {key: opened(each, sources) for key, each in named.items()}
        called = getattr(function, "__name__", type(function).__name__)
        try:
            result = function(self._bare(), *given, **options)
        except Exception as error:
            failed = type(error).__name__
        else:
            refuse_number(called, self._bare(), result, self.name)
            return derived(result, sources)
        if not all(each.available for each in sources):
            return self
        raise Lost(f"{called} fails on the secret {self.name}: {failed}", "check that its value is what that expects")

    def _bare(self) -> str:
        raise NotImplementedError

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> Self:
        """Return the value itself, as content is written in UTF-8. Raises `Lost` for another encoding."""
        if encoding.lower().replace("_", "-") not in ("utf-8", "utf8"):
            raise Lost(f"the secret {self.name} can't be written as {encoding}", "secrets are written as UTF-8")
        return self

    def __len__(self) -> int:
        return len(self._bare())

    def __bool__(self) -> bool:
        return True

    def __format__(self, specification: str) -> str:
        if specification:
            raise Lost(
                f"the secret {self.name} is formatted with `{specification}`",
                "a secret has no width and can't be cut: leave out what stands after the colon",
            )
        return str(self)

    def __add__(self, other: object) -> Any:
        return composed([self, other]) if isinstance(other, (str, Value)) else NotImplemented

    def __radd__(self, other: object) -> Any:
        return composed([other, self]) if isinstance(other, str) else NotImplemented

    def __mod__(self, other: object) -> Any:
        return self.apply(lambda text, given: text % given, other)

    def __mul__(self, times: int) -> Any:
        return self.apply(lambda text: text * times)

    def __getitem__(self, at: Any) -> Any:
        return self.apply(lambda text: text[at])

    def __contains__(self, text: object) -> bool:
        other = _text(text)
        return other is not None and other in self._bare()

    def __eq__(self, other: object) -> bool:
        text = _text(other)
        if text is None:
            return NotImplemented
        return hmac.compare_digest(self._bare().encode("utf-8", "replace"), text.encode("utf-8", "replace"))

    def __lt__(self, other: object) -> bool:
        text = _text(other)
        return NotImplemented if text is None else self._bare() < text

    def __le__(self, other: object) -> bool:
        text = _text(other)
        return NotImplemented if text is None else self._bare() <= text

    def __gt__(self, other: object) -> bool:
        text = _text(other)
        return NotImplemented if text is None else self._bare() > text

    def __ge__(self, other: object) -> bool:
        text = _text(other)
        return NotImplemented if text is None else self._bare() >= text

    def __hash__(self) -> int:
        return hash(self._bare())

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"{self!r} can't be pickled")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


def _method(name: str, keeps: bool) -> Callable[..., Any]:
    function = getattr(str, name)

    def method(self: Value, *arguments: Any, **named: Any) -> Any:
        return self.apply(function, *arguments, **named)

    method.__name__ = name
    method.__doc__ = f"Do what `str.{name}` does" + ("; its text is a value again." if keeps else ".")
    return method


for _name in (*CHANGING, *TELLING):
    setattr(Value, _name, _method(_name, _name in CHANGING))


class Secret(Value):
    """A value that shows itself as `<secret NAME>` wherever it is printed, and can't be pickled or copied into JSON.

    :param name: what reports call it: letters, digits, `_`, `-`, `.`
    :param value: the text itself, at least 4 characters
    :param available: False for one that only stands for a value that is not here
    """

    __slots__ = ("__reveal", "available", "name", "token")

    def __init__(self, name: str, value: str, available: bool = True) -> None:
        self.name, self.available = name, available
        # In a closure, so that neither repr, vars, a debugger's listing of locals nor slots hold the text itself.
        self.__reveal: Callable[[], str] = lambda: value
        digest = hashlib.blake2b(value.encode("utf-8", "surrogatepass"), key=_KEY).digest()
        self.token = _TOKENS.setdefault((name, digest), tokens.new())
        tokens.register(self)
        _mask_logs()

    def reveal(self) -> str:
        """Return the value, and note the use for `recording`."""
        for used in _USED.get():
            name, number = self.name, 2
            while used.setdefault(name, self) != self:
                name, number = f"{self.name}-{number}", number + 1
        return self.__reveal()

    def secrets(self) -> tuple[Secret, ...]:
        """Return itself."""
        return (self,)

    def _bare(self) -> str:
        return self.__reveal()

    def __repr__(self) -> str:
        return f"<secret {self.name}>"

    def __str__(self) -> str:
        return self.token


class Composed(Value):
    """Text and secrets, side by side."""

    __slots__ = ("pieces",)

    def __init__(self, pieces: Iterable[str | Secret]) -> None:
        self.pieces = tuple(pieces)

    @property
    def name(self) -> str:  # type: ignore[override]  # a property in place of an attribute
        """The names of the secrets in it."""
        return "+".join(dict.fromkeys(each.name for each in self.secrets()))

    @property
    def available(self) -> bool:  # type: ignore[override]  # a property in place of an attribute
        """Whether all secrets in it are there."""
        return all(each.available for each in self.secrets())

    def reveal(self) -> str:
        """Return the whole text, and note the use of its secrets for `recording`."""
        return "".join(each if isinstance(each, str) else each.reveal() for each in self.pieces)

    def secrets(self) -> tuple[Secret, ...]:
        """Return the secrets in it."""
        return tuple(each for each in self.pieces if isinstance(each, Secret))

    def _bare(self) -> str:
        return "".join(each if isinstance(each, str) else each._bare() for each in self.pieces)

    def __repr__(self) -> str:
        return repr("".join(each if isinstance(each, str) else repr(each) for each in self.pieces))

    def __str__(self) -> str:
        return "".join(map(str, self.pieces))


def composed(parts: Iterable[Any]) -> Any:
    """Return texts and values in one: a value, or a text where no secret is in it. Raises `Lost`."""
    pieces: list[str | Secret] = []
    for part in parts:
        for piece in _pieces(part):
            if isinstance(piece, str) and pieces and isinstance(pieces[-1], str):
                pieces[-1] += piece
            elif piece != "" or isinstance(piece, Secret):
                pieces.append(piece)
    if len(pieces) == 1:
        return pieces[0]
    return Composed(pieces) if pieces else ""


def _pieces(part: Any) -> Iterator[str | Secret]:
    if isinstance(part, Composed):
        yield from part.pieces
    elif isinstance(part, Secret):
        yield part
    else:
        for piece in tokens.split(str(part)) or [str.__str__(part)]:
            if isinstance(piece, str):
                yield piece
            else:
                leaf, spell = piece
                assert isinstance(leaf, Secret)
                yield leaf if spell is None else Secret(leaf.name, spell(leaf._bare()), leaf.available)


def found(value: Any, depth: int = 0) -> Any:
    """Return a value with each text in it that has tokens made a `Value`, in lists and maps too.

    What has none comes back as it is. Raises `Lost` for what is left of a token, for a mask, and for a token in the
    key of a map.
    """
    if not tokens.in_use() or value is None or isinstance(value, (bool, int, float, Value)) or depth > DEEPEST:
        return value
    if isinstance(value, str):
        return value if tokens.split(value) is None else composed([value])
    if isinstance(value, (bytes, bytearray)):
        return _in_bytes(bytes(value))
    if isinstance(value, Mapping):
        for key in value:
            if isinstance(key, Value) or (isinstance(key, str) and isinstance(found(key), Value)):
                raise Lost("a secret stands in the key of a map", "keys are shown: put it into the value")
        made = {key: found(item, depth + 1) for key, item in value.items()}
        if all(made[key] is item for key, item in value.items()):
            return value
        return made if isinstance(value, dict) else MappingProxyType(made)
    if isinstance(value, (list, tuple, PVector)):
        items = [found(item, depth + 1) for item in value]
        if all(one is other for one, other in zip(items, value, strict=True)):
            return value
        return tuple(items) if isinstance(value, tuple) else pvector(items) if isinstance(value, PVector) else items
    return value


def _in_bytes(data: bytes) -> Any:
    """Return bytes as they are, or the value of text with tokens in it that was encoded in spite of their making."""
    if not tokens.IN_BYTES.search(data):
        return data
    try:
        text = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:  # it was cut, or is no text otherwise: what matters is whether a token is in it
        text = "".join(each.decode("utf-8", "surrogatepass") for each in tokens.SURROGATE.findall(data))
        text += data.decode("ascii", "ignore")
    return data if tokens.split(text) is None else composed([text])


def holds(value: Any, depth: int = 0) -> bool:
    """Return whether a value is a `Value` or, somewhere inside, has one."""
    if isinstance(value, (Mapping, list, tuple, PVector)) and depth <= DEEPEST:
        items = value.values() if isinstance(value, Mapping) else value
        return any(holds(item, depth + 1) for item in items)
    return isinstance(value, Value)


def shows(name: Any) -> bool:
    """Return whether a name, or one of several, would show a secret, or what is left of its token."""
    try:
        return holds(found(name))
    except Lost:
        return True


def opened(value: Any, sources: list[Secret]) -> Any:
    """Return a value with what is in it revealed, in lists and maps too; the secrets in it are added to `sources`."""
    value = found(value)
    if isinstance(value, Value):
        sources.extend(value.secrets())
        return value.reveal()
    if isinstance(value, MappingProxyType) or (isinstance(value, dict) and holds(value)):
        return {key: opened(item, sources) for key, item in value.items()}
    if isinstance(value, (list, tuple, PVector)) and holds(value):
        return [opened(item, sources) for item in value]
    return value


def derived(result: Any, sources: Iterable[Secret]) -> Any:
    """Return what was made of secrets, with each text in it a value.

    Where their values stand in it, or their JSON spellings, the rest stays text; otherwise all of it is a secret.
    Raises `Lost` for a text too short to be masked.
    """
    known = list(sources)
    if not known or result is None or isinstance(result, (bool, int, float, Value)):
        return result
    if isinstance(result, str):
        return _derived(str.__str__(result), known)
    if isinstance(result, (bytes, bytearray, os.PathLike)):
        return _derived(_as_text(result, known), known)
    if isinstance(result, Mapping):
        return {key: derived(item, known) for key, item in result.items()}
    if isinstance(result, (list, tuple, set, frozenset)):
        return [derived(item, known) for item in result]
    if isinstance(result, Iterator):
        return (derived(item, known) for item in result)
    return result


def refuse_number(called: str, text: object, result: object, name: str) -> None:
    """Raise `Lost` if a function made a number of a secret text, since no report could mask that."""
    if isinstance(result, bool) or not isinstance(result, (int, float)) or not isinstance(text, str):
        return
    try:
        same = float(text) == result
    except ValueError:
        return
    if same:
        detail = f"{called} makes a number of the secret {name}, and a number can't be masked"
        raise Lost(detail, "leave the secret as text")


def _as_text(made: Any, sources: list[Secret]) -> str:
    """Return bytes or a path as text. Raises `Lost` for bytes that are none."""
    data = os.fspath(made) if isinstance(made, os.PathLike) else bytes(made)
    with contextlib.suppress(UnicodeDecodeError):
        return data if isinstance(data, str) else data.decode("utf-8")
    name = "+".join(dict.fromkeys(each.name for each in sources))
    raise Lost(f"what is made of the secret {name} are bytes, and no text in UTF-8", "let the function return text")


def _derived(text: str, sources: list[Secret]) -> Any:
    spellings: dict[str, Secret] = {}
    for each in sources:
        bare = each._bare()
        for spelling in (bare, *(spell(bare) for spell in tokens.SPELLINGS)):
            spellings.setdefault(spelling, each)
    pieces: list[str | Secret] = []
    done = 0
    while done < len(text):
        hits = [(at, -len(each), each) for each in spellings if (at := text.find(each, done)) >= 0]
        if not hits:
            break
        at, _, spelling = min(hits)
        source = spellings[spelling]
        same = spelling == source._bare()
        pieces += [text[done:at], source if same else Secret(source.name, spelling, source.available)]
        done = at + len(spelling)
    if pieces or not text:
        return composed([*pieces, text[done:]])
    if len(text) < SHORTEST:
        name = "+".join(dict.fromkeys(each.name for each in sources))
        raise Lost(
            f"what is made of the secret {name} has fewer than {SHORTEST} characters, and can't be masked in output",
            "use the whole secret, or a longer part of it",
        )
    return Secret(sources[0].name, text, all(each.available for each in sources))


def _text(value: object) -> str | None:
    """Return the text of a text or value for comparing; None for anything else."""
    if isinstance(value, str) and tokens.in_use():
        with contextlib.suppress(Lost):
            value = found(value)
    if isinstance(value, Value):
        return value._bare()
    return str.__str__(value) if isinstance(value, str) else None


def cleaned(text: str) -> str:
    """Return what somebody else's code says, such as an exception, with every secret and token in it masked."""
    from statecfg.remote.machine.redact import Redactor

    known = by_name((each.name, each._bare()) for each in tokens.leaves() if isinstance(each, Secret))
    return tokens.masked(Redactor(known).text(text)) if known else text


def by_name(named: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return values of secrets by name; of several values of one name, the later ones get a number."""
    known: dict[str, str] = {}
    for name, value in named:
        label, number = name, 2
        while known.setdefault(label, value) != value:
            label, number = f"{name}-{number}", number + 1
    return known


@contextlib.contextmanager
def recording() -> Iterator[dict[str, Secret]]:
    """Gather, by name, the secrets that are revealed inside: those whose values the result may hold."""
    used: dict[str, Secret] = {}
    token = _USED.set((*_USED.get(), used))
    try:
        yield used
    finally:
        _USED.reset(token)


def _mask_logs() -> None:
    """Let log records show masks in place of tokens."""
    import logging

    kind = logging.getLogRecordFactory()
    if not isinstance(kind, type) or hasattr(kind, "shows_masks"):
        return

    class Record(kind):  # type: ignore[valid-type, misc]  # whatever class log records have so far
        shows_masks = True

        def getMessage(self) -> str:
            return tokens.masked(super().getMessage())

    logging.setLogRecordFactory(Record)
