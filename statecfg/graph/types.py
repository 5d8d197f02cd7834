"""Turn annotations into types: each checks one value, and has a description for messages and a JSON Schema."""

from __future__ import annotations

import builtins
import collections.abc
import math
import shlex
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any, cast

from pyrsistent import PVector, pvector

from statecfg.graph.host_text import HostText
from statecfg.graph.json_schema import JsonSchema
from statecfg.graph.value import Value
from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.graph.model import Blob
from statecfg.remote.graph.values import Rule
from statecfg.remote.graph.wrong_values import Wrong, in_quotes, show, type_words

_OPEN = frozenset((str, int, bool, float, list, dict, type(None)))
MAX_DEPTH = 100  # of lists and maps inside an attribute
INTEGERS = range(-(2**63), 2**63)


class TypeProblem(StatecfgError):
    """An annotation is not supported."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message)
        self.help = help


class Mismatch(Wrong):
    """A value has the wrong type."""


class ElementMismatch(Mismatch):
    """An element of a list, or a value of a map, has the wrong type. The message says which."""


class Type:
    """A check of one value.

    :param expects: a description of valid values for messages, such as "an absolute path"
    :param check: returns the value as it is stored; raises `Mismatch` or `Wrong`
    :param schema: the JSON Schema of valid values
    :param shown: all reports show the value, so it can't be a secret
    """

    __slots__ = ("check", "expects", "schema", "shown")

    def __init__(
        self, expects: str, check: Callable[[Any], Any], schema: JsonSchema | None = None, shown: bool = False
    ) -> None:
        self.expects, self.check, self.schema, self.shown = expects, check, schema or {}, shown

    def json(self) -> JsonSchema:
        """Return the JSON Schema of valid values."""
        return self.schema.copy()


def mismatch(value: object, expects: str, help: str = "") -> Mismatch:
    """Return the error for a value of the wrong type.

    :param expects: a description of valid values
    :param help: what to write instead
    """
    if not help and type(value).__name__ in ("date", "datetime") and expects != "a date":
        help = f'put it in quotes: "{value}"'
    return Mismatch(f"expected {expects}, got {type_words(value)}: {show(value)}", help)


def hidden(value: object) -> bool:
    """Return whether a value is a secret or text with secrets, which messages must not show."""
    return type(value) not in _OPEN and isinstance(value, Value)


def _string(value: Any) -> Any:
    if type(value) is str:
        return value
    if isinstance(value, str):
        return value if isinstance(value, HostText) else str.__str__(value)
    if hidden(value):
        return value
    if isinstance(value, (bool, int, float)):
        raise mismatch(value, "a string", in_quotes(value))
    if isinstance(value, PurePath):
        return str(value)
    raise mismatch(value, "a string")


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        digits = isinstance(value, str) and value.strip().lstrip("+-").isdigit()
        raise mismatch(value, "an integer", "write it without quotes" if digits else "")
    if value not in INTEGERS:
        raise Wrong(f"{show(value)}; an integer has at most 64 bits")
    return value


def _number(value: Any) -> float | int:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise mismatch(value, "a number")
    if isinstance(value, int) and value not in INTEGERS:
        raise Wrong(f"{show(value)}; an integer has at most 64 bits")
    if not math.isfinite(value):
        raise Wrong(f"{value} is not a finite number")
    return value


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise mismatch(value, "true or false", "write true or false (True or False in Python and Hy)")


def _nothing(value: Any) -> None:
    if value is not None:
        raise mismatch(value, "nothing")


def _bytes(value: Any) -> bytes:
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    raise mismatch(value, "bytes")


def frozen(value: Any, depth: int = 0) -> Any:
    """Return a value of any type with immutable lists and maps.

    Maps keep their order, so that a template that iterates over one always renders the same text. Maps of pyrsistent
    don't.

    :raises Wrong: the value is nested too deeply, or a key of a map is not text
    """
    if isinstance(value, (str, int, float, bool, bytes, Blob)) or value is None:
        return value
    if depth > MAX_DEPTH:
        raise Wrong(f"lists and maps nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, Mapping):
        wrong = next((key for key in value if not isinstance(key, str)), None)
        if wrong is not None and not hasattr(wrong, "name"):
            raise mismatch(wrong, "a string as the key of a map")
        return types.MappingProxyType(
            {getattr(key, "name", key): frozen(item, depth + 1) for key, item in value.items()}
        )
    if isinstance(value, (list, tuple, PVector)):
        return pvector([frozen(item, depth + 1) for item in value])
    return value


ANY = Type("anything", frozen)
_PLAIN: dict[Any, Type] = {
    str: Type("a string", _string, {"type": "string"}),
    int: Type("an integer", _integer, {"type": "integer"}),
    float: Type("a number", _number, {"type": "number"}),
    bool: Type("true or false", _truth, {"type": "boolean"}),
    bytes: Type("bytes", _bytes, {}),
    type(None): Type("nothing", _nothing, {"type": "null"}),
    None: Type("nothing", _nothing, {"type": "null"}),
    Any: ANY,
    object: ANY,
}
_LISTS = (list, tuple, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_MAPS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def of_annotation(annotation: Any, scope: Mapping[str, Any]) -> Type:
    """Return the type for an annotation.

    :param annotation: the annotation, or its source text
    :param scope: the names that the source text can use
    :raises TypeProblem: the annotation is not supported, or its source text fails
    """
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        return of_annotation(_evaluated(annotation, scope), scope)
    plain = _PLAIN.get(annotation) if isinstance(annotation, collections.abc.Hashable) else None
    if plain is not None:
        return plain
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _annotated(of_annotation(inner[0], scope), inner[1:])
    if origin is typing.Literal:
        return _literal(inner)
    if origin in (typing.Union, types.UnionType):
        return _union([of_annotation(item, scope) for item in inner])
    if annotation in _LISTS or origin in _LISTS:
        return _list(of_annotation(inner[0], scope) if inner else ANY)
    if annotation in _MAPS or origin in _MAPS:
        return _map(of_annotation(inner[1], scope) if len(inner) == 2 else ANY)
    if isinstance(annotation, type):
        return _instance(annotation)
    if isinstance(annotation, Rule) or is_function(annotation):
        return _annotated(ANY, (annotation,))
    raise TypeProblem(
        f"{annotation!r} is not a supported type", "use str, int, bool, list[…] or a type that statecfg exports"
    )


def is_function(value: object) -> bool:
    """Return whether an annotation is a function that checks a value."""
    return isinstance(value, (types.FunctionType, types.BuiltinFunctionType))


def _evaluated(text: str, scope: Mapping[str, Any]) -> Any:
    try:
        return eval(text, {"__builtins__": builtins.__dict__, **scope})  # noqa: S307  # the annotation of a type's author
    except NameError as error:
        help = (
            "import it at run time or define it in this module; names under `if TYPE_CHECKING` do not exist at run time"
        )
        raise TypeProblem(f"{error} in {text!r}", help) from None
    except Exception as error:
        raise TypeProblem(f"{type(error).__name__}: {error} in {text!r}") from None


def _annotated(inner: Type, marks: tuple[Any, ...]) -> Type:
    rules = [mark for mark in marks if callable(mark)]
    if not rules:
        return inner
    described = [rule for rule in rules if isinstance(rule, Rule)]
    expects = described[-1].expects if described else inner.expects
    checks_type = bool(described) and described[0].takes
    check_inner = inner.check

    def check(value: Any) -> Any:
        if not checks_type:
            try:
                value = check_inner(value)
            except Mismatch as error:
                if not described or isinstance(error, ElementMismatch):
                    raise
                raise mismatch(value, expects, error.help) from None
        if hidden(value):
            return _checked_secret(value, rules)
        for rule in rules:
            value = rule(value)
            if value is None:
                raise Wrong(f"{getattr(rule, '__name__', 'the validator')} returned None instead of the value")
        return value

    schema = inner.schema.copy()
    for rule in described:
        schema.update(cast(JsonSchema, rule.schema))
    return Type(expects, check, schema, inner.shown or any(rule.shown for rule in described))


def _checked_secret(secret: Value, rules: list[Any]) -> Any:
    # Tags may exclude the node, so read nothing for it now. `later.problems` checks the value when it is needed.
    for rule in rules if secret.known and not secret.on_host else ():
        if not secret.available:
            break
        try:
            rule(secret.reveal())
        except ValueError:
            raise Wrong(f"the value of {secret!r} is not {getattr(rule, 'expects', 'valid')}") from None
    return secret


def _literal(choices: tuple[Any, ...]) -> Type:
    words = ", ".join(map(repr, choices))
    expects = f"one of {words}" if len(choices) > 1 else words

    def check(value: Any) -> Any:
        for choice in choices:
            if type(choice) is type(value) and choice == value:
                return choice
        text = str(getattr(value, "name", value)) if isinstance(value, str) or hasattr(value, "name") else None
        if text in choices:
            return text
        raise Wrong(f"expected {expects}, got {show(value)}")

    return Type(expects, check, {"enum": list(choices)})


def _union(options: list[Type]) -> Type:
    expects = " or ".join(dict.fromkeys(option.expects for option in options if option.expects != "nothing"))
    optional = any(option.expects == "nothing" for option in options)
    alternatives = [option for option in options if option.expects != "nothing"]

    def check(value: Any) -> Any:
        if value is None and optional:
            return None
        failures: list[Wrong] = []
        for option in alternatives:
            try:
                return option.check(value)
            except Wrong as error:
                failures.append(error)
        wrong_values = [error for error in failures if not isinstance(error, Mismatch)]
        if wrong_values or len(failures) == 1:
            raise (wrong_values or failures)[0]
        raise mismatch(value, expects, next((error.help for error in failures if error.help), ""))

    json_schema = (
        alternatives[0].schema if len(alternatives) == 1 else {"anyOf": [option.schema for option in alternatives]}
    )
    return Type(expects, check, json_schema, any(option.shown for option in alternatives))


def _list(inner: Type) -> Type:
    expects = "a list" if inner is ANY else f"a list, each element {inner.expects}"
    check_inner = inner.check

    def check(value: Any) -> Any:
        if not isinstance(value, (list, tuple, PVector)):
            raise mismatch(value, "a list", _as_list(value) if isinstance(value, str) else "")
        items = []
        for index, item in enumerate(value):
            try:
                items.append(check_inner(item))
            except Wrong as error:
                raise _inside(error, f"element {index + 1}") from None
        return pvector(items)

    return Type(expects, check, {"type": "array", "items": inner.schema}, inner.shown)


def _map(inner: Type) -> Type:
    expects = "a map" if inner is ANY else f"a map, each value {inner.expects}"

    def check(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise mismatch(value, "a map")
        items = {}
        for key, item in value.items():
            name = getattr(key, "name", key)
            if not isinstance(name, str):
                raise mismatch(key, "a string as the key of a map", f'put it in quotes: "{show(key)}"')
            try:
                items[str.__str__(name)] = inner.check(item)
            except Wrong as error:
                raise _inside(error, f"`{name}`") from None
        return types.MappingProxyType(items)

    return Type(expects, check, {"type": "object", "additionalProperties": inner.schema})


def _as_list(text: str) -> str:
    """Return a help text that shows how to write a list instead of a string."""
    try:
        words = shlex.split(text)
    except ValueError:  # a quote is not closed
        words = []
    # Only a shell understands the other characters.
    plain = len(words) > 1 and not set(text) & set("|&;<>()$`*?~#")
    return f"write a list: {show(words)}" if plain else f"write a list with one element: [{show(text)}]"


def _inside(error: Wrong, where: str) -> Wrong:
    text = f"{where}: {error}"
    return ElementMismatch(text, error.help) if isinstance(error, Mismatch) else Wrong(text, error.help)


def _instance(cls: type) -> Type:
    expects = f"{'an' if cls.__name__[:1] in 'AEIOaeio' else 'a'} {cls.__name__}"

    def check(value: Any) -> Any:
        if isinstance(value, cls):
            return value
        raise mismatch(value, expects)

    return Type(expects, check)
