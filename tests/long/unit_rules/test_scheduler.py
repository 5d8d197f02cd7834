"""The queue of relation events: some rules hold for all sequences of events."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from statecfg.unit_rules.scheduler import ADDED, MODIFIED, REMOVED, Queue

Move = tuple[str, str]
MOVES = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from([ADDED, REMOVED, MODIFIED, "run"])), max_size=60)


@given(MOVES, st.sets(st.sampled_from("abcd")))
def test_queue_announces_every_change_for_random_events(moves: list[Move], first: set[str]) -> None:
    queue = Queue(first)
    announced, there, unseen = set(first), set(first), set()

    def run_one() -> None:
        event = queue.next()
        if event is None:
            return
        remote, op = event
        if op == ADDED:
            assert remote not in announced, "the unit joined twice"
            announced.add(remote)
        else:
            assert remote in announced, "the hook is about a unit that has not joined"
        if op == REMOVED:
            assert remote not in there
            announced.discard(remote)
        else:
            assert remote in there
        unseen.discard(remote)
        assert queue.members == tuple(sorted(announced))

    for remote, move in moves:
        if move == "run":
            run_one()
            continue
        queue.happened(remote, move)
        if move == ADDED:
            there.add(remote)
        elif move == REMOVED:
            there.discard(remote)
            unseen.discard(remote)
        elif remote in there:
            unseen.add(remote)
    while queue.first() is not None:
        run_one()
    assert announced == there, "at the end, the announced members differ from the real ones"
    assert not unseen, "some changes had no hook"
