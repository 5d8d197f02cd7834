"""Secrets: values that are used and never shown, and text that contains them.

A value consists of pieces: text, and secrets. Formatting a value returns text with a token for each secret
(`statecfg.problems.tokens`); `resolve_tokens` turns such text into a value again where it is used.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyrsistent import PVector, pvector

from statecfg.graph.value import PLAIN, Value
from statecfg.problems import tokens
from statecfg.problems.masked_logs import mask_logs
from statecfg.problems.tokens import SecretError

if TYPE_CHECKING:
    from statecfg.remote.machine.redact import Redactor

__all__ = [
    "SHORTEST",
    "Composed",
    "Opaque",
    "Secret",
    "Value",
    "by_name",
    "composed",
    "contains_secret",
    "derived",
    "mask_secrets",
    "recording",
    "refuse_number",
    "resolve_tokens",
    "revealed",
    "would_show_secret",
]

DEEPEST = 120  # levels of lists and maps; deeper values are refused where they are used
SHORTEST = 4  # characters; shorter strings can't be masked in output
_USED: ContextVar[tuple[dict[str, Secret], ...]] = ContextVar("secrets in use", default=())
_KEY = os.urandom(32)
_TOKENS: dict[tuple[str, bytes], str] = {}  # one for each name and value


class Opaque(Value):
    """A value whose operations use its text: what `Secret` and `Composed` have in common."""

    __slots__ = ()

    def secrets(self) -> tuple[Secret, ...]:
        """Return the secrets in the value."""
        raise NotImplementedError

    def apply(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Return the result of a function of the value, such as `token.apply(shlex.quote)`.

        :param function: called with the text of the value, then with the other arguments
        :returns: the result; each text in it is a value again
        :raises SecretError: the function failed (the message does not contain the value), or returned a string that is
            too short to be masked, or the number in the text
        """
        sources: list[Secret] = [*self.secrets()]
        arguments = tuple(revealed(item, sources) for item in arguments)
        named = {key: revealed(item, sources) for key, item in named.items()}
        function_name = getattr(function, "__name__", type(function).__name__)
        text = self._bare()  # outside of the try statement: reading a secret may fail
        try:
            result = function(text, *arguments, **named)
        except Exception as error:
            failed = type(error).__name__
        else:
            refuse_number(function_name, text, result, self.name)
            return derived(result, sources)
        if not all(secret.available for secret in sources):
            return self
        detail = f"{function_name} fails on the secret {self.name}: {failed}"
        raise SecretError(detail, "check that the secret has the format that the function expects")

    def __add__(self, other: object) -> Any:
        return composed([self, other]) if isinstance(other, (str, Value)) else NotImplemented

    def __radd__(self, other: object) -> Any:
        return composed([other, self]) if isinstance(other, str) else NotImplemented


class Secret(Opaque):
    """A value that is shown as its mask, and can't be pickled or converted to JSON.

    :param name: its name in reports: letters, digits, `_`, `-`, `.`
    :param value: the text itself, at least 4 characters
    :param available: False for a placeholder of a secret that is not available on this machine
    """

    __slots__ = ("__reveal", "available", "name", "token")

    def __init__(self, name: str, value: str, available: bool = True) -> None:
        self.name, self.available = name, available
        # In a closure, so that neither repr, vars, a debugger's list of locals nor the slots contain the text.
        self.__reveal: Callable[[], str] = lambda: value
        digest = hashlib.blake2b(value.encode("utf-8", "surrogatepass"), key=_KEY).digest()
        self.token = _TOKENS.setdefault((name, digest), tokens.new_token())
        tokens.register(self)
        mask_logs()

    def reveal(self) -> str:
        """Return the value, and record its use for `recording`."""
        for used in _USED.get():
            name, number = self.name, 2
            while used.setdefault(name, self) != self:
                name, number = f"{self.name}-{number}", number + 1
        return self.__reveal()

    def secrets(self) -> tuple[Secret, ...]:
        """Return the secret itself."""
        return (self,)

    def _bare(self) -> str:
        return self.__reveal()

    def __repr__(self) -> str:
        return tokens.shown(self.name)

    def __str__(self) -> str:
        return self.token


