"""Large known_hosts files have an index for look-ups."""

from __future__ import annotations

from statecfg.transport.known_hosts import parse
from tests.unit.transport.test_known_hosts import ONE, line


def test_ten_thousand_lines_are_looked_up_by_index() -> None:
    known = parse("".join(line(f"host{n}", ONE) for n in range(10_000)))
    assert len(known.entries) == 10_000
    assert not known.others
    assert [e.line for e in known.about("host77")] == [78]
