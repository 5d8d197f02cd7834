"""Read JSON data into frozen classes, strictly: only known keys at every depth, and every value of the right type.

The annotations of a class that derives from `Strict` define which JSON it accepts: `str`, `int`, `float`, `bool`,
`Literal[…]`, `X | None`, `tuple[X, ...]`, `Mapping[str, X]` and other such classes. A value in the class is a default.
`Annotated[X, Free(…)]` limits the depth and size of data; its keys are not checked if X is `Any` or
`Mapping[str, Any]`. `Annotated[str, OneOf(…)]` accepts the strings of a list.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from sys import getsizeof
from typing import Annotated, Any, ClassVar, Literal, NoReturn, Self, Union, get_args, get_origin, get_type_hints

from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.hooks.ruby_json import deeper

Reader = Callable[[Any], Any]
DEPTH = 104  # levels of nesting in data with unknown keys; the output of a hook may have 100
_REFERENCE = 8  # bytes of a pointer
_PLAIN = frozenset((str, int, float, bool, types.NoneType))


class Invalid(StatecfgError, ValueError):
    """Data does not have the shape of its class.

    :param what: what is wrong, in words
    :param where: path of the wrong value: its keys and indexes, innermost first
    """

    def __init__(self, what: str, where: tuple[str, ...] = ()) -> None:
        self.what, self.where = what, where
        position = "".join(reversed(where)).removeprefix(".")
        super().__init__(f"{position}: {what}" if position else what)

    def under(self, key: str) -> Invalid:
        """Return the same problem with its path extended by an outer key.

        :param key: `.name` or `[3]`
        """
        return Invalid(self.what, (*self.where, key))


@dataclass(frozen=True)
class Free:
    """Limits data, in particular data with unknown keys.

    :param most: maximum number of bytes of memory
    :param depth: maximum number of levels of nesting
    :param map: whether the data must be a map
    """

    most: int
    depth: int = DEPTH
    map: bool = False


@dataclass(frozen=True)
class OneOf:
    """Restricts a string to the values of a list, such as `Outcome.ALL`."""

    allowed: tuple[str, ...]


class Strict:
    """The base class of frozen classes that are read from JSON.

    They are not dataclasses: their methods would be generated at every start of statecfg and are not needed.
    """

    _compiled: ClassVar[tuple[dict[str, Reader], frozenset[str]] | None] = None

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Return the object that JSON data describes.

        :param value: decoded JSON
        :raises Invalid: if the data does not have the shape of this class
        """
        compiled = cls.__dict__.get("_compiled")
        if compiled is None:
            compiled = cls._compiled = _compile(cls)
        readers, required = compiled
        if type(value) is not dict:
            raise Invalid(f"{brief(value)} is not a map")
        values = {}
        for key, item in value.items():
            reader = readers.get(key)
            if reader is None:
                raise Invalid(f"the key {brief(key)} is unknown")
            try:
                values[key] = reader(item)
            except Invalid as problem:
                raise problem.under(f".{key}") from None
        if not required <= values.keys():
            raise Invalid(f"the key {min(required - values.keys())!r} is missing")
        created = object.__new__(cls)
        created.__dict__.update(values)  # missing values are read from the class
        return created

    def __setattr__(self, name: str, value: object) -> NoReturn:
        """Refuse to change the object."""
        raise AttributeError(f"{type(self).__name__}.{name} can't be changed")

    def to_json(self, texts: dict[str, str] | None = None) -> Mapping[str, Any]:
        """Return the JSON data that the object was read from.

        :param texts: strings that the data share with other data; receives the new ones
        """
        known = {} if texts is None else texts
        return {key: _plain(value, known) for key, value in self.__dict__.items()}


def weigh(value: Any) -> int:
    """Return how many bytes of memory decoded JSON takes; shared keys count each time."""
    total, waiting = 0, [value]
    while waiting:
        item = waiting.pop()
        total += getsizeof(item) + _REFERENCE
        item_type = type(item)  # decoded JSON has no subclasses
        if item_type is dict:
            total += sum(map(getsizeof, item)) + _REFERENCE * len(item)
            waiting.extend(item.values())
        elif item_type is list:
            waiting.extend(item)
    return total


