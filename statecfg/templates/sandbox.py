"""What a template may do, and how much of it: no side effects, no undefined names, 5 seconds, 16 MB."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from jinja2 import nodes, runtime, visitor
from jinja2.exceptions import UndefinedError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing

from statecfg.graph.opaque import CHANGING, TELLING, Secret, Value, composed, derived, found, opened, refuse_number
from statecfg.problems import InvalidInput
from statecfg.remote.graph.errors import StatecfgError

SECONDS = 5.0
SIZE = 16 * 1024 * 1024
BITS = 100_000
# What would make two renderings of one template differ.
_RANDOM = ("random",)
_WIDE = ("center", "ljust", "rjust", "zfill", "expandtabs", "indent", "batch", "slice")
# Filters that pass values on, or compare them, and look into no text.
_PASSING = frozenset((
    "attr", "batch", "count", "d", "default", "dictsort", "first", "groupby", "items", "join", "last", "length",
    "list", "map", "max", "min", "reject", "rejectattr", "select", "selectattr", "slice", "sort", "sum", "unique",
))  # fmt: skip
_METHODS = frozenset((*CHANGING, *TELLING))
_WIDTH = re.compile(r"\d{7,}|%[-+ #0]*\*")


class TooMuch(StatecfgError):
    """The template exceeds a limit."""


class Refused(StatecfgError):
    """The template does something that is surely not what its author means."""

    def __init__(self, detail: str, help: str = "") -> None:
        super().__init__(detail)
        self.detail, self.help = detail, help


class Missing(StatecfgError, UndefinedError):
    """A name that does not exist; `owner` is what it was looked up in, None for the variables themselves."""

    def __init__(self, message: str, name: Any, owner: Any) -> None:
        super().__init__(message)
        self.name, self.owner = name, owner


class Budget:
    """What a rendering has used up."""

    __slots__ = ("deadline", "size")

    def __init__(self) -> None:
        self.deadline, self.size = time.monotonic() + SECONDS, 0

    def tick(self) -> None:
        """Raise TooMuch where the time is over."""
        if time.monotonic() > self.deadline:
            raise TooMuch(f"it runs longer than {SECONDS:g} seconds")

    def add(self, size: int) -> None:
        """Count output; raise TooMuch where there is too much of it."""
        self.size += size
        if self.size > SIZE:
            raise TooMuch(f"its output is larger than {SIZE >> 20} MB")
        self.tick()


BUDGET: ContextVar[Budget] = ContextVar("budget of a rendering")


class Undefined(runtime.StrictUndefined):
    """An undefined value that fails, by name, on any use but `is defined` and `default`."""

    __slots__ = ()

    def __init__(self, hint: Any = None, obj: Any = missing, name: Any = None, exc: Any = UndefinedError) -> None:
        owner = None if obj is missing else obj

        def fail(message: str | None = None) -> Exception:
            return Missing(str(message), name, owner) if exc is UndefinedError else exc(message)

        super().__init__(hint, obj, name, fail)  # type: ignore[arg-type]  # called for an exception, as a class would be


def _reported(message: str | None) -> Exception:
    return InvalidInput([])


# Stands for a variable whose value could not be made, which was reported: what uses it fails without another word.
UNREADABLE = Undefined(name="unreadable", exc=_reported)


class _Limits(visitor.NodeTransformer):
    """Puts the budget into loops, and our own joining into `~`, which knows secrets."""

    def visit_For(self, node: nodes.For) -> nodes.For:
        self.generic_visit(node)
        node.iter = _call("ticking", [node.iter], node.lineno)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Call:
        self.generic_visit(node)
        return _call("joined", node.nodes, node.lineno)


def _call(method: str, args: list[Any], line: int) -> nodes.Call:
    function = nodes.EnvironmentAttribute(method, lineno=line)
    return nodes.Call(function, args, [], None, None, lineno=line)


class Sandbox(ImmutableSandboxedEnvironment):
    """The environment of every template, file or scalar."""

    intercepted_binops = frozenset(("+", "*", "**", "%"))

    def __init__(self, loader: Any = None) -> None:
        super().__init__(
            undefined=Undefined,
            loader=loader,
            keep_trailing_newline=True,
            trim_blocks=True,
            lstrip_blocks=True,
            autoescape=False,
            finalize=finalized,
            auto_reload=True,
        )
        self.filters = {name: _guarded(name, f) for name, f in self.filters.items() if name not in _RANDOM}
        self.tests = {name: _tested(name, test) for name, test in self.tests.items()}
        self.globals.pop("lipsum", None)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        return self.limited(super()._parse(source, name, filename))  # type: ignore[no-any-return]  # Jinja does not annotate it

    def limited(self, tree: nodes.Node) -> Any:
        """Return a parsed tree with the budget put in."""
        return _Limits().visit(tree)

    def ticking(self, iterable: Iterable[Any]) -> Iterator[Any]:
        """Yield the items of a loop as long as there is time."""
        budget = BUDGET.get()
        for item in iterable:
            budget.tick()
            yield item

    def joined(self, *parts: Any) -> Any:
        """Return what `a ~ b` gives: a value where one of them is."""
        texts = [part if isinstance(part, Value) else str(part) for part in parts]
        if sum(map(len, texts)) > SIZE:
            raise TooMuch(f"a text grows larger than {SIZE >> 20} MB")
        return composed(texts)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Let templates use of a secret what text has as well, and nothing that gives its value as plain text."""
        return attr in _METHODS if isinstance(obj, Value) else super().is_safe_attribute(obj, attr, value)

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call what the template calls, with its arguments bounded."""
        BUDGET.get().tick()
        owner = getattr(__obj, "__self__", None)
        if owner is __self:
            return __obj(*args)
        if isinstance(owner, (str, Value)):
            _widths(__obj.__name__, args)
        if not isinstance(owner, str):
            return found(super().call(__context, __obj, *args, **kwargs))
        sources: list[Secret] = []
        given = [opened(value, sources) for value in args]
        named = {key: opened(value, sources) for key, value in kwargs.items()}
        plain = opened(owner, sources)
        if sources and plain is not owner:
            __obj = getattr(plain, __obj.__name__)
        return derived(super().call(__context, __obj, *given, **named), sources)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Format a text where the result can't become huge."""
        if getattr(value, "__name__", "") in ("format", "format_map"):
            owner = getattr(value, "__self__", None)
            if isinstance(owner, str) and _WIDTH.search(owner):
                raise TooMuch("it formats with a width of millions")
        return super().wrap_str_format(value)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Compute `+ * ** %` where the result can't become huge."""
        sources: list[Secret] = []
        left, right = opened(left, sources), opened(right, sources)
        BUDGET.get().tick()
        if operator == "*":
            for many, times in ((left, right), (right, left)):
                if hasattr(many, "__len__") and isinstance(times, int) and len(many) * times > SIZE:
                    raise TooMuch("it repeats a value too often")
        numbers = isinstance(left, int) and isinstance(right, int)
        if numbers and operator in ("*", "**"):
            bits = left.bit_length() * right if operator == "**" else left.bit_length() + right.bit_length()
            if bits > BITS:
                raise TooMuch("it computes a number of more than 30,000 digits")
        if operator == "%" and isinstance(left, str) and _WIDTH.search(left):
            raise TooMuch("it formats with a width of millions")
        if (
            operator == "+"
            and isinstance(left, (str, list))
            and hasattr(right, "__len__")
            and len(left) + len(right) > SIZE
        ):
            raise TooMuch(f"a value grows larger than {SIZE >> 20} million items")
        return derived(super().call_binop(context, operator, left, right), sources)


