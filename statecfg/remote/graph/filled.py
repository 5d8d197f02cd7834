"""Texts with attributes of a node in braces, such as `user:{owner}`."""

from __future__ import annotations

from typing import Any, Callable, List, Mapping, Union


def of_attrs(given: Union[Callable[..., Any], List[str]]) -> Callable[..., Any]:
    """Return a function of a node's attributes: the given one, or one that puts them into the given texts."""
    if callable(given):
        return given

    def listed(attrs: Mapping[str, Any]) -> List[str]:
        values = {name: value for name, value in attrs.items() if value is not None}
        texts = []
        for text in given:
            try:
                texts.append(text.format_map(values))
            except KeyError:
                pass  # the node does not set this attribute
        return texts

    return listed