def brief(value: object) -> str:
    """Return the beginning of a value, for a message."""
    if isinstance(value, list | dict) and len(value) > 8:
        return f"a {'list' if isinstance(value, list) else 'map'} of {len(value):,} values"
    text = repr(value[:80] if isinstance(value, str) else value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def _plain(value: Any, texts: dict[str, str]) -> Any:
    if type(value) is str:
        return texts.setdefault(value, value)
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Strict):
        return value.to_json(texts)
    if isinstance(value, tuple):
        return [_plain(item, texts) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item, texts) for key, item in value.items()}
    return value


def _compile(cls: type[Strict]) -> tuple[dict[str, Reader], frozenset[str]]:
    hints = get_type_hints(cls, include_extras=True)
    readers = {name: _reader(hint) for name, hint in hints.items() if get_origin(hint) is not ClassVar}
    return readers, frozenset(name for name in readers if not hasattr(cls, name))


def _reader(hint: Any) -> Reader:
    """Return the function that reads values of a type.

    :param hint: the type, from an annotation
    :raises TypeError: if JSON can't represent the type
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        (free,) = (mark for mark in arguments[1:] if isinstance(mark, Free | OneOf))
        if isinstance(free, OneOf):
            return _literal(frozenset(free.allowed))
        return _free(free, None if arguments[0] in (Any, Mapping[str, Any]) else _reader(arguments[0]))
    if origin is Literal:
        return _literal(frozenset(arguments))
    if origin in (Union, types.UnionType) and types.NoneType in arguments:
        (inner,) = (_reader(argument) for argument in arguments if argument is not types.NoneType)
        return lambda value: None if value is None else inner(value)
    if origin is tuple and arguments[1:] == (...,):
        return _list(_reader(arguments[0]))
    if origin in (dict, Mapping) and arguments[0] is str:
        return _map(_reader(arguments[1]))
    if isinstance(hint, type) and issubclass(hint, Strict):
        return hint.from_json
    if hint in _SCALARS:
        return _scalar(*_SCALARS[hint])
    raise TypeError(f"{hint!r} can't be represented in JSON")


_SCALARS: dict[Any, tuple[tuple[type, ...], str]] = {
    str: ((str,), "a string"),
    int: ((int,), "an integer"),
    float: ((int, float), "a number"),
    bool: ((bool,), "true or false"),
}


def _scalar(classes: tuple[type, ...], name: str) -> Reader:
    def read(value: Any) -> Any:
        if type(value) in classes:
            return value
        raise Invalid(f"{brief(value)} is not {name}")

    return read


def _literal(allowed: frozenset[Any]) -> Reader:
    texts = {text: text for text in allowed}

    def read(value: Any) -> Any:
        if type(value) is str and value in texts:
            return texts[value]  # one string in memory for all objects
        raise Invalid(f"{brief(value)} is not one of {', '.join(sorted(allowed))}")

    return read


def _list(inner: Reader) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not list:
            raise Invalid(f"{brief(value)} is not a list")
        items = []
        for index, item in enumerate(value):
            try:
                items.append(inner(item))
            except Invalid as problem:
                raise problem.under(f"[{index}]") from None
        return tuple(items)

    return read


def _map(inner: Reader) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise Invalid(f"{brief(value)} is not a map")
        entries = {}
        for key, item in value.items():
            try:
                entries[key] = inner(item)
            except Invalid as problem:
                raise problem.under(f"[{brief(key)}]") from None
        return entries

    return read


def _free(free: Free, inner: Reader | None) -> Reader:
    def read(value: Any) -> Any:
        if free.map and type(value) is not dict:
            raise Invalid(f"{brief(value)} is not a map")
        if isinstance(value, dict | list):
            if deeper(value, free.depth):
                raise Invalid(f"it is nested more than {free.depth} levels deep")
            if weigh(value) > free.most:
                raise Invalid(f"it takes more than {free.most:,} bytes of memory")
        elif isinstance(value, str) and getsizeof(value) > free.most:
            raise Invalid(f"it takes more than {free.most:,} bytes of memory")
        return value if inner is None else inner(value)

    return read
