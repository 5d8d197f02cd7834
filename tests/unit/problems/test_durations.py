"""ISO 8601 durations: the parser for deadlines is strict, the one for timeouts is as lenient as Scoby's."""

from __future__ import annotations

import pytest

from statecfg.problems import durations
from tests.each import each

# Timeouts of hooks, and the seconds that Scoby reads from them. 15 is the default for a timeout that it cannot read.
TIMEOUTS = [
    (None, 15),
    ("", 15),
    ("5s", 15),
    ("pt5s", 15),
    ("P", 15),
    ("PT", 15),
    ("-", 15),
    ("PT1S1S", 15),
    ("PT5S ", 15),
    ("P5", 15),
    ("PT1.5M3.5S", 15),
    ("P.5D", 15),
    ("P99999999999Y", 15),
    (f"P{'9' * 5000}D", 15),
    ("PT5S", 5),
    ("+PT5S", 5),
    ("PT1M", 60),
    ("PT1H30M", 5400),
    ("P1D", 24 * 3600),
    ("P1DT", 24 * 3600),
    ("P1W", 7 * 24 * 3600),
    ("P1M", 30.436875 * 24 * 3600),
    ("P1Y", 365.2425 * 24 * 3600),
    ("P1MT1M", 2_629_806),
    ("PT1.5S", 1.5),
    ("PT0,2S", 0.2),
    ("PT1.55S", 1.5),
    ("PT1.S", 1),
    ("PT1.5M3S", 93),
    ("PT3S1M", 63),
    ("P0", 0),
    ("PT0S", 0),
    ("-PT5S", -5),
]


@each(("text", "seconds"), TIMEOUTS)
def test_timeout_is_read_as_scoby_reads_it(text: str | None, seconds: float) -> None:
    assert durations.timeout(text) == seconds


@each("text", [text for text, seconds in TIMEOUTS if text is not None and seconds == 15])
def test_deadline_refuses_durations_that_scoby_cannot_read(text: str) -> None:
    with pytest.raises(ValueError, match="is not an ISO 8601 duration"):
        durations.deadline(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [("PT0S", "not longer than 0 seconds"), ("-PT5S", "not longer than 0 seconds"), ("P1DT1S", "longer than a day")],
)
def test_deadline_must_be_positive_and_at_most_a_day(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        durations.deadline(text)


def test_deadline_accepts_a_tenth_of_a_second_up_to_a_day() -> None:
    assert durations.deadline("P1D") == 86_400
    assert durations.deadline("PT0.1S") == 0.1
