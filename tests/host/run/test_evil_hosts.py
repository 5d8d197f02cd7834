"""A host that answers with anything but what it should: bounded, explained, and no matter to the other hosts."""

from __future__ import annotations

import io
import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from statecfg.playbook.compile import Definition
from statecfg.remote.wire import frames as wire
from statecfg.resources import file
from statecfg.run.host import deadlines, frame_reader
from statecfg.run.options import Limits
from statecfg.views.outcome import outcome_lines
from statecfg.views.terminal import render
from tests import ROOT, lab
from tests.host.run import rig
from tests.lab import Host, PlainSshd
from tests.lab.fixtures import or_skip

EVIL = Path(__file__).with_name("evil.py")
LOOK = "Look at the host"

# Who answers; what the error says; the status.
CASES = {
    "garbage": ("not a statecfg frame", "unreachable"),
    "no_greeting": ("more than 65536 bytes before the executor began", "unreachable"),
    "wrong_nonce": ("the executor ended without an answer", "unreachable"),
    "cut_frame": ("inside a frame (got 17 of 1009 bytes)", "unreachable"),
    "huge_length": ("not a frame: lengths 4294967295", "unreachable"),
    "zero_length": ("not a frame: lengths 0", "unreachable"),
    "bomb": ("a packed frame is over the limit", "unreachable"),
    "not_json": ("header is not JSON", "unreachable"),
    "nan": ("NaN is not JSON", "unreachable"),
    "deep": (f"nested more than {wire.DEPTH} levels", "unreachable"),
    "long_number": ("not a statecfg frame", "unreachable"),
    "twice": ("twice in one object", "unreachable"),
    "other_protocol": ("speaks protocol 99, and this statecfg speaks 1", "unreachable"),
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
    "wants_two_things": ("it asks for nothing that there is", "unreachable"),
    "wants_nonsense": ("its need frame makes no sense", "unreachable"),
    "too_much": ("its report takes more than 64 MiB of memory", "unreachable"),
    "many_values": ("a frame would take more than 48 MiB of memory", "unreachable"),
    "wide_texts": ("its report takes more than 64 MiB of memory", "unreachable"),
    "small_maps": ("args: it takes more than 4,194,304 bytes of memory", "unreachable"),
    "large_facts": ("facts: it takes more than 262,144 bytes of memory", "unreachable"),
    "facts_in_facts": ("facts: it is nested more than 104 levels deep", "unreachable"),
    "unknown_key": ("its beat frame makes no sense: the key 'x' is unknown", "unreachable"),
    "unknown_key_in_a_change": ("nodes[0].changes[0]: the key 'html' is unknown", "unreachable"),
    "layers_out_of_order": ("it planned layer 1 of left out of order", "unreachable"),
    "parts_out_of_order": ("it planned layer 0 of removals out of order", "unreachable"),
    "reports_out_of_order": ("it reports layer 0 of layers out of order", "unknown"),
    "acts_out_of_order": ("it acts on 'file:/etc/asked' before or after its layer", "unknown"),
    "finishes_without_an_action": ("finishes as changed, and no action of it began", "unknown"),
    "changes_without_finishing": ("it reports 'file:/etc/asked' as changed, which never finished", "unknown"),
    "finishes_twice": ("'file:/etc/asked' finishes twice", "unknown"),
    "acts_after_finishing": ("it acts on 'file:/etc/asked', which has finished", "unknown"),
    "reports_another_outcome": ("'file:/etc/asked' finished as failed, and is reported as unchanged", "unknown"),
    "ok_with_an_error": ("it succeeded, but it gives a reason for a failure", "unknown"),
    "fails_without_a_reason": ("it failed, but it gives no reason", "unknown"),
    "declines_itself": ("nobody declined its plan", "unknown"),
    "unchanged_after_acting": ("it did nothing, but it acted", "unknown"),
    "unchanged_with_a_plan": ("it did nothing, but its plan has changes", "unreachable"),
    "locked_after_acting": ("it planned, but another run holds the host", "unknown"),
    "refuses_after_acting": ("it refused the plan, but it acted", "unknown"),
    "says_ok_of_a_failure": ("it succeeded, but nodes failed or were skipped", "unknown"),
}
HONEST_HINTS = {"wrong_nonce": "ssh HOST", "cut_frame": "Run it again", "no_greeting": "start-up files"}


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlainSshd]:
    directory = tmp_path_factory.mktemp("evil")
    with or_skip():
        server = lab.plain_sshd(directory, forced_command=f"{sys.executable} {EVIL} {directory}/how")
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
    assert grown < 200, f"{grown} MiB more"
    assert "ok" not in report["summary"]
    if status == "unreachable":
        assert "changed" not in done.outcomes().values()


def test_a_session_of_yesterday_does_not_pass_for_one_of_today(evil: PlainSshd, definition: Definition) -> None:
    answer(evil, "replay")
    assert rig.run(evil, definition).host()["status"] == "ok"
    report = rig.run(evil, definition).host()
    assert report["status"] == "unreachable"
    assert "the executor ended without an answer" in report["error"]["summary"]


@pytest.mark.parametrize("how", ["beats_for_ever", "beats_while_acting"])
def test_heartbeats_alone_are_no_news(evil: PlainSshd, definition: Definition, how: str) -> None:
    answer(evil, how)
    done = rig.run(evil, definition, limits=Limits(patience=2.0))
    report = done.host()
    assert "has not come on for 2 s" in report["error"]["summary"]
    assert report["status"] == ("unknown" if how == "beats_while_acting" else "unreachable")
    assert 2 < done.seconds < 25


def test_silence(evil: PlainSshd, definition: Definition, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "DEAD", 3.0)
    answer(evil, "silent")
    done = rig.run(evil, definition)
    assert done.host()["error"]["summary"] == "nothing came from it for 3 s"
    assert done.seconds < 14


def test_a_frame_that_drips(evil: PlainSshd, definition: Definition, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "START", 3.0)
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


@pytest.mark.parametrize("how", ["wide_texts", "heavy_reports", "many_values"])
def test_many_hostile_hosts_at_once_cost_what_the_limits_say(evil: PlainSshd, how: str) -> None:
    """The memory of the whole controller, measured on its process, while each host sends the worst that it can."""
    count = 8
    answer(evil, how)
    argv = [sys.executable, "-m", "tests.host.run.many_evil", str(count), evil.address, str(evil.port), evil.user]
    argv += [str(evil.identity), str(evil.known_hosts)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert len(said["errors"]) == count
    assert all("of memory" in error for error in said["errors"].values()), said["errors"]
    grown, limit = (said["most"] - said["before"]) >> 10, (count * (frame_reader.MEMORY + wire.PACKED_LIMIT)) >> 20
    # Decoding one frame, and what Python and SSH keep beside it.
    assert grown < limit + 2 * (frame_reader.FRAME >> 20) + count * 8, f"{grown} MiB more"


def test_other_hosts_do_not_notice(evil: PlainSshd, target: Host, place: str) -> None:
    answer(evil, "garbage")
    done = rig.run([evil, target], rig.small_files(place, 20))
    assert done.host("plain")["status"] == "unreachable"
    assert (done.host(target.name)["status"], set(done.outcomes(target.name).values())) == ("ok", {"changed"})
