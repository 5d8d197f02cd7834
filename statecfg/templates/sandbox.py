"""The limits of templates: no side effects, no undefined names, bounded time and memory."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from jinja2 import nodes, runtime, visitor
from jinja2.compiler import CodeGenerator
from jinja2.exceptions import UndefinedError
from jinja2.lexer import Lexer
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedFormatter
from jinja2.utils import missing

from statecfg.facts import reading
from statecfg.graph import host_text
from statecfg.graph.host_items import HostItem
from statecfg.graph.host_text import HostText
from statecfg.graph.opaque import Secret, composed, derived, refuse_number, resolve_tokens, revealed
from statecfg.graph.value import CHANGING, TELLING, Value
from statecfg.problems import InvalidInput
from statecfg.problems.tokens import SecretError
from statecfg.remote.graph.errors import StatecfgError
from statecfg.templates import ansible, bounds
from statecfg.templates.filters import FILTERS, TESTS
from statecfg.templates.filters.limits import BUDGET, Budget, Refused, TooMuch
from statecfg.templates.layout import LineLexer

NO_SETTINGS: Mapping[str, Any] = {}
# Filters that would make two renderings of one template differ.
_RANDOM = ("random",)
# Filters that pass on or compare values without reading their text.
_PASSING = frozenset((
    "attr", "batch", "count", "d", "default", "dictsort", "first", "groupby", "items", "join", "last", "length",
    "list", "map", "max", "min", "reject", "rejectattr", "select", "selectattr", "slice", "sort", "sum", "unique",
))  # fmt: skip
_METHODS = frozenset((*CHANGING, *TELLING))
_WIDTH = re.compile(r"\d{7,}|%[-+ #0]*\*")
TOO_WIDE = "the template formats a string with a width of millions"


class Missing(StatecfgError, UndefinedError):
    """A name does not exist.

    :param owner: the value that should have the name; `missing` if the name is a variable
    """

    def __init__(self, message: str, name: Any, owner: Any) -> None:
        super().__init__(message)
        self.name, self.owner = name, owner


class Undefined(runtime.StrictUndefined):
    """An undefined value. Every use except `is defined` and `default` fails and names it."""

    __slots__ = ()

    def __init__(self, hint: Any = None, obj: Any = missing, name: Any = None, exc: Any = UndefinedError) -> None:
        def fail(message: str | None = None) -> Exception:
            return Missing(str(message), name, obj) if exc is UndefinedError else exc(message)

        super().__init__(hint, obj, name, fail)  # type: ignore[arg-type]  # called for an exception, as a class would be


def _reported(message: str | None) -> Exception:
    return InvalidInput([])


# Replaces a variable whose value failed. That was reported, so a use of the variable fails without another problem.
UNREADABLE = Undefined(name="unreadable", exc=_reported)


class _Limits(visitor.NodeTransformer):
    """Makes loops and new lists and maps check the budget, and `~` join secrets."""

    def visit_For(self, node: nodes.For) -> nodes.For:
        self.generic_visit(node)
        text = sum(len(one.data) for part in node.body for one in part.find_all(nodes.TemplateData))
        node.iter = _call("ticking", [node.iter, nodes.Const(text)], node.lineno)
        return node

    def visit_List(self, node: nodes.List) -> nodes.Expr:
        self.generic_visit(node)
        return node if all(map(_is_constant, node.items)) else _call("made", [node], node.lineno)

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Expr:
        self.generic_visit(node)
        constant = node.ctx != "load" or all(map(_is_constant, node.items))
        return node if constant else _call("made", [node], node.lineno)

    def visit_Dict(self, node: nodes.Dict) -> nodes.Expr:
        self.generic_visit(node)
        constant = all(_is_constant(pair.key) and _is_constant(pair.value) for pair in node.items)
        return node if constant else _call("made", [node], node.lineno)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Call:
        self.generic_visit(node)
        return _call("joined", node.nodes, node.lineno)


def _is_constant(node: nodes.Expr) -> bool:
    return isinstance(node, (nodes.Const, nodes.TemplateData, nodes.List, nodes.Tuple, nodes.Dict))


def _call(method: str, args: list[Any], line: int) -> nodes.Call:
    function = nodes.EnvironmentAttribute(method, lineno=line)
    return nodes.Call(function, args, [], None, None, lineno=line)


class _Context(runtime.Context):
    """The variables of a template. It records which of them the template reads."""

    def resolve_or_missing(self, key: str) -> Any:
        """Return the value of a name, or `missing`."""
        reading.note(key)
        found = super().resolve_or_missing(key)
        if found is missing and getattr(self.environment, "style", "") == ansible.STYLE and "host" in self.parent:
            return ansible.value(key, self.parent["host"])
        return found


class _Code(CodeGenerator):
    """Writes the code of templates; what they print keeps the mark of a host's text."""

    def _output_child_pre(self, node: Any, frame: Any, finalize: Any) -> None:
        self.write(f"environment.printed({finalize.src or ''}")


