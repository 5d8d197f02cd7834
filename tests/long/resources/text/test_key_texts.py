"""The editors of keys: what they write, the usual readers read; other values stay; and the former text comes back."""

from __future__ import annotations

import configparser
import copy
import json
import tomllib
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from statecfg.resources.text import ini_text, json_text, keys, replacing, toml_text, yaml_text
from statecfg.resources.text.key_texts import NotEditable, equal

NAMES = st.one_of(st.sampled_from(["a", "b", "on", "8080", "x y", "é"]), st.text("ab.-_ \"'#:", min_size=1, max_size=4))
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x85\u2028\u2029\ufeff"), max_size=8)
SCALARS = st.one_of(
    st.integers(-99, 99),
    st.booleans(),
    st.floats(-1e4, 1e4, width=16),
    TEXTS,
    st.sampled_from(["yes", "1", "~", "-", "1:30"]),
)
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=3))
TREES = st.dictionaries(NAMES, st.recursive(VALUES, lambda more: st.dictionaries(NAMES, more, max_size=3)), max_size=4)
KEYS = st.lists(NAMES, min_size=1, max_size=3)
keys.EDITORS.update(json_key=json_text, toml_key=toml_text, yaml_key=yaml_text)
READERS = {json_text: json.loads, toml_text: tomllib.loads, yaml_text: yaml.safe_load}


def as_toml(tree: dict[str, Any], above: tuple[str, ...] = ()) -> str:
    """Return a tree as TOML with a header for each table."""

    def name(text: str) -> str:
        return json.dumps(text, ensure_ascii=False)

    own = [f"{name(key)} = {toml_text.literal(item)}" for key, item in tree.items() if not isinstance(item, dict)]
    below = [as_toml(item, (*above, key)) for key, item in tree.items() if isinstance(item, dict)]
    head = [f"[{'.'.join(map(name, above))}] # table"] if above else []
    return "\n".join([*head, *own]) + "\n" + "".join(below)


def as_yaml(tree: dict[str, Any]) -> str:
    return yaml.safe_dump(tree, allow_unicode=True, sort_keys=False, width=20) if tree else ""


WRITERS = {
    json_text: lambda tree: json.dumps(tree, indent=4, ensure_ascii=False) + "\n",
    toml_text: as_toml,
    yaml_text: as_yaml,
}


def changed(tree: dict[str, Any], key: list[str], value: Any) -> dict[str, Any] | None:
    """Return the tree with a value, or without it (None); None if something else is on the way."""
    tree = copy.deepcopy(tree)
    here = tree
    for part in key[:-1]:
        if value is None and part not in here:
            return tree
        here = here.setdefault(part, {})
        if not isinstance(here, dict):
            return None
    if value is None:
        here.pop(key[-1], None)
    else:
        here[key[-1]] = value
    return tree


@pytest.mark.parametrize("editor", READERS)
@settings(max_examples=50)
@given(tree=TREES, key=KEYS, value=VALUES)
def test_a_key_is_set_removed_and_restored(editor: Any, tree: dict[str, Any], key: list[str], value: Any) -> None:
    """The editor refuses, or does to the text what the same change does to the values."""
    text, read = WRITERS[editor](tree), READERS[editor]
    for wanted in (value, None):
        expected = changed(tree, key, wanted)
        try:
            new = editor.remove(text, key) if wanted is None else editor.put(text, key, value)
        except NotEditable:
            continue
        assert expected is not None, (text, key)
        assert (read(new) or {}) == expected, new
        assert wanted is None or equal(editor.get(new, key), value), new
        assert replacing.reverted(new, text, new) == (text, 0)


@settings(max_examples=50)
@given(
    st.dictionaries(st.sampled_from("ab"), st.dictionaries(st.sampled_from("xyz"), st.sampled_from("123"))), st.data()
)
def test_an_ini_key_is_set_and_removed(tree: dict[str, dict[str, str]], data: st.DataObject) -> None:
    text = "".join(
        f"[{name}]\n# {name}\n" + "".join(f"{k} = {v}\n" for k, v in keys.items()) + "\n" for name, keys in tree.items()
    )
    key = [data.draw(st.sampled_from("abc")), data.draw(st.sampled_from("xyz"))]
    for value in ("7", None):
        new = ini_text.remove(text, key) if value is None else ini_text.put(text, key, value)
        parser = configparser.ConfigParser()
        parser.read_string(new)
        expected = changed(tree, key, value)
        assert {name: dict(parser[name]) for name in parser.sections()} == expected
        assert replacing.reverted(new, text, new) == (text, 0)


@pytest.mark.parametrize("editor", READERS)
@settings(max_examples=80)
@given(text=st.text("ab:=.,[]{}\"'#-|&* \n\t1", max_size=30))
def test_any_text_is_edited_correctly_or_refused(editor: Any, text: str) -> None:
    """For a text that a reader accepts, the result is right. For every other one, nothing but a refusal happens."""
    try:
        new = editor.put(text, ["a", "b"], 1)
        editor.remove(text, ["a", "b"]), editor.get(text, ["a"])
    except NotEditable:
        return
    try:
        before = READERS[editor](text) or {}
    except (ValueError, yaml.YAMLError):
        return
    if isinstance(before, dict) and isinstance(before.get("a") or {}, dict):
        before["a"] = {**(before.get("a") or {}), "b": 1}
    assert READERS[editor](new) == before


TWO = {"names": st.tuples(NAMES, NAMES, NAMES), "values": st.tuples(VALUES, st.none() | VALUES)}


@pytest.mark.parametrize("form", ["json_key", "toml_key", "yaml_key"])
@settings(max_examples=50)
@given(tree=TREES, first=st.booleans(), **TWO)
def test_two_keys_of_one_map_are_undone_in_either_order(
    form: str, tree: dict[str, Any], names: Any, values: Any, first: bool
) -> None:
    """The former text is the same for both, because their nodes may be in one layer. All values come back."""
    editor = keys.EDITORS[form]
    former, above = WRITERS[editor](tree), names[0]
    edits = [([above, name], value) for name, value in zip(names[1:], values, strict=True)]
    assume(names[1] != names[2])
    text = former
    try:
        for key, value in edits:
            text = editor.remove(text, key) if value is None else editor.put(text, key, value)
    except NotEditable:
        return
    for key, value in edits if first else reversed(edits):
        text, changed = keys.undone(text, former, form, key, value, value is None)
        if changed:  # such as a former value of several lines that shares them with another key
            return
    assert (READERS[editor](text) or {}) in (tree, {**tree, above: {}})
