"""The predicates for validators in Hy. Hosts get them only if something else uses them there, too."""

from __future__ import annotations

from typing import Any, Callable

from statecfg.remote.graph.model import Keyword

__all__ = [
    "hyx_falseXquestion_markX",
    "hyx_keywordXquestion_markX",
    "hyx_mapXquestion_markX",
    "hyx_nilXquestion_markX",
    "hyx_numberXquestion_markX",
    "hyx_seqXquestion_markX",
    "hyx_stringXquestion_markX",
    "hyx_trueXquestion_markX",
    "some_fn",
]


def _predicate(title: str, test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    test.__name__ = test.__qualname__ = title
    return test


def _keyword(value: Any) -> bool:
    # Plain Hy reads a keyword as Hy's own class, which does not derive from str. Only its name is known here.
    return isinstance(value, Keyword) or type(value).__name__ == "Keyword"


hyx_mapXquestion_markX = _predicate("map?", lambda value: hasattr(value, "keys") and hasattr(value, "__getitem__"))
hyx_trueXquestion_markX = _predicate("true?", lambda value: value is True)
hyx_falseXquestion_markX = _predicate("false?", lambda value: value is False)
hyx_nilXquestion_markX = _predicate("nil?", lambda value: value is None)
hyx_keywordXquestion_markX = _predicate("keyword?", _keyword)
hyx_stringXquestion_markX = _predicate("string?", lambda value: isinstance(value, str) and not _keyword(value))
hyx_numberXquestion_markX = _predicate(
    "number?", lambda value: isinstance(value, (int, float)) and not isinstance(value, bool)
)
hyx_seqXquestion_markX = _predicate(
    "seq?",
    lambda value: hasattr(value, "__iter__") and not hasattr(value, "keys") and not isinstance(value, (str, bytes)),
)


def some_fn(*predicates: Callable[[Any], Any]) -> Callable[[Any], bool]:
    """Return a predicate that is true if any of `predicates` is."""
    title = f"(some-fn {' '.join((predicate.__name__ for predicate in predicates))})"
    return _predicate(title, lambda value: any(predicate(value) for predicate in predicates))
