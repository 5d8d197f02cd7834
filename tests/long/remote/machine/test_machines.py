"""Random steps have the same results on the real machine, the planned machine and the machine in memory."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statecfg.remote.machine.memory import MemoryMachine
from statecfg.remote.machine.planned import Planned
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import Machine
from tests.unit.remote.machine.test_machines import litter

# A file system in memory, where fsync is fast.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


NAMES = ["a", "b", "a/a", "a/b", "b/a", "a/a/b"]


NAME = st.sampled_from(NAMES)


TARGETS = st.sampled_from(["a", "b", "../a", "../b", "a/a", ".", "..", "nothing", "/TOP/a", "/TOP/b/a", "a/../b"])


MODES = st.sampled_from([0o600, 0o644, 0o755, 0o4755])


CONTENTS = st.sampled_from(["", "x", "y"])


STEPS = st.one_of(
    st.tuples(st.just("write"), NAME, CONTENTS, st.none() | MODES),
    st.tuples(st.just("mkdir"), NAME, st.none() | MODES),
    st.tuples(st.just("parents"), NAME),
    st.tuples(st.just("symlink"), NAME, TARGETS),
    st.tuples(st.just("chmod"), NAME, MODES),
    st.tuples(st.just("remove"), NAME, st.booleans()),
    st.tuples(st.just("backup"), NAME, CONTENTS),
)


def take(machine: Machine, top: str, step: tuple[Any, ...]) -> str:
    """Perform a step. Return "" or the reason for its failure."""
    kind, path = step[0], top + "/" + step[1]
    if kind == "write":
        result = machine.write(path, step[2], step[3])
    elif kind == "mkdir":
        result = machine.mkdir(path, step[2])
    elif kind == "parents":
        result = machine.mkdir(path, parents=True)
    elif kind == "symlink":
        result = machine.symlink(path, step[2].replace("/TOP", top))
    elif kind == "chmod":
        result = machine.chmod(path, step[2])
    elif kind == "remove":
        result = machine.remove(path, step[2])
    else:
        result = machine.write(path, step[2], backup="-old")
    reason = str(result.get("reason", ""))
    # In circular links, the machines may stop at different links.
    return reason.split(" (")[0] if "Too many levels" in reason else reason


def view(machine: Machine, top: str) -> dict[str, Any]:
    """Return the visible state of all names that steps use, including errors."""
    found: dict[str, Any] = {}
    for name in ["", *NAMES, "a-old", "a/b-old", "nothing"]:
        path = top + "/" + name if name else top
        for what, look in (("stat", machine.stat), ("read", machine.read), ("list", machine.listdir)):
            try:
                value: Any = look(path)
            except OSError as problem:
                value = problem.errno
            if what == "stat" and value is not None and not isinstance(value, int):
                value = value.file_type, value.target, value.mode, value.owner, value.group
            found[f"{what} {name}"] = value
    return found


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(before=st.lists(STEPS, max_size=8), steps=st.lists(STEPS, max_size=10))
def test_plan_predicts_the_result_of_random_steps(before: list[Any], steps: list[Any]) -> None:
    """The plan predicts the result of each step and the state after all of them."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as made:
        top = os.path.realpath(made)
        real = RealMachine()
        for step in before:
            take(real, top, step)
        planned = Planned(RealMachine())
        predicted = [take(planned, top, step) for step in steps]
        foreseen = view(planned, top)
        assert [take(real, top, step) for step in steps] == predicted
        assert view(real, top) == foreseen
        assert not litter(top)


@settings(max_examples=100, deadline=None)
@given(steps=st.lists(STEPS, max_size=14))
def test_memory_machine_behaves_like_a_real_host(steps: list[Any]) -> None:
    """Node types are tested on the machine in memory, so it must behave like an empty directory of a host."""
    # Begin deep in the tree, because the machines differ near the root, and `..` in a link leads up one level.
    above = ["/1" * depth for depth in range(1, 17)]
    memory = MemoryMachine(dict.fromkeys(above))
    with tempfile.TemporaryDirectory(dir=MEMORY) as made:
        top = os.path.realpath(made) + above[-1]
        real = RealMachine()
        os.makedirs(top)
        for step in steps:
            assert bool(take(memory, above[-1], step)) == bool(take(real, top, step))
        mine, theirs = view(memory, above[-1]), view(real, top)
        for key in mine:
            if key.startswith(("read", "list")) and not isinstance(mine[key], bytes):
                assert mine[key] == theirs[key], key