class Composed(Opaque):
    """Text and secrets, one after another."""

    __slots__ = ("pieces",)

    def __init__(self, pieces: Iterable[str | Secret]) -> None:
        self.pieces = tuple(pieces)

    @property
    def name(self) -> str:  # type: ignore[override]  # a property in place of an attribute
        """The names of the secrets."""
        return _joined_names(self.secrets())

    @property
    def available(self) -> bool:  # type: ignore[override]  # a property in place of an attribute
        """Whether all secrets are available."""
        return all(secret.available for secret in self.secrets())

    known = property(lambda self: all(secret.known for secret in self.secrets()))
    on_host = property(lambda self: any(one.on_host for one in self.secrets()))

    def reveal(self) -> str:
        """Return the whole text, and record the use of its secrets for `recording`."""
        return "".join(piece if isinstance(piece, str) else piece.reveal() for piece in self.pieces)

    def secrets(self) -> tuple[Secret, ...]:
        """Return the secrets in the text."""
        return tuple(piece for piece in self.pieces if isinstance(piece, Secret))

    def _bare(self) -> str:
        return "".join(piece if isinstance(piece, str) else piece._bare() for piece in self.pieces)

    def __repr__(self) -> str:
        return repr("".join(piece if isinstance(piece, str) else repr(piece) for piece in self.pieces))

    def __str__(self) -> str:
        return "".join(map(str, self.pieces))


def composed(parts: Iterable[Any]) -> Any:
    """Return texts and values as one: a value, or plain text if there is no secret in it.

    :raises SecretError: a string contains a damaged token or a mask
    """
    pieces: list[str | Secret] = []
    for part in parts:
        for piece in _pieces(part):
            if isinstance(piece, str) and pieces and isinstance(pieces[-1], str):
                pieces[-1] += piece
            elif isinstance(piece, Secret) or piece:  # a comparison would read the value of a `LaterSecret`
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
                secret, encode = piece
                assert isinstance(secret, Secret)
                if encode is not None and not secret.on_host:  # quoting does not change a generated value
                    secret = Secret(secret.name, encode(secret._bare()), secret.available)
                yield secret


def resolve_tokens(value: Any, depth: int = 0) -> Any:
    """Return a value in which each text that contains tokens is a `Value`, also in lists and maps.

    :returns: the value itself if it contains no tokens
    :raises SecretError: a string contains a damaged token or a mask, or the key of a map contains a token
    """
    if not tokens.in_use() or value is None or isinstance(value, (bool, int, float, Value)) or depth > DEEPEST:
        return value
    if isinstance(value, str):
        return value if tokens.split(value) is None else composed([value])
    if isinstance(value, (bytes, bytearray)):
        return _resolve_bytes(bytes(value))
    if isinstance(value, Mapping):
        return _resolve_map(value, depth)
    if isinstance(value, (list, tuple, PVector)):
        items = [resolve_tokens(item, depth + 1) for item in value]
        if all(one is other for one, other in zip(items, value, strict=True)):
            return value
        return tuple(items) if isinstance(value, tuple) else pvector(items) if isinstance(value, PVector) else items
    return value


def _resolve_map(value: Mapping[Any, Any], depth: int) -> Mapping[Any, Any]:
    for key in value:
        if isinstance(key, Value) or (isinstance(key, str) and isinstance(resolve_tokens(key), Value)):
            raise SecretError("a key of a map contains a secret", "put the secret into the value: keys are shown")
    resolved = {key: resolve_tokens(item, depth + 1) for key, item in value.items()}
    if all(resolved[key] is item for key, item in value.items()):
        return value
    return resolved if isinstance(value, dict) else MappingProxyType(resolved)


def _resolve_bytes(data: bytes) -> Any:
    """Return bytes unchanged, or a value if they are encoded text with tokens."""
    if not tokens.IN_BYTES.search(data):
        return data
    try:
        text = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:  # cut or not text: look for tokens in what can be decoded
        text = "".join(match.decode("utf-8", "surrogatepass") for match in tokens.SURROGATE.findall(data))
        text += data.decode("ascii", "ignore")
    return data if tokens.split(text) is None else composed([text])


def contains_secret(value: Any, depth: int = 0) -> bool:
    """Return whether a value is a `Value`, or is a list or map that contains one at any depth."""
    if not isinstance(value, (list, tuple, Mapping, PVector)) or depth > DEEPEST:
        return isinstance(value, Value)
    items = value.values() if isinstance(value, Mapping) else value
    return not set(map(type, items)) <= PLAIN and any(contains_secret(item, depth + 1) for item in items)


def would_show_secret(names: Any) -> bool:
    """Return whether a name, or one of several names, contains a secret or a damaged token."""
    try:
        return contains_secret(resolve_tokens(names))
    except SecretError:
        return True


def revealed(value: Any, sources: list[Secret]) -> Any:
    """Return a value with its secrets revealed, also in lists and maps.

    :param sources: the secrets are added to this list
    """
    value = resolve_tokens(value)
    if isinstance(value, Opaque):
        sources.extend(value.secrets())
        return value._bare() if value.on_host else value.reveal()  # the first raises SecretError
    if isinstance(value, MappingProxyType) or (isinstance(value, dict) and contains_secret(value)):
        return {key: revealed(item, sources) for key, item in value.items()}
    if isinstance(value, (list, tuple, PVector)) and contains_secret(value):
        return [revealed(item, sources) for item in value]
    return value


