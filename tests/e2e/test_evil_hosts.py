"""A host that answers with anything but what it should: bounded, explained, and no matter to the other hosts."""

from __future__ import annotations

import io
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from statecfg import listening
from statecfg.compile import Definition
from statecfg.resources import file
from statecfg.views.outcome import outcome_lines
from statecfg.views.terminal import render
from tests import hosts
from tests.e2e import rig
from tests.e2e.conftest import or_skip
from tests.hosts import Host, PlainSshd

EVIL = Path(__file__).with_name("evil.py")
LOOK = "Look at the host"

# Who answers; what the error says; the status.
CASES = {
    "garbage": ("no frame of ours", "unreachable"),
    "no_greeting": ("more than 65536 bytes before the executor began", "unreachable"),
    "wrong_nonce": ("the executor ended without a word", "unreachable"),
    "cut_frame": ("inside a frame (got 17 of 1009 bytes)", "unreachable"),
    "huge_length": ("not a frame: lengths 4294967295", "unreachable"),
    "zero_length": ("not a frame: lengths 0", "unreachable"),
    "bomb": ("a packed frame is over the limit", "unreachable"),
    "not_json": ("header is no JSON", "unreachable"),
    "nan": ("NaN is no JSON", "unreachable"),
    "deep": ("nested more than 100 levels", "unreachable"),
    "long_number": ("no frame of ours", "unreachable"),
    "twice": ("a key stands twice", "unreachable"),
    "other_protocol": ("speaks protocol '99', and this statecfg speaks 1", "unreachable"),
    "unknown_type": ("a frame of unknown type 'exec'", "unreachable"),
    "not_asked_for": ("'file:/etc/other', which was not asked for", "unreachable"),
    "speaks_of_others": ("'file:/etc/other', which is not part of this run", "unknown"),
    "leaves_out": ("it left 1 of the nodes out of its plan", "unreachable"),
    "ends_at_once": ("it is done, and never planned", "unreachable"),
    "reports_no_layer": ("did not report every layer", "unknown"),
    "acts_unasked": ("it acts without having been told to", "unreachable"),
    "ends_what_never_began": ("its action frame makes no sense", "unknown"),
    "wrong_shapes": ("its planned frame makes no sense", "unreachable"),
    "missing_keys": ("its planned frame makes no sense", "unreachable"),
    "strange_status": ("its end frame makes no sense", "unknown"),
    "wants_foreign_content": ("which is not part of this run", "unreachable"),
    "wants_the_executor_for_ever": ("asks for the executor a second time", "unreachable"),
    "wants_nonsense": ("it asks for nothing that there is", "unreachable"),
    "too_much": ("it sent more than 256 MiB of report", "unreachable"),
}
HONEST_HINTS = {"wrong_nonce": "ssh HOST", "cut_frame": "Run it again", "no_greeting": "start-up files"}


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlainSshd]:
    directory = tmp_path_factory.mktemp("evil")
    with or_skip():
        server = hosts.plain_sshd(directory, forced_command=f"{sys.executable} {EVIL} {directory}/how")
    yield server
    server.stop()


@pytest.fixture
def definition() -> Definition:
    return rig.define(file("/etc/asked", content="asked\n"))


def answer(evil: PlainSshd, how: str) -> None:
    (evil.identity.parents[1] / "how").write_text(how)


@pytest.mark.parametrize("how", list(CASES))
def test_what_is_no_executor(evil: PlainSshd, definition: Definition, how: str) -> None:
    says, status = CASES[how]
    answer(evil, how)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done = rig.run(evil, definition)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    report = done.host()
    assert report["status"] == status, report
    assert says in report["error"]["summary"], report["error"]
    assert HONEST_HINTS.get(how, LOOK) in report["error"]["hint"]
    assert "Traceback" not in report["error"]["detail"]
    assert done.seconds < 40
    assert grown < 64, f"{grown} MiB more"
    assert "ok" not in report["summary"]
    assert "changed" not in done.outcomes().values()


def test_a_session_of_yesterday_does_not_pass_for_one_of_today(evil: PlainSshd, definition: Definition) -> None:
    answer(evil, "replay")
    assert rig.run(evil, definition).host()["status"] == "ok"
    report = rig.run(evil, definition).host()
    assert report["status"] == "unreachable"
    assert "the executor ended without a word" in report["error"]["summary"]


@pytest.mark.parametrize("how", ["beats_for_ever", "beats_while_acting"])
def test_heartbeats_alone_are_no_news(evil: PlainSshd, definition: Definition, how: str) -> None:
    answer(evil, how)
    done = rig.run(evil, definition, patience=2.0)
    report = done.host()
    assert "has not come on for 2 s" in report["error"]["summary"]
    assert report["status"] == ("unknown" if how == "beats_while_acting" else "unreachable")
    assert 2 < done.seconds < 25


def test_silence(evil: PlainSshd, definition: Definition, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "DEAD", 3.0)
    answer(evil, "silent")
    done = rig.run(evil, definition)
    assert done.host()["error"]["summary"] == "nothing came from it for 3 s"
    assert done.seconds < 14


def test_a_frame_that_drips(evil: PlainSshd, definition: Definition, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "START", 3.0)
    answer(evil, "drips")
    report = rig.run(evil, definition).host()
    assert "a frame did not end within 3 s" in report["error"]["summary"]


def test_escape_sequences_reach_no_terminal(evil: PlainSshd, definition: Definition) -> None:
    answer(evil, "escapes")
    done = rig.run(evil, definition)
    assert done.host()["status"] == "failed"
    text = render(outcome_lines(done.report), io.StringIO(), color=False)
    assert "owned" in text
    for character in "\x1b\x07\x9b\u202e":
        assert character not in text


def test_a_failure_that_is_called_ok_is_a_failure(evil: PlainSshd, definition: Definition) -> None:
    answer(evil, "says_ok_of_a_failure")
    assert rig.run(evil, definition).host()["status"] == "failed"


def test_other_hosts_do_not_notice(evil: PlainSshd, target: Host, place: str) -> None:
    answer(evil, "garbage")
    done = rig.run([evil, target], rig.small_files(place, 20))
    assert done.host("plain")["status"] == "unreachable"
    assert (done.host(target.name)["status"], set(done.outcomes(target.name).values())) == ("ok", {"changed"})
