"""The layout of random YAML texts."""

from __future__ import annotations

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from statecfg.dialects.yaml_layout import laid_out
from statecfg.problems import InvalidInput

NAMES = st.text("abc", min_size=1, max_size=3)
SCALARS = st.one_of(NAMES, st.integers(0, 9), st.booleans(), st.text("ab \n:#-{'\"", max_size=12))
TREES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=12
)


@settings(max_examples=150)
@given(
    st.dictionaries(NAMES, TREES, min_size=1, max_size=3),
    st.integers(2, 9),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, "'", '"', "|"]),
)
def test_layout_keeps_the_data_of_any_text(tree: object, indent: int, flow: bool | None, style: str | None) -> None:
    text = yaml.safe_dump(tree, indent=indent, default_flow_style=flow, default_style=style, width=20)
    try:
        result = laid_out(text, "test.yml")
    except InvalidInput:  # statecfg refuses some values that the library writes
        return
    assert yaml.safe_load(result) == yaml.safe_load(text)
    assert laid_out(result, "test.yml") == result
