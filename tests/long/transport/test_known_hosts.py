"""Large known_hosts files have an index for look-ups. Random ones never fail."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from statecfg.transport.known_hosts import Verdict, parse
from tests.unit.transport.test_known_hosts import ONE, line


def test_ten_thousand_lines_are_looked_up_by_index() -> None:
    known = parse("".join(line(f"host{n}", ONE) for n in range(10_000)))
    assert len(known.entries) == 10_000
    assert not known.others
    assert [e.line for e in known.about("host77")] == [78]


@given(st.text(), st.text(max_size=20))
def test_no_text_makes_the_parser_fail(text: str, host: str) -> None:
    known = parse(text)
    known.check(host, 22, ONE)
    known.key_types(host)


@given(st.lists(st.sampled_from(["a", "!a", "*", "!*", "?", "|1|AAAA|AAAA", "[a]:22", "[*", "b*", "\\"]), min_size=1))
def test_no_pattern_makes_the_lookup_fail(names: list[str]) -> None:
    assert parse(line(",".join(names), ONE)).check("a", 22, ONE).verdict in (Verdict.TRUSTED, Verdict.UNKNOWN)
