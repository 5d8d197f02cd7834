"""A host that sends wrong answers: the damage is limited, the error explained, and other hosts are not affected."""

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
LOOK = "Check the host"

# Function of evil.py: part of the error, status of the host.
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
    "twice": ("an object contains the key", "unreachable"),
    "other_protocol": ("uses protocol 99; this statecfg uses 1", "unreachable"),
    "unknown_type": ("a frame of unknown type 'exec'", "unreachable"),
    "not_asked_for": ("'file:/etc/other', which is not part of this run", "unreachable"),
    "speaks_of_others": ("'file:/etc/other', which is not part of this run", "unknown"),
    "leaves_out": ("its plan lacks 1 of the nodes", "unreachable"),
    "ends_at_once": ("reports its end without a plan", "unreachable"),
    "reports_no_layer": ("reports its end, but not every layer", "unknown"),
    "acts_unasked": ("it acts without permission", "unreachable"),
    "ends_what_never_began": ("its action frame is invalid", "unknown"),
    "wrong_shapes": ("its planned frame is invalid", "unreachable"),
    "missing_keys": ("its planned frame is invalid", "unreachable"),
    "strange_status": ("its end frame is invalid", "unknown"),
    "wants_foreign_content": ("which is not part of this run", "unreachable"),
    "wants_the_executor_for_ever": ("requests the executor twice", "unreachable"),
    "wants_two_things": ("it requests something that does not exist", "unreachable"),
    "wants_nonsense": ("its need frame is invalid", "unreachable"),
    "too_much": ("its report takes more than 64 MiB of memory", "unreachable"),
    "many_values": ("a frame would take more than 48 MiB of memory", "unreachable"),
    "wide_texts": ("its report takes more than 64 MiB of memory", "unreachable"),
    "small_maps": ("args: it takes more than 4,194,304 bytes of memory", "unreachable"),
    "large_facts": ("facts: it takes more than 262,144 bytes of memory", "unreachable"),
    "facts_in_facts": ("facts: it is nested more than 104 levels deep", "unreachable"),
    "large_output_of_a_hook": (
        "fired frame is invalid: entry: it takes more than 8,388,608 bytes of memory",
        "unknown",
    ),
    "deep_output_of_a_hook": ("fired frame is invalid: entry: it is nested more than 104 levels deep", "unknown"),
    "large_metadata": ("fired frame is invalid: metadata: it takes more than 8,388,608 bytes of memory", "unknown"),
    "deep_metadata": ("fired frame is invalid: metadata: it is nested more than 104 levels deep", "unknown"),
    "large_attributes": ("resource.attributes: it takes more than 8,388,608 bytes of memory", "unknown"),
    "large_settings": ("done frame is invalid: changes: it takes more than 8,388,608 bytes of memory", "unknown"),
    "deep_settings": ("unit-done frame is invalid: changes: it is nested more than 104 levels deep", "unknown"),
    "unknown_key": ("its beat frame is invalid: the key 'x' is unknown", "unreachable"),
    "unknown_key_in_a_change": ("nodes[0].changes[0]: the key 'html' is unknown", "unreachable"),
    "layers_out_of_order": ("it planned layer 1 of left out of order", "unreachable"),
    "parts_out_of_order": ("it planned layer 0 of removals out of order", "unreachable"),
    "reports_out_of_order": ("it reports layer 0 of layers out of order", "unknown"),
    "acts_out_of_order": ("it acts on 'file:/etc/asked' before or after its layer", "unknown"),
    "finishes_without_an_action": ("finishes as changed, but none of its actions started", "unknown"),
    "changes_without_finishing": ("it reports 'file:/etc/asked' as changed, although it never finished", "unknown"),
    "finishes_twice": ("'file:/etc/asked' finishes twice", "unknown"),
    "acts_after_finishing": ("it acts on 'file:/etc/asked', which has finished", "unknown"),
    "reports_another_outcome": ("'file:/etc/asked' finished as failed, but is reported as unchanged", "unknown"),
    "ok_with_an_error": ("it succeeded, but it gives a reason for a failure", "unknown"),
    "fails_without_a_reason": ("it failed, but it gives no reason", "unknown"),
    "declines_itself": ("it reports that its plan was declined, but it was not", "unknown"),
    "unchanged_after_acting": ("it reports no changes, but it acted", "unknown"),
    "unchanged_with_a_plan": ("it reports no changes, but its plan has some", "unreachable"),
    "locked_after_acting": ("it planned, but another run has locked the host", "unknown"),
    "refuses_after_acting": ("it refused the plan, but it acted", "unknown"),
    "says_ok_of_a_failure": ("it succeeded, but nodes failed or were skipped", "unknown"),
}
HONEST_HINTS = {"wrong_nonce": "ssh HOST", "cut_frame": "Run the command again", "no_greeting": "start-up files"}


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
def test_a_hostile_answer_is_rejected_with_an_explanation(evil: PlainSshd, definition: Definition, how: str) -> None:
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


