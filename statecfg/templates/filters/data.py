"""Filters of JSON and YAML."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import yaml

from statecfg.templates.filters.choices import known
from statecfg.templates.filters.limits import BUDGET, Refused


def to_json(value: Any, **options: Any) -> str:
    """Return a value as JSON. Options are those of Python's `json.dumps`, such as `indent` and `sort_keys`."""
    return json.dumps(value, **known(options, ("indent", "sort_keys", "ensure_ascii", "separators")))


def to_nice_json(value: Any, indent: int = 4, sort_keys: bool = True, **options: Any) -> str:
    """Return a value as indented JSON with sorted keys."""
    return to_json(value, indent=indent, sort_keys=sort_keys, separators=(",", ": "), **options)


def from_json(text: str) -> Any:
    """Return the value of JSON."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise Refused(f"the text is not JSON: {error}") from None
    except RecursionError:
        raise Refused("the JSON text is nested too deeply") from None


def to_yaml(value: Any, default_flow_style: bool | None = None, **options: Any) -> str:
    """Return a value as YAML; lists and maps without nested ones are written in one line."""
    given = known(options, ("indent", "width", "sort_keys", "default_style", "explicit_start", "explicit_end"))
    text: str = yaml.dump(
        value, Dumper=_Dumper, allow_unicode=True, default_flow_style=default_flow_style, **given
    )  # fmt: skip
    return text.removesuffix("...\n")


def to_nice_yaml(value: Any, indent: int = 4, **options: Any) -> str:
    """Return a value as YAML in several lines."""
    return to_yaml(value, default_flow_style=False, indent=indent, **options)


class _Dumper(yaml.SafeDumper):
    """Writes a repeated list or map again instead of an alias, until the time is over."""

    def represent_data(self, data: Any) -> Any:
        """Return the node of a value."""
        BUDGET.get().tick()
        return super().represent_data(data)

    def emit(self, event: Any) -> None:
        """Write one part."""
        BUDGET.get().tick()
        super().emit(event)

    def ignore_aliases(self, data: Any) -> bool:
        return True


class _Loader(yaml.SafeLoader):
    """Reads YAML until the time is over, or until its aliases make too much of it."""

    def get_token(self) -> Any:
        """Return the next part of the text."""
        BUDGET.get().tick()
        return super().get_token()  # type: ignore[no-untyped-call]  # its stubs have no types

    def construct_document(self, node: Any) -> Any:
        """Return the value of a document."""
        BUDGET.get().items(_expanded(node, {}))
        return super().construct_document(node)


def _expanded(node: Any, known: dict[int, int]) -> int:
    """Return the number of values in a node, with each alias replaced by its value.

    :param known: the results of earlier nodes by their ids; 0 while a node is being counted
    """
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in known:
        known[id(node)] = 0
        inner = [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else node.value
        known[id(node)] = 1 + sum(_expanded(part, known) for part in inner)
    elif not known[id(node)]:
        raise Refused("an alias in the YAML text is inside of the value that it refers to")
    return known[id(node)]


_Dumper.add_multi_representer(str, lambda dumper, text: dumper.represent_str(str.__str__(text)))


def from_yaml(text: str) -> Any:
    """Return the value of YAML 1.1."""
    return _loaded(text, lambda document: yaml.load(document, _Loader))  # noqa: S506  # it is a safe loader


def from_yaml_all(text: str) -> list[Any]:
    """Return the values of several YAML documents."""
    values: list[Any] = _loaded(text, lambda documents: list(yaml.load_all(documents, _Loader)))
    return values


def _loaded(text: str, load: Callable[[str], Any]) -> Any:
    try:
        return load(text)
    except RecursionError:
        raise Refused("the YAML text is nested too deeply") from None
    except yaml.YAMLError as error:
        # The library's message quotes parts of the text, which may be parts of a secret.
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else ""
        raise Refused(f"the text is not YAML{where}") from None


def type_debug(value: Any) -> str:
    """Return the name of a value's Python type."""
    return type(value).__name__
