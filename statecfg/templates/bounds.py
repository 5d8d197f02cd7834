"""What one step of a template costs: measured before it runs, because a running step can't be interrupted.

Every list and map that a template makes is measured with everything in it, each time that it occurs. So no value is
larger than its limit, and a step that reads each item once is fast.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from jinja2.utils import Namespace
from pyrsistent import PVector

from statecfg.templates.filters.limits import BUDGET, ITEMS, SIZE, Budget, TooMuch

BITS = 100_000  # of a number
_DIGITS = 10_000  # of the width or precision of one number or word
_MAPS = (dict, MappingProxyType)
_HOLDERS = (*_MAPS, list, tuple, set, frozenset, PVector, Namespace)
_NUMBERLIKE = {int, float, bool, type(None)}
# Filters that need all items of an iterator at once.
_WHOLE = frozenset(("combinations", "join", "permutations", "product", "sort", "sum", "unique", "zip", "zip_longest"))
_WIDTH = re.compile(r"\d+")


def measure(values: Sequence[Any], budget: Budget) -> tuple[int, int]:
    """Return the numbers of items and of characters that values have, with those of inner lists and maps.

    :raises TooMuch: there are more than one value may have
    """
    items = text = 0
    for value in values:
        if isinstance(value, (str, bytes)):
            text += len(value)
        elif isinstance(value, _HOLDERS):
            more = _inside(value, budget)
            items, text = items + more[0], text + more[1]
    budget.text(text)
    budget.items(items)
    return items, text


def _inside(value: Any, budget: Budget) -> tuple[int, int]:
    items = text = 0
    waiting: list[Any] = [value]
    while waiting:
        holder = waiting.pop()
        if isinstance(holder, Namespace):
            holder = holder._Namespace__attrs
        inner: Any = (*holder.keys(), *holder.values()) if isinstance(holder, _MAPS) else holder
        types = set(map(type, inner))
        if types == {str}:
            text += sum(map(len, inner))
        elif not types <= _NUMBERLIKE:
            text += sum(len(one) for one in inner if isinstance(one, str))
            waiting += [one for one in inner if isinstance(one, _HOLDERS)]
        items += len(holder) + 1
        if items + len(waiting) > ITEMS or text > SIZE:
            budget.items(items + len(waiting))
            budget.text(text)
    budget.make(2 * items)
    return items, text


def made(value: Any) -> Any:
    """Return a value that a template has made, after a check of its size.

    :raises TooMuch: it is too large
    """
    if isinstance(value, int):
        if value.bit_length() > BITS:
            raise TooMuch("the template computes a number with more than 30,000 digits")
    elif isinstance(value, (str, bytes)):
        if len(value) > 1000:
            budget = BUDGET.get()
            budget.text(len(value))
            budget.make(len(value))
    elif isinstance(value, _HOLDERS):
        budget = BUDGET.get()
        budget.make(measure([value], budget)[1])
    return value


def prepared(name: str, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a filter, a test or a method of text, after a check of what it will cost.

    :param name: its name
    :returns: the arguments; iterators stop at the limits
    :raises TooMuch: it would make too much, or take too long
    """
    budget = BUDGET.get()
    budget.tick()
    cost = _COSTS.get(name)
    if cost is None and not named and all(type(one) is str and len(one) < 1000 for one in args):
        return [*args], {}
    given = [_held(name, value, budget) for value in args]
    options = {key: _held(name, value, budget) for key, value in named.items()}
    items, text = measure([*given, *options.values()], budget)
    if any(isinstance(value, int) and value > SIZE for value in (*given, *options.values())) and name in _NUMBERS:
        raise TooMuch(f"`{name}` creates a value of more than {SIZE >> 20} MB")
    if cost is not None:
        budget.text(cost(given, options, items, text) or 0)
    return given, options


def _held(name: str, value: Any, budget: Budget) -> Any:
    """Return an argument; an iterator ends with an error when there are too many items."""
    if not isinstance(value, Iterator):
        return value
    return list(budget.counted(value)) if name in _WHOLE else budget.counted(value)


def _texts(args: Sequence[Any]) -> list[Any]:
    return [value for value in args if isinstance(value, (str, bytes))]


def _numbers(args: Sequence[Any], options: Mapping[str, Any]) -> list[int]:
    return [value for value in (*args, *options.values()) if isinstance(value, int)]


