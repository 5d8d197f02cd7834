"""Filters and tests of lists and maps."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from statecfg.templates.filters.choices import chosen
from statecfg.templates.filters.limits import BUDGET, Refused


def combine(*maps: Any, recursive: bool = False, list_merge: str = "replace") -> dict[Any, Any]:
    """Return several maps as one; later maps override earlier ones."""
    merge = chosen(list_merge, _LISTS, "way to merge lists")
    result: dict[Any, Any] = {}
    for item in maps:
        if not isinstance(item, Mapping):
            raise Refused(f"combine needs maps, got {item!r}")
        result = _combined(result, item, recursive, merge)
    return result


def _combined(one: Mapping[Any, Any], two: Mapping[Any, Any], recursive: bool, merge: Callable[..., Any]) -> Any:
    result = dict(one)
    for key, value in two.items():
        before = result.get(key)
        if isinstance(before, list) and isinstance(value, list):
            value = merge(before, value)
        elif recursive and isinstance(before, Mapping) and isinstance(value, Mapping):
            value = _combined(before, value, recursive, merge)
        result[key] = value
    return result


_LISTS: dict[str, Callable[[list[Any], list[Any]], list[Any]]] = {
    "replace": lambda one, two: two,
    "keep": lambda one, two: one,
    "append": lambda one, two: one + two,
    "prepend": lambda one, two: two + one,
    "append_rp": lambda one, two: _without(one, two) + two,
    "prepend_rp": lambda one, two: two + _without(one, two),
}


def _without(one: list[Any], two: list[Any]) -> list[Any]:
    holds = _holder(two)
    return [item for item in one if not holds(item)]


def flatten(items: Iterable[Any], levels: int | None = None, skip_nulls: bool = True) -> list[Any]:
    """Return the items of nested lists as one list, without None."""
    result: list[Any] = []
    for item in items:
        if item is None and skip_nulls:
            continue
        if isinstance(item, (list, tuple)) and levels != 0:
            result += flatten(item, None if levels is None else levels - 1, skip_nulls)
        else:
            result.append(item)
    return result


def union(one: Iterable[Any], two: Iterable[Any]) -> list[Any]:
    """Return the items of both lists, each once."""
    return _unique([*one, *two])


def intersect(one: Iterable[Any], two: Iterable[Any]) -> list[Any]:
    """Return the items that both lists have, each once."""
    holds = _holder(two)
    return [item for item in _unique(one) if holds(item)]


def difference(one: Iterable[Any], two: Iterable[Any]) -> list[Any]:
    """Return the items of the first list that the second does not have, each once."""
    holds = _holder(two)
    return [item for item in _unique(one) if not holds(item)]


def symmetric_difference(one: Iterable[Any], two: Iterable[Any]) -> list[Any]:
    """Return the items that only one of the lists has, each once."""
    first, second = list(one), list(two)
    return [*difference(first, second), *difference(second, first)]


def _unique(items: Iterable[Any]) -> list[Any]:
    result: list[Any] = []
    hashed: set[Any] = set()
    for item in items:
        BUDGET.get().tick()
        try:
            if item not in hashed:
                hashed.add(item)
                result.append(item)
        except TypeError:  # a list or map can't be in a set
            if item not in result:
                result.append(item)
    return result


def _holder(items: Iterable[Any]) -> Callable[[Any], bool]:
    """Return a function that tells whether the items contain a value."""
    values = list(items)
    try:
        hashed = frozenset(values)
    except TypeError:
        hashed = frozenset()

    def holds(value: Any) -> bool:
        BUDGET.get().tick()
        try:
            return value in hashed or (not hashed and value in values)
        except TypeError:
            return value in values

    return holds


def zip_(*lists: Iterable[Any]) -> list[list[Any]]:
    """Return the first items of all lists, then the second ones, and so on, until the shortest list ends."""
    return [list(items) for items in zip(*lists, strict=False)]


def zip_longest(*lists: Iterable[Any], fillvalue: Any = None) -> list[list[Any]]:
    """Return the first items of all lists, then the second ones, and so on; fill up short lists."""
    return [list(items) for items in itertools.zip_longest(*lists, fillvalue=fillvalue)]


def product(*lists: Iterable[Any], repeat: int = 1) -> list[list[Any]]:
    """Return every combination of one item from each list."""
    return _bounded(itertools.product(*lists, repeat=repeat))


def permutations(items: Iterable[Any], length: int | None = None) -> list[list[Any]]:
    """Return every order of the items, or of some of them."""
    return _bounded(itertools.permutations(items, length))


def combinations(items: Iterable[Any], length: int) -> list[list[Any]]:
    """Return every selection of this many items."""
    return _bounded(itertools.combinations(items, length))


def _bounded(items: Iterable[Iterable[Any]]) -> list[list[Any]]:
    result: list[list[Any]] = []
    budget, number = BUDGET.get(), 0
    for item in items:
        budget.tick()
        result.append(list(item))
        number += len(result[-1]) + 1
        budget.items(number)
    return result


def dict2items(map: Mapping[Any, Any], key_name: str = "key", value_name: str = "value") -> list[Mapping[str, Any]]:
    """Return a map as a list of maps with `key` and `value`."""
    return [{key_name: key, value_name: value} for key, value in map.items()]


def items2dict(items: Iterable[Mapping[str, Any]], key_name: str = "key", value_name: str = "value") -> dict[Any, Any]:
    """Return a list of maps with `key` and `value` as one map."""
    return {_item(item, key_name): _item(item, value_name) for item in items}


def rekey_on_member(items: Iterable[Mapping[str, Any]], key: str, duplicates: str = "error") -> dict[Any, Any]:
    """Return a list of maps as a map; its keys are the values of a key of these maps."""
    result: dict[Any, Any] = {}
    for item in items.values() if isinstance(items, Mapping) else items:
        name = _item(item, key)
        if name in result and duplicates != "overwrite":
            raise Refused(f"two items have the {key} {name!r}", "pass duplicates='overwrite' to keep the last one")
        result[name] = item
    return result


def extract(key: Any, container: Any, more: Any = None) -> Any:
    """Return the item of a list or map with this index or key: `names | map('extract', table)`."""
    value = container
    for step in [key, *(more if isinstance(more, (list, tuple)) else [] if more is None else [more])]:
        value = _item(value, step)
    return value


def subelements(items: Any, path: str | Sequence[str], skip_missing: bool = False) -> list[list[Any]]:
    """Return each item together with each element of one of its lists."""
    result: list[list[Any]] = []
    steps = path.split(".") if isinstance(path, str) else list(path)
    for item in items.values() if isinstance(items, Mapping) else items:
        value = item
        for step in steps:
            if skip_missing and (not isinstance(value, Mapping) or step not in value):
                value = []
                break
            value = _item(value, step)
        result += [[item, element] for element in value]
    return result


def _item(container: Any, key: Any) -> Any:
    try:
        return container[key]
    except (KeyError, IndexError, TypeError):
        raise Refused(f"the item {key!r} is not in {container!r}") from None


def contains(items: Any, value: Any) -> bool:
    """Tell whether a list, map or text contains a value."""
    return value in items


def subset(one: Iterable[Any], two: Iterable[Any]) -> bool:
    """Tell whether the second list has all items of the first."""
    return not difference(one, two)


def superset(one: Iterable[Any], two: Iterable[Any]) -> bool:
    """Tell whether the first list has all items of the second."""
    return not difference(two, one)


def any_(items: Iterable[Any]) -> bool:
    """Tell whether one of the items is true."""
    return any(items)


def all_(items: Iterable[Any]) -> bool:
    """Tell whether all items are true."""
    return all(items)