def derived(result: Any, sources: Iterable[Secret]) -> Any:
    """Return the result of a function of secrets with each text in it as a value.

    If a string contains the secrets' values, plain or encoded, its other parts stay plain text. Otherwise the whole
    text becomes a secret.

    :param result: what the function returned
    :param sources: the secrets that the function received
    :raises SecretError: a string is too short to be masked, or bytes are not text in UTF-8
    """
    secrets = list(sources)
    if not secrets or result is None or isinstance(result, (bool, int, float, Value)):
        return result
    if isinstance(result, str):
        return _derived_text(str.__str__(result), secrets)
    if isinstance(result, (bytes, bytearray, os.PathLike)):
        return _derived_text(_as_text(result, secrets), secrets)
    if isinstance(result, Mapping):
        return {key: derived(item, secrets) for key, item in result.items()}
    if isinstance(result, (list, tuple, set, frozenset)):
        return [derived(item, secrets) for item in result]
    if isinstance(result, Iterator):
        return (derived(item, secrets) for item in result)
    return result


def refuse_number(function_name: str, text: object, result: object, name: str) -> None:
    """Refuse to convert a secret to a number, because no report could mask the number.

    :raises SecretError: `result` is the number that the secret's text contains
    """
    if isinstance(result, bool) or not isinstance(result, (int, float)) or not isinstance(text, str):
        return
    try:
        same = float(text) == result
    except ValueError:
        return
    if same:
        detail = f"{function_name} converts the secret {name} to a number, and a number can't be masked"
        raise SecretError(detail, "leave the secret as text")


def _as_text(result: Any, sources: list[Secret]) -> str:
    """Return bytes or a path as text, or raise SecretError if the bytes are not UTF-8."""
    data = os.fspath(result) if isinstance(result, os.PathLike) else bytes(result)
    with contextlib.suppress(UnicodeDecodeError):
        return data if isinstance(data, str) else data.decode("utf-8")
    detail = f"a function of the secret {_joined_names(sources)} returned bytes that are not text in UTF-8"
    raise SecretError(detail, "let the function return text")


def _derived_text(text: str, sources: list[Secret]) -> Any:
    forms: dict[str, Secret] = {}  # the values of the secrets, plain and encoded
    for secret in sources:
        bare = secret._bare()
        for form in (bare, *(encode(bare) for encode in tokens.ENCODINGS)):
            forms.setdefault(form, secret)
    pieces: list[str | Secret] = []
    end = 0
    while end < len(text):
        matches = [(at, -len(form), form) for form in forms if (at := text.find(form, end)) >= 0]
        if not matches:
            break
        at, _, form = min(matches)
        source = forms[form]
        plain = form == source._bare()
        pieces += [text[end:at], source if plain else Secret(source.name, form, source.available)]
        end = at + len(form)
    if pieces or not text:
        return composed([*pieces, text[end:]])
    if len(text) < SHORTEST:
        detail = f"a function of the secret {_joined_names(sources)} returned fewer than {SHORTEST} characters"
        raise SecretError(f"{detail}, which can't be masked in output", "use the whole secret, or a longer part of it")
    return Secret(sources[0].name, text, all(secret.available for secret in sources))


def _joined_names(secrets: Iterable[Secret]) -> str:
    return "+".join(dict.fromkeys(secret.label for secret in secrets))


def mask_secrets(text: str) -> str:
    """Return text from other people's code, such as an exception, with all secrets and tokens masked."""
    values = by_name(known_values())
    return tokens.masked(_redactor(tuple(values.items())).text(text) if values else text)


def known_values() -> list[tuple[str, str]]:
    """Return the names and values of the secrets that were read. A `LaterSecret` is not read for this."""
    return [(secret.name, secret._bare()) for secret in tokens.secrets_in_use() if type(secret) is Secret]


@functools.lru_cache(maxsize=1)
def _redactor(values: tuple[tuple[str, str], ...]) -> Redactor:
    from statecfg.remote.machine.redact import Redactor

    return Redactor(dict(values))


def by_name(named: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the values of secrets by name. If several values have the same name, the later names get a number."""
    values: dict[str, str] = {}
    for name, value in named:
        label, number = name, 2
        while values.setdefault(label, value) != value:
            label, number = f"{name}-{number}", number + 1
    return values


@contextlib.contextmanager
def recording() -> Iterator[dict[str, Secret]]:
    """Collect, by name, the secrets that are revealed in the block. A result of the block may contain their values."""
    used: dict[str, Secret] = {}
    token = _USED.set((*_USED.get(), used))
    try:
        yield used
    finally:
        _USED.reset(token)