def _replace(args: Sequence[Any], options: Mapping[str, Any], items: int, text: int) -> int:
    texts = _texts([*args, *options.values()])
    if len(texts) < 3:
        return 0
    whole, old, new = texts[:3]
    found = whole.count(old) if type(old) is type(whole) else 0
    return int(len(whole) + found * len(new))


def _join(args: Sequence[Any], options: Mapping[str, Any], items: int, text: int) -> int:
    return text + items * max(map(len, _texts([*args, *options.values()])), default=0)


def _indent(args: Sequence[Any], options: Mapping[str, Any], items: int, text: int) -> int:
    texts = _texts([*args, *options.values()])
    width = max([4, *_numbers(args, options), *(len(one) for one in texts[1:])])
    return text + (len(re.findall(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", str(texts[0]))) + 1 if texts else 0) * width


def _comment(args: Sequence[Any], options: Mapping[str, Any], items: int, text: int) -> int:
    texts = _texts(args)
    longest = max((len(one) for one in _texts([*options.values()])), default=0) + 8
    newline = str(options.get("newline", "\n"))
    return text + (texts[0].count(newline) + 1 if texts else 0) * longest * 2


def _tabs(args: Sequence[Any], options: Mapping[str, Any], items: int, text: int) -> int:
    tabs = sum(one.count("\t" if isinstance(one, str) else b"\t") for one in _texts(args))
    return int(text + tabs * max([8, *_numbers(args, options)]))


def _wrap(args: Sequence[Any], options: Mapping[str, Any], items: int, text: int) -> int:
    width = max(1, min((number for number in _numbers(args, options) if not isinstance(number, bool)), default=79))
    breaks = _texts([*args, *options.values()])[1:]
    BUDGET.get().tick(text * 2e-6)
    return text + (text // width + 1) * max(map(len, breaks), default=1)


def _json(args: Sequence[Any], options: Mapping[str, Any], items: int, text: int) -> int:
    indent = options.get("indent", next((value for value in args[1:] if isinstance(value, (int, str))), 0))
    width = len(indent) if isinstance(indent, str) else indent if isinstance(indent, int) else 0
    separators = sum(len(one) for one in options.get("separators") or () if isinstance(one, str))
    return text + items * (separators + max(0, width) * _depth(args))


def _depth(values: Sequence[Any]) -> int:
    depth = 0
    level: list[Any] = [value for value in values if isinstance(value, _HOLDERS)]
    while level and depth < 1000:
        depth += 1
        inner: list[Any] = []
        for holder in level:
            inner += holder.values() if isinstance(holder, _MAPS) else () if isinstance(holder, Namespace) else holder
        level = [item for item in inner if isinstance(item, _HOLDERS)]
    return depth


def _slow(seconds: float) -> Callable[..., int]:
    """Return the cost of a filter that takes this time for each character or item."""

    def cost(args: Sequence[Any], options: Mapping[str, Any], items: int, text: int) -> int:
        BUDGET.get().tick((text + items) * seconds)
        return 0

    return cost


def _urlize(args: Sequence[Any], options: Mapping[str, Any], items: int, text: int) -> int:
    BUDGET.get().tick(text * 2e-6)
    whole = _texts(args)
    more = sum(len(one) for one in _texts([*options.values(), *args])) - (len(whole[0]) if whole else 0)
    return text * 3 + (len(whole[0].split()) if whole else 0) * (more + 64)


def _format(args: Sequence[Any], options: Mapping[str, Any], items: int, text: int) -> int:
    texts = _texts(args)
    if not texts:
        return 0
    form = texts[0]
    given = [*args[1:], *options.values()]
    if "*" in form:
        widths = sum(_DIGITS if number > _DIGITS else number for number in _numbers(given, {}))
        if any(number > _DIGITS for number in _numbers(given, {})) and re.search(r"%[-+ #0]*\*|\.\*", form):
            raise TooMuch("the template formats a string with a width of millions")
    else:
        widths = 0
    widths += sum(int(digits) for digits in _WIDTH.findall(form) if len(digits) < 10)
    if re.search(r"\d{7,}", form):
        raise TooMuch("the template formats a string with a width of millions")
    named = form.count("%(")
    longest = max((len(str(one)) for one in _all_texts(given)), default=0) if named else 0
    return int(text + widths + named * longest)


def _all_texts(values: Sequence[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from (item for item in value.values() if isinstance(item, str))


def _parts(args: Sequence[Any], options: Mapping[str, Any], items: int, text: int) -> int:
    """Check how many parts a string is split into."""
    texts = _texts([*args, *options.values()])
    if texts and text > ITEMS:
        whole = texts[0]
        separator = texts[1] if len(texts) > 1 and texts[1] and type(texts[1]) is type(whole) else None
        BUDGET.get().items(len(whole) // 2 if separator is None else whole.count(separator))
    return 0


def _letters(args: Sequence[Any], options: Mapping[str, Any], items: int, text: int) -> int:
    """Check how many letters become items."""
    BUDGET.get().items(text if _texts(args) else 0)
    return 0


def _groups(args: Sequence[Any], options: Mapping[str, Any], items: int, text: int) -> int:
    BUDGET.get().items(max([0, *_numbers(args, options)]))
    return 0


def _digits(args: Sequence[Any], options: Mapping[str, Any], items: int, text: int) -> int:
    if any(abs(number) > _DIGITS for number in _numbers(args[1:], options)):
        raise TooMuch(f"a precision of more than {_DIGITS:,} digits")
    return 0


def _sum(args: Sequence[Any], options: Mapping[str, Any], items: int, text: int) -> int:
    BUDGET.get().tick(
        items * items * 1e-9 if any(isinstance(value, (list, tuple)) for value in (*args[2:], *options.values())) else 0
    )
    return 0


def _longest(args: Sequence[Any], options: Mapping[str, Any], items: int, text: int) -> int:
    lists = [value for value in args if isinstance(value, (list, tuple, PVector, str))]
    BUDGET.get().items(max(map(len, lists), default=0) * len(args))
    return 0


def _short(args: Sequence[Any], options: Mapping[str, Any], items: int, text: int) -> int:
    if text > _DIGITS:
        raise TooMuch(f"a string of more than {_DIGITS:,} characters")
    return 0


def _commas(args: Sequence[Any], options: Mapping[str, Any], items: int, text: int) -> int:
    whole = _texts(args)
    BUDGET.get().items(sum(whole[0].count(mark) for mark in ",[{") if whole and text > ITEMS else 0)
    return 0


def _times(args: Sequence[Any], options: Mapping[str, Any], items: int, text: int) -> int:
    repeat = options.get("repeat", 1)
    lists = [value for value in args if isinstance(value, (list, tuple, PVector, str))]
    if isinstance(repeat, int) and repeat * max(1, len(lists)) > 1000:
        raise TooMuch("`product` combines more than 1,000 lists")
    return 0


def _table(args: Sequence[Any], options: Mapping[str, Any], items: int, text: int) -> int:
    whole = len(_texts(args)[0]) if _texts(args) else 0
    values = [one for table in args[1:] if isinstance(table, dict) for one in table.values() if isinstance(one, str)]
    return whole * max(map(len, values), default=1)


_NUMBERS = frozenset((
    "center", "expandtabs", "indent", "ljust", "rjust", "to_bytes", "zfill", "wordwrap", "truncate", "format",
))  # fmt: skip
# Filter, test or method → what its result has at least, in characters. It may also refuse its arguments.
_COSTS: Mapping[str, Callable[[Sequence[Any], Mapping[str, Any], int, int], int]] = {
    "batch": _groups, "slice": _groups, "comment": _comment, "expandtabs": _tabs, "format": _format,
    "from_json": _commas, "from_yaml": _slow(6e-7), "from_yaml_all": _slow(6e-7), "indent": _indent,
    "ipaddr": _slow(1e-5), "ipv4": _slow(1e-5), "ipv6": _slow(1e-5), "ipwrap": _slow(1e-5), "join": _join,
    "list": _letters, "pprint": _slow(4e-6), "product": _times, "replace": _replace, "round": _digits,
    "split": _parts, "rsplit": _parts, "splitlines": _parts, "strftime": _short, "sum": _sum, "tojson": _json,
    "to_json": _json, "to_nice_json": _json, "to_nice_yaml": _slow(1e-6), "to_yaml": _slow(1e-6),
    "translate": _table, "unique": _letters, "sort": _letters, "urlize": _urlize, "version": _short,
    "version_compare": _short, "wordwrap": _wrap, "zip_longest": _longest, "zip": _longest,
    "title": _slow(2e-7), "striptags": _slow(3e-7), "wordcount": _slow(2e-7), "xmlattr": _slow(2e-7),
    "permutations": _letters, "combinations": _letters,
}  # fmt: skip
