"""Attributes behave like the persistent maps of pyrsistent."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from pyrsistent import PMap, pmap

from statecfg.graph.attributes import Attributes
from tests.each import each

ITEMS = {"type": "file", "path": "/a", "mode": 0o644, "backup": None}


@each(
    "read",
    [
        len,
        repr,
        hash,
        dict,
        pickle.dumps,
        lambda made: {name: made[name] for name in made},
        lambda made: (made.get("path"), made.get("backup", 1), made.get("none"), made.get("none", 1)),
        lambda made: ("path" in made, "none" in made, made.path, getattr(made, "none", 1)),
        lambda made: (made.keys(), set(made.values()), set(made.items()), set(made.iterkeys()), set(made.itervalues())),
        lambda made: (
            made == ITEMS,
            made == pmap(ITEMS),
            pmap(ITEMS) == made,
            made == {},
            made == pmap(),
        ),
        lambda made: (made == Attributes(dict(ITEMS)), made == Attributes({}), made != Attributes({})),
        lambda made: (made.set("path", "/b"), made.set("new", 1), made.remove("path"), made.discard("none")),
        lambda made: (made.update({"path": "/b"}, {"new": 1}), made + {"new": 1}, made.copy()),
        lambda made: made.update_with(lambda old, new: (old, new), {"path": "/b"}),
        lambda made: made.transform(["path"], lambda path: path + "/c"),
        lambda made: made.evolver().set("path", "/b").remove("mode").persistent(),
        lambda made: (isinstance(made, PMap), made.discard("none") is made),
    ],
)
def test_attributes_behave_like_a_persistent_map(read: Callable[[Any], Any]) -> None:
    made = Attributes(dict(ITEMS))
    result = read(made)
    expected = read(pmap(ITEMS))
    if isinstance(result, str):
        result, expected = sorted(result), sorted(expected)
    elif isinstance(result, bytes):
        result, expected = pickle.loads(result), pickle.loads(expected)
    assert result == expected
    assert dict(made) == ITEMS


@each("wrong", [lambda made: made["none"], lambda made: made.none, lambda made: made.remove("none"), hash])
def test_attributes_raise_what_a_persistent_map_raises(wrong: Callable[[Any], Any]) -> None:
    errors = []
    for made in (Attributes({"path": []}), pmap({"path": []})):
        with pytest.raises((KeyError, AttributeError, TypeError)) as caught:
            wrong(made)
        errors.append(type(caught.value))
    assert errors[0] is errors[1]


def test_attributes_cannot_be_changed() -> None:
    made: Any = Attributes(dict(ITEMS))
    with pytest.raises(TypeError):
        made["path"] = "/b"
    with pytest.raises(TypeError):
        del made["path"]
