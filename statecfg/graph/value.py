"""The base class of secrets: a string whose content must not be shown."""

from __future__ import annotations

import contextlib
import hmac
from collections.abc import Callable
from typing import Any, NoReturn, Self

from statecfg.problems import tokens
from statecfg.problems.tokens import SecretError

# Methods of `str` that a value also has. The text that they return is a secret again.
CHANGING = [
    "capitalize", "casefold", "center", "expandtabs", "format", "join", "ljust", "lower", "lstrip", "partition",
    "removeprefix", "removesuffix", "replace", "rjust", "rpartition", "rsplit", "rstrip", "split", "splitlines",
    "strip", "swapcase", "title", "translate", "upper", "zfill",
]  # fmt: skip
# Methods of `str` that return a number or a truth value.
TELLING = [
    "count", "endswith", "find", "index", "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier",
    "islower", "isnumeric", "isprintable", "isspace", "istitle", "isupper", "rfind", "rindex", "startswith",
]  # fmt: skip

PLAIN = {str, int, float, bool, type(None)}  # types of values that contain no others


class Value:
    """A string that must not be shown: a secret, or text that contains secrets.

    `repr` shows its masks. `str`, f-strings, `%` and `.format` return text with a token for each secret; attributes,
    templates and environments replace the tokens by the values. Comparisons compare the values. The methods of `str`
    return a value again; `apply` does the same with any function.
    """

    __slots__ = ()
    __iter__ = None
    name: str
    available: bool
    known: bool = True
    """Whether the value was read. `False`: reading it may ask the user or run a program."""
    on_host: bool = False
    """Whether only the host has the value, see `statecfg.graph.generated`."""

    @property
    def label(self) -> str:
        """The name in messages."""
        return self.name

    def reveal(self) -> str:
        """Return the value, and record its use for `recording`."""
        raise NotImplementedError

    def apply(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Return the result of a function of the value; see `statecfg.graph.opaque.Opaque.apply`."""
        raise NotImplementedError

    def _bare(self) -> str:
        """Return the value without recording its use."""
        raise NotImplementedError

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> Self:
        """Return the value itself, because content is written in UTF-8.

        :raises SecretError: another encoding was requested
        """
        if encoding.lower().replace("_", "-") not in ("utf-8", "utf8"):
            raise SecretError(f"the secret {self.name} can't be written as {encoding}", "use UTF-8 for secrets")
        return self

    def __len__(self) -> int:
        return len(self._bare())

    def __bool__(self) -> bool:
        return True

    def __format__(self, specification: str) -> str:
        if specification:
            raise SecretError(
                f"the secret {self.name} is formatted with `{specification}`",
                "remove the format specification after the colon: a secret can't be padded or cut",
            )
        return str(self)

    def __mod__(self, other: object) -> Any:
        return self.apply(lambda text, values: text % values, other)

    def __mul__(self, times: int) -> Any:
        return self.apply(lambda text: text * times)

    def __getitem__(self, at: Any) -> Any:
        return self.apply(lambda text: text[at])

    def __contains__(self, text: object) -> bool:
        other = _plain_text(text)
        return other is not None and other in self._bare()

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        text = _plain_text(other)
        if text is None:
            return NotImplemented
        return hmac.compare_digest(self._bare().encode("utf-8", "replace"), text.encode("utf-8", "replace"))

    def __lt__(self, other: object) -> bool:
        text = _plain_text(other)
        return NotImplemented if text is None else self._bare() < text

    def __le__(self, other: object) -> bool:
        text = _plain_text(other)
        return NotImplemented if text is None else self._bare() <= text

    def __gt__(self, other: object) -> bool:
        text = _plain_text(other)
        return NotImplemented if text is None else self._bare() > text

    def __ge__(self, other: object) -> bool:
        text = _plain_text(other)
        return NotImplemented if text is None else self._bare() >= text

    def __hash__(self) -> int:
        return hash(self._bare())

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"{self!r} can't be pickled")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


def _method(name: str, returns_text: bool) -> Callable[..., Any]:
    function = getattr(str, name)

    def method(self: Value, *arguments: Any, **named: Any) -> Any:
        return self.apply(function, *arguments, **named)

    method.__name__ = name
    method.__doc__ = f"Call `str.{name}`" + (" and return its text as a value." if returns_text else ".")
    return method


for _name in (*CHANGING, *TELLING):
    setattr(Value, _name, _method(_name, _name in CHANGING))


def _plain_text(other: object) -> str | None:
    """Return the text of a string or value for comparisons; None for anything else."""
    if isinstance(other, Value):
        return other._bare()
    if not isinstance(other, str):
        return None
    pieces = None
    with contextlib.suppress(SecretError):
        pieces = tokens.split(other)
    return str.__str__(other) if pieces is None else "".join(map(_piece_text, pieces))


def _piece_text(piece: str | tuple[tokens.SecretValue, Callable[[str], str] | None]) -> str:
    if isinstance(piece, str):
        return piece
    secret, encode = piece
    return secret._bare() if encode is None else encode(secret._bare())
