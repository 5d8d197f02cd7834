"""The parser of ssh_config, with random text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from statecfg.transport.ssh_config import ConfigProblem, parse


@given(st.text(), st.text(max_size=10))
def test_parser_accepts_any_text_or_reports_a_place(text: str, host: str) -> None:
    try:
        parse(text.replace("nclude", "")).lookup(host)
    except ConfigProblem as problem:
        assert str(problem).startswith("ssh_config:")
