"""The parser of YAML in the tools of hooks."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statecfg.remote.units.tools import yaml_text as tool_yaml
from statecfg.remote.units.tools.options import ToolError

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=120) | st.text(
    "ab \n:#-'\"?,{}[]~!\t", max_size=100
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=150)
@given(st.dictionaries(TEXTS.filter(bool), TEXTS | st.none(), min_size=1, max_size=4), st.booleans(), st.booleans())
def test_yaml_written_by_libraries_is_parsed(given: dict[str, str | None], braces: bool, start: bool) -> None:
    text = yaml.safe_dump(given, default_flow_style=braces, explicit_start=start and braces)
    assert tool_yaml.parse(text, "f") == {key: value or "" for key, value in given.items()}


NO_MAPS_OF_TEXTS = {
    "a: [1]\n": 1, "a: 1\nb:\n - x\n": 2, "- a\n": 1, "a: |\n  x\n": 1, "a: b: c\n": 1, " a: b\n": 1, "a: 'x\n": 1,
    "a: &x y\n": 1, "a:\n  b: c\n": 1, 'a: "\\q"\n': 1, 'a: "\\U99999999"\n': 1, 'a: "\\xzz"\n': 1, "a: b\n\na: c\n": 3,
    "text": 1, "a: !!int 1\n": 1, "a: {b: c}\n": 1, "a: *x\n": 1, "a: 1\n---\nb: 2\n": 2, "a:b\n": 1,
    "? [a]\n: b\n": 1, "a: 'b' c\n": 1, "a: @b\n": 1, "{a: b\n": 1, "{a: b} c\n": 1, "{a: b}\nc: d\n": 2, "{a: [b]}": 1,
    "{a: b}{c: d}": 1, "a: b\n{c: d}": 2, "{a: b, a: c}": 1, "{a b}": 1, "{,}": 1, "{{a: b}}": 1, "{a: {b: c}}": 1,
}  # fmt: skip


@pytest.mark.parametrize("text", NO_MAPS_OF_TEXTS)
def test_yaml_other_than_a_map_of_texts_is_refused(text: str) -> None:
    with pytest.raises(ToolError, match=rf"^f:[{NO_MAPS_OF_TEXTS[text]}-3]: "):
        tool_yaml.parse(text, "f")


def test_handwritten_yaml_is_parsed() -> None:
    text = "---\r\n# c\r\na: b # d\r\n\r\n\"c\": 'd'\r\ne:\r\n  f\r\n  g\r\n\r\n  h\r\ni: ~\r\nj: yes\r\n...\r\n"
    assert tool_yaml.parse(text, "f") == {"a": "b", "c": "d", "e": "f g\nh", "i": "", "j": "yes"}
    text = "# c\n{a: b c, 'd':\n  e:f, ? g : , \"h\":'}', i:\n\nj}\n# d\n...\n"
    assert tool_yaml.parse(text, "f") == {"a": "b c", "d": "e:f", "g": "", "h": "}", "i": "j"}
    assert tool_yaml.parse("{}", "f") == tool_yaml.parse("{ }\n", "f") == tool_yaml.parse("--- {}\n", "f") == {}
    assert tool_yaml.parse("{a: b,}", "f") == {"a": "b"}