class Sandbox(ImmutableSandboxedEnvironment):
    """The environment of every template, file or scalar.

    :param style: `ansible` for templates of Ansible's roles, which have its names; otherwise ""
    :param settings: other settings of Jinja2
    """

    context_class = _Context
    code_generator_class = _Code
    intercepted_binops = frozenset(("+", "*", "**", "%"))

    def __init__(self, loader: Any = None, style: str = "", settings: Mapping[str, Any] = NO_SETTINGS) -> None:
        # Jinja2's own rules for lines are those of Ansible; `LineLexer` has ours.
        whitespace = {"keep_trailing_newline": True, "trim_blocks": bool(style), "lstrip_blocks": False}
        super().__init__(
            undefined=Undefined,
            loader=loader,
            autoescape=False,
            finalize=(lambda value: finalized(ansible.printable(value))) if style else finalized,
            auto_reload=True,
            **{**whitespace, **settings},
        )
        self.style = style
        self._layout = None if style else LineLexer(self)
        filters = {**self.filters, **FILTERS}
        self.filters = {name: _guarded(name, function) for name, function in filters.items() if name not in _RANDOM}
        self.tests = {name: _tested(name, test) for name, test in {**self.tests, **TESTS}.items()}
        self.globals.pop("lipsum", None)

    @property
    def lexer(self) -> Lexer:
        """The lexer of templates."""
        return self._layout or super().lexer

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        return self.limited(super()._parse(source, name, filename))  # type: ignore[no-any-return]  # Jinja does not annotate it

    def limited(self, tree: nodes.Node) -> Any:
        """Return a parsed tree whose loops check the budget."""
        return _Limits().visit(tree)

    def ticking(self, iterable: Iterable[Any], text: int) -> Iterator[Any]:
        """Yield the items of a loop until the time or the memory is used.

        :param text: the characters that each round writes at least
        """
        budget = BUDGET.get()
        for item in iterable:
            budget.tick()
            budget.make(16 + text)
            yield item

    @staticmethod
    def concat(pieces: Iterable[str]) -> str:
        """Return the text of a macro or block."""
        found = list(pieces)
        size = sum(map(len, found))
        budget = BUDGET.get()
        budget.text(size)
        budget.make(size)
        text = "".join(found)
        return host_text.carried(text, found) if host_text.in_use() else text

    @staticmethod
    def printed(value: Any) -> str:
        """Return the text of what a template prints."""
        return value if isinstance(value, HostText) else str(value)

    def made(self, value: Any) -> Any:
        """Return a new list or map, unless it is too large."""
        return bounds.made(value)

    def joined(self, *parts: Any) -> Any:
        """Return the result of `a ~ b`: a `Value` if one of them is a `Value`."""
        budget = BUDGET.get()
        bounds.measure(parts, budget)
        texts = [part if isinstance(part, (Value, HostText)) else str(part) for part in parts]
        size = sum(0 if isinstance(text, Value) and text.on_host else len(text) for text in texts)
        budget.text(size)
        budget.make(size)
        return _carried(composed(texts), parts)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Return whether templates can use an attribute. Of a secret, they can use only the methods of text."""
        if isinstance(obj, HostItem) and isinstance(value, HostItem):
            return True
        return attr in _METHODS if isinstance(obj, Value) else super().is_safe_attribute(obj, attr, value)

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a function for the template. Limit its arguments, and reveal the secrets in them."""
        BUDGET.get().tick()
        owner = getattr(__obj, "__self__", None)
        if owner is __self:
            return __obj(*args)
        if isinstance(owner, (str, bytes, int, Value)):
            given, kwargs = bounds.prepared(__obj.__name__, (_known(owner), *args), kwargs)
            args = tuple(given[1:])
        if not isinstance(owner, str):
            result = bounds.made(resolve_tokens(super().call(__context, __obj, *args, **kwargs)))
            return result if owner is None else _carried(result, (owner, *args, *kwargs.values()))
        sources: list[Secret] = []
        revealed_args = [revealed(value, sources) for value in args]
        revealed_named = {key: revealed(value, sources) for key, value in kwargs.items()}
        plain = revealed(owner, sources)
        if sources and plain is not owner:
            __obj = getattr(plain, __obj.__name__)
        result = bounds.made(super().call(__context, __obj, *revealed_args, **revealed_named))
        return derived(_carried(result, (owner, *args, *kwargs.values())), sources)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Return the function that formats a string, unless the result could become huge."""
        name, owner = getattr(value, "__name__", ""), getattr(value, "__self__", None)
        if name not in ("format", "format_map") or not isinstance(owner, str):
            return super().wrap_str_format(value)
        if _WIDTH.search(owner):
            raise TooMuch(TOO_WIDE)

        @functools.wraps(value)
        def formatted(*args: Any, **named: Any) -> str:
            bounds.measure([*args, *named.values()], BUDGET.get())
            if name == "format_map":
                (named,), args = args, ()
            text: str = _carried(_Formatter(self).vformat(owner, args, named), (owner, *args, *named.values()))
            return text

        return formatted

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Compute `+ * ** %`, unless the result could become huge."""
        sources: list[Secret] = []
        left, right = revealed(left, sources), revealed(right, sources)
        budget = BUDGET.get()
        budget.tick()
        if isinstance(left, (int, float)) and isinstance(right, (int, float)):
            _check_number(operator, left, right)
        elif operator == "*":
            _check_times(left, right, budget)
        elif operator == "%" and isinstance(left, (str, bytes)):
            bounds.prepared("format", (left, *(right if isinstance(right, tuple) else (right,))), {})
        else:
            bounds.measure((left, right), budget)
            return derived(_carried(super().call_binop(context, operator, left, right), (left, right)), sources)
        result = bounds.made(super().call_binop(context, operator, left, right))
        return derived(_carried(result, (left, right)), sources)