def finalized(value: Any) -> Any:
    """Return what `{{ value }}` prints; refuse what has no text of its own."""
    if isinstance(value, Value):
        return str(value)  # its tokens; the text that all of it becomes is made a value again
    if isinstance(value, (str, int, float, runtime.Undefined)):
        return value
    if value is None:
        raise Refused("an expression gives nothing (None)", "give it a value, or use `| default('', true)`")
    if isinstance(value, (Mapping, list, tuple, set, frozenset)):
        what = "a map" if isinstance(value, Mapping) else "a list"
        raise Refused(f"an expression gives {what}", "use `| join(',')`, `| tojson`, or a loop")
    if isinstance(value, Iterator) or type(value).__module__ in ("jinja2.runtime", "jinja2.environment"):
        return value
    raise Refused(f"an expression gives an object ({type(value).__name__})", "name one of its attributes")


def _widths(name: str, args: Iterable[Any]) -> None:
    if name in _WIDE and any(isinstance(value, int) and value > SIZE for value in args):
        raise TooMuch(f"`{name}` makes a text of more than {SIZE >> 20} MB")


def _guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        _widths(name, (*args, *kwargs.values()))
        if name == "format" and isinstance(args[0], str) and _WIDTH.search(args[0]):
            raise TooMuch("it formats with a width of millions")
        if name in _PASSING:
            return found(function(*args, **kwargs))
        sources: list[Secret] = []
        given = [opened(value, sources) for value in args]
        result = function(*given, **{key: opened(value, sources) for key, value in kwargs.items()})
        if sources:
            refuse_number(f"the filter `{name}`", given[0], result, sources[0].name)
        if any(result is value for value in args):  # `replace` that replaces nothing, for one
            return result
        return derived(result, sources)

    return guarded


def _tested(name: str, function: Any) -> Any:
    if name in ("defined", "undefined", "filter", "test", "sameas", "callable"):
        return function

    @functools.wraps(function)
    def tested(*args: Any, **kwargs: Any) -> Any:
        sources: list[Secret] = []
        return function(*(opened(value, sources) for value in args), **kwargs)

    return tested