def test_a_replayed_session_is_rejected(evil: PlainSshd, definition: Definition) -> None:
    answer(evil, "replay")
    assert rig.run(evil, definition).host()["status"] == "ok"
    report = rig.run(evil, definition).host()
    assert report["status"] == "unreachable"
    assert "the executor ended without an answer" in report["error"]["summary"]


@pytest.mark.parametrize("how", ["beats_for_ever", "beats_while_acting"])
def test_a_host_that_sends_only_heartbeats_is_given_up(evil: PlainSshd, definition: Definition, how: str) -> None:
    answer(evil, how)
    done = rig.run(evil, definition, limits=Limits(patience=2.0))
    report = done.host()
    assert "made no progress for 2 s" in report["error"]["summary"]
    assert report["status"] == ("unknown" if how == "beats_while_acting" else "unreachable")
    assert 2 < done.seconds < 25


def test_a_silent_host_is_given_up(evil: PlainSshd, definition: Definition, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "DEAD", 3.0)
    answer(evil, "silent")
    done = rig.run(evil, definition)
    assert done.host()["error"]["summary"] == "the host sent nothing for 3 s"
    assert done.seconds < 14


def test_a_frame_that_arrives_too_slowly_is_given_up(
    evil: PlainSshd, definition: Definition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "START", 3.0)
    answer(evil, "drips")
    report = rig.run(evil, definition).host()
    assert "a message did not arrive within 3 s" in report["error"]["summary"]


def test_escape_sequences_from_a_host_do_not_reach_the_terminal(evil: PlainSshd, definition: Definition) -> None:
    answer(evil, "escapes")
    done = rig.run(evil, definition)
    assert done.host()["status"] == "failed"
    text = render(outcome_lines(done.report), io.StringIO(), color=False)
    assert "owned" in text
    for character in "\x1b\x07\x9b\u202e":
        assert character not in text


@pytest.mark.parametrize("how", ["wide_texts", "heavy_reports", "many_values"])
def test_many_hostile_hosts_stay_within_the_memory_limit(evil: PlainSshd, how: str) -> None:
    """Measures the memory of the controller's process while each host sends the worst possible answer."""
    count = 4
    answer(evil, how)
    argv = [sys.executable, "-m", "tests.host.run.many_evil", str(count), evil.address, str(evil.port), evil.user]
    argv += [str(evil.identity), str(evil.known_hosts)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert len(said["errors"]) == count
    assert all("of memory" in error for error in said["errors"].values()), said["errors"]
    grown, limit = (said["most"] - said["before"]) >> 10, (count * (frame_reader.MEMORY + wire.PACKED_LIMIT)) >> 20
    # Allow for decoding one frame and for the memory of Python and SSH.
    assert grown < limit + 2 * (frame_reader.FRAME >> 20) + count * 8, f"{grown} MiB more"


def test_a_hostile_host_does_not_affect_other_hosts(evil: PlainSshd, target: Host, place: str) -> None:
    answer(evil, "garbage")
    done = rig.run([evil, target], rig.small_files(place, 20))
    assert done.host("plain")["status"] == "unreachable"
    assert (done.host(target.name)["status"], set(done.outcomes(target.name).values())) == ("ok", {"changed"})
