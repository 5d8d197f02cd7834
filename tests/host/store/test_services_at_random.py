"""Services under random events: hosts and relations come and go, and hooks fail or run side by side."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statecfg.store import opened, services
from statecfg.store.connection import Connection
from statecfg.store.database import Store
from statecfg.store.units.records import DueStep, StoredChanges
from tests.host.store.running import HOSTS, PLAYBOOK, PROJECT, declared, related

RELATIONS = [related("web:db", "db:db"), related("db:ring")]
SUBSETS = st.lists(st.sampled_from(HOSTS), unique=True)
DEPLOY = st.tuples(
    st.just("deploy"),
    SUBSETS,
    SUBSETS,
    st.lists(st.sampled_from(RELATIONS), unique=True),
    st.booleans(),
    st.integers(1, 2),
)
NUMBER = st.integers(0, 9)
# A deployment; a hook begins, ends with success, or fails; a new run begins.
MOVES = st.lists(
    st.one_of(
        DEPLOY,
        st.tuples(st.just("begin"), NUMBER),
        st.tuples(st.just("begin"), NUMBER),
        st.tuples(st.just("end"), NUMBER, st.integers(0, 3)),
        st.tuples(st.just("end"), NUMBER, st.integers(0, 3)),
        st.tuples(st.just("fail"), NUMBER),
        st.tuples(st.just("run")),
    ),
    min_size=10,
    max_size=50,
)


class Model:
    """What units know from their hooks, and the running hooks."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.run = 0
        self.running: dict[int, DueStep] = {}
        self.announced: dict[tuple[str, int], set[str]] = defaultdict(set)
        self.read: dict[tuple[str, int, str], dict[str, str]] = {}
        self.left: set[tuple[str, int]] = set()
        self.names: dict[str, int] = {}

    def move(self, kind: str, *given: object) -> None:
        getattr(self, kind)(*given)
        for each in services.units_in(self.connection, PROJECT):
            assert self.names.setdefault(each.name, each.id) == each.id, "no unit number is used twice"

    def deploy(self, db: list[str], web: list[str], relations: list[object], prune: bool, digest: int) -> None:
        parts = [declared(name, *hosts, digest=str(digest)) for name, hosts in (("db", db), ("web", web))]
        services.deploy_in(self.connection, PROJECT, PLAYBOOK, parts, relations, {}, prune, 1.0)

    def begin(self, number: int) -> bool:
        """Begin a due hook of some unit, or remove a unit that has no hooks left. Return whether there was one."""
        there = [each for each in services.units_in(self.connection, PROJECT) if each.id not in self.running]
        for each in there[number % max(1, len(there)) :] + there[: number % max(1, len(there))]:
            step = services.next_in(self.connection, each.id, str(self.run))
            assert step == services.next_in(self.connection, each.id, str(self.run)), (
                "the next step depends only on the store"
            )
            if step is not None:
                self.check(step)
                self.running[each.id] = step
                return True
            if services.over_in(self.connection, each.id):
                services.gone_in(self.connection, each.id, 1.0)
                return True
        return False

    def check(self, step: DueStep) -> None:
        """Check that a hook that begins fits what its unit was told before."""
        about = step.relation
        for number_of, members in step.around.relations.items():
            number = int(number_of.partition(":")[2])
            assert (step.unit, number) not in self.left
            if about is None or about.number != number:
                assert set(members) == self.announced[step.unit, number]
        if about is None:
            return
        known = self.announced[step.unit, about.number]
        kind = step.hook.rpartition("-")[2]
        assert step.unit not in about.members
        if kind == "joined":
            assert about.remote not in known and set(about.members) == known | {about.remote}
        elif kind == "changed":
            assert about.remote in known and set(about.members) == known
            found = services.read_in(self.connection, step.unit_id, ["relation", about.id, about.remote])
            self.read[step.unit, about.number, about.remote] = found
        elif kind == "departed":
            assert about.remote in known and set(about.members) == known - {about.remote}
            services.read_in(self.connection, step.unit_id, ["relation", about.id, about.remote])
        else:
            assert kind == "broken" and not known and not about.members

    def end(self, number: int, value: int | None) -> None:
        """Let a running hook succeed. It sets `value` in all its relations, or nothing if `value` is None."""
        step = self.some(number)
        if step is None:
            return
        changes: StoredChanges = {}
        if value is not None:
            changes = {"relations": {each: {"set": {"value": str(value)}} for each in step.around.relations}}
        told = services.commit_in(self.connection, step, str(self.run), changes, 1.0)
        assert step.hook == "start" or step.unit_id not in told
        about = step.relation
        if about is not None and step.hook.endswith("-joined"):
            self.announced[step.unit, about.number].add(about.remote)
        elif about is not None and step.hook.endswith("-departed"):
            self.announced[step.unit, about.number].discard(about.remote)
        elif about is not None and about.broken:
            self.left.add((step.unit, about.number))

    def fail(self, number: int) -> None:
        step = self.some(number)
        if step is not None:
            services.fail_in(self.connection, step, str(self.run), "exit code 1.", 1.0)
            after = services.next_in(self.connection, step.unit_id, str(self.run))
            assert after is None or (after.hook, after.relation) != (step.hook, step.relation)

    def some(self, number: int) -> DueStep | None:
        ids = sorted(self.running)
        return self.running.pop(ids[number % len(ids)]) if ids else None

    def begin_run(self) -> None:
        self.run += 1

    def run_hooks(self) -> None:
        """Let all hooks succeed. Check that all related units know each other, and that no event is left."""
        self.run += 1
        deadline = time.monotonic() + 120
        while self.running or self.begin(0):
            assert time.monotonic() < deadline, "all hooks end in time"
            self.end(0, None) if self.running else None
        found = services.units_in(self.connection, PROJECT)
        assert {each.condition.state for each in found} <= {"started"} and not any(each.dying for each in found)
        assert not any(each.condition.relation_errors for each in found)
        there = {each.name: each for each in found}
        relations = services.show_in(self.connection, PROJECT).relations
        assert not any(each.dying for each in relations)
        for each in relations:
            sides = [name for name, _ in each.ends]
            for unit in found:
                if unit.service in sides:
                    other = sides[0] if len(sides) == 1 else sides[1 - sides.index(unit.service)]
                    known = {name for name in there if there[name].service == other and name != unit.name}
                    assert self.announced[unit.name, each.number] == known
                    name = dict(each.ends)[unit.service]
                    for remote in known:
                        now = services.read_in(self.connection, unit.id, ["relation", f"{name}:{each.number}", remote])
                        assert self.read[unit.name, each.number, remote] == now, "each unit was told of the last change"
        for table in ("unit_event", "relation", "unit"):
            left = self.connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()
            assert left == {"unit_event": 0, "relation": len(relations), "unit": len(found)}[table]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    path: Path = tmp_path_factory.mktemp("random") / "store.db"
    with opened(url=str(path)) as found:
        yield found


class Enough(Exception):
    """Raised to roll back the transaction."""


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(moves=MOVES)
def test_units_know_each_other_after_any_sequence_of_events(store: Store, moves: list[tuple[object, ...]]) -> None:
    with pytest.raises(Enough), store.transaction() as connection:
        model = Model(connection)
        model.move("deploy", list(HOSTS[:2]), list(HOSTS[1:]), RELATIONS, False, 1)
        model.run_hooks()
        for kind, *given_ in moves:
            model.move("begin_run" if kind == "run" else str(kind), *given_)
        model.run_hooks()
        raise Enough