class _Formatter(SandboxedFormatter):
    """Formats a string of a template, up to the limit of its size."""

    size = 0

    def format_field(self, value: Any, format_spec: str) -> Any:
        """Return the text of one field."""
        if _WIDTH.search(format_spec):
            raise TooMuch(TOO_WIDE)
        text = super().format_field(value, format_spec)
        self.size += len(text)
        BUDGET.get().text(self.size)
        return text


def _carried(result: Any, sources: Iterable[Any]) -> Any:
    """Return the result of a step with its texts marked if it came from a host."""
    return host_text.carried(result, sources) if host_text.in_use() else result


def _known(owner: Any) -> Any:
    """Return the owner of a method for measuring; nothing of a value that only the host has."""
    return "" if isinstance(owner, Value) else owner


def _check_number(operator: str, left: float, right: float) -> None:
    if isinstance(left, int) and isinstance(right, int) and operator in ("*", "**"):
        bits = left.bit_length() * right if operator == "**" else left.bit_length() + right.bit_length()
        if bits > bounds.BITS:
            raise TooMuch("the template computes a number with more than 30,000 digits")


def _check_times(left: Any, right: Any, budget: Budget) -> None:
    for value, times in ((left, right), (right, left)):
        if isinstance(times, int) and times > 0 and hasattr(value, "__len__"):
            items, text = bounds.measure([value], budget)
            budget.text(text * times)
            budget.items(items * times)


def finalized(value: Any) -> Any:
    """Return the text of `{{ value }}`.

    :raises Refused: the value has no obvious text: it is None, a list, a map or an object
    """
    if isinstance(value, Value):
        return str(value)  # its tokens, which are resolved in the whole output
    if isinstance(value, (str, int, float, runtime.Undefined)):
        return value
    if value is None:
        raise Refused("the value of an expression is None", "set the value, or use `| default('', true)`")
    if isinstance(value, (Mapping, Sequence, set, frozenset)):
        what = "a map" if isinstance(value, Mapping) else "a list"
        raise Refused(f"the value of an expression is {what}", "use `| join(',')`, `| tojson`, or a loop")
    if isinstance(value, Iterator) or type(value).__module__ in ("jinja2.runtime", "jinja2.environment"):
        return value
    raise Refused(f"the value of an expression is an object ({type(value).__name__})", "use one of its attributes")


def _guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = bounds.prepared(name, args, kwargs)  # type: ignore[assignment]  # a list in place of a tuple
        if name in _PASSING:
            return _carried(bounds.made(resolve_tokens(function(*args, **kwargs))), (*args, *kwargs.values()))
        sources: list[Secret] = []
        revealed_args = [revealed(value, sources) for value in args]
        result = _called(f"the filter `{name}`", function, revealed_args, kwargs, sources)
        if sources:
            refuse_number(f"the filter `{name}`", revealed_args[0], result, sources[0].name)
        if name == "quote" and not sources:
            return host_text.quoted(result, args)
        result = _carried(result, (*args, *kwargs.values()))
        if any(result is value for value in args):  # for example `replace` if there is nothing to replace
            return result
        return derived(bounds.made(result), sources)

    return guarded


def _tested(name: str, function: Any) -> Any:
    if name in ("defined", "undefined", "filter", "test", "sameas", "callable"):
        return function

    @functools.wraps(function)
    def tested(*args: Any, **kwargs: Any) -> Any:
        given, options = bounds.prepared(name, args, kwargs)
        sources: list[Secret] = []
        return _called(f"the test `{name}`", function, [revealed(value, sources) for value in given], options, sources)

    return tested


def _called(
    what: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], sources: list[Secret]
) -> Any:
    """Return the result of a filter or test. Its message may quote its arguments: an error with secrets hides them.

    :param what: the filter or test
    :param args: its arguments, revealed
    :param kwargs: its named arguments
    :param sources: the secrets in `args`; those in `kwargs` are added
    """
    named = {key: revealed(value, sources) for key, value in kwargs.items()}
    try:
        return function(*args, **named)
    except (InvalidInput, Missing, SecretError, TooMuch):
        raise
    except Exception as error:
        if not sources:
            raise
        raise Refused(f"{what} fails on {sources[0]!r}", getattr(error, "help", "")) from None
