"""Strict YAML: random text is read, or refused with a position."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from statecfg.dialects import yaml_text
from statecfg.problems import InvalidInput


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(alphabet="ab:-[]{},&*!|>'\"#?% \n\t0.y<=@", max_size=60), st.text(max_size=40)))
def test_any_text_is_read_or_refused(text):
    try:
        yaml_text.parse(text.encode("utf-8", "surrogatepass"), "f.yml", "a map")
    except InvalidInput as error:
        assert error.problems
        assert all(item.locations and item.locations[0].line >= 1 for item in error.problems)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data):
    try:
        yaml_text.parse(data, "f.yml", "a map")
    except InvalidInput as error:
        assert error.problems
