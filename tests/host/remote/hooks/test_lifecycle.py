"""The life cycle of resources: every earlier state, hook event and hook result, and the state that follows.

Source of the rules: the life cycle hooks of Runtime Defined Entities. A failed post-create leaves RESOLUTION_ERROR. A
failed post-update changes no state. A failed pre-delete changes nothing, and it does not run again for a resource in
deletion. A failed finalize or post-delete leaves IN_DELETION, and a later run finishes the deletion.
"""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statecfg.graph.graph import Graph
from statecfg.resources import directory, file, line_in_file, symlink
from tests.host.remote.managed import Machine, Said, hook
from tests.host.resources.undo import different, snapshot

STATES = ("", "PRE_CREATED", "RESOLVED", "RESOLUTION_ERROR", "IN_DELETION")
COMING = ("pre-reconcile", "post-create", "post-update")
GOING = ("pre-delete", "finalize", "post-delete")
ENDINGS = ("ok", "abort", "continue", "retry")
STATUS = {"ok": "ok", "abort": "failed", "continue": "continued", "retry": "owed"}


@dataclasses.dataclass(frozen=True)
class Row:
    """A resource in a state, and a hook for one of its events with one result.

    :param changed: the run has to change the resource
    """

    state: str
    event: str
    ending: str
    changed: bool = True

    @property
    def name(self) -> str:
        how = "" if self.changed else "-as-it-is"
        return f"{self.state or 'NEW'}-{self.event}-{self.ending}{how}"

    @property
    def going(self) -> bool:
        return self.event in GOING

    @property
    def fires(self) -> bool:
        """Whether the event happens."""
        if self.event == "post-create":
            return self.state != "RESOLVED"
        if self.event == "post-update":
            return self.state == "RESOLVED" and self.changed
        return self.event != "pre-delete" or self.state != "IN_DELETION"

    @property
    def stopped(self) -> bool:
        """Whether the hook stops the operation."""
        return self.fires and self.ending in ("abort", "retry")

    @property
    def acts(self) -> bool:
        """Whether the run still changes or removes the resource."""
        return self.changed and not (self.stopped and self.event in ("pre-reconcile", "pre-delete", "finalize"))

    @property
    def after(self) -> str | None:
        """The state after the run, or None without a record."""
        if not self.stopped:
            return None if self.going else "RESOLVED"
        if self.event == "pre-reconcile":  # a resource that is defined again is no longer in deletion
            return {"": None, "IN_DELETION": "PRE_CREATED"}.get(self.state, self.state)
        again = {"post-create": "RESOLUTION_ERROR", "post-update": self.state, "pre-delete": self.state}
        return again.get(self.event, "IN_DELETION")

    @property
    def outcome(self) -> str:
        """The outcome of the resource in the report."""
        if self.stopped and self.ending == "abort":
            return "failed"
        if self.stopped and self.event in ("pre-reconcile", "pre-delete", "finalize"):
            return "skipped"
        return "changed" if self.changed else "unchanged"

    @property
    def fires_again(self) -> bool:
        """Whether the event happens again in the next run, in which the defined resources need no change."""
        if self.event == "pre-reconcile":
            return True
        if self.event == "post-create":
            return self.stopped
        return self.stopped and (self.event != "post-update" or self.ending == "retry")


ROWS = [Row(state, event, ending) for state in STATES for event in COMING for ending in ENDINGS]
ROWS += [Row(state, event, ending, False) for state in STATES for event in COMING for ending in ENDINGS]
ROWS += [Row(state, event, ending) for state in STATES[1:] for event in GOING for ending in ENDINGS]


@dataclasses.dataclass
class Table:
    """The results of three runs for all rows: the hooks fail, then they succeed, and then the rest is pruned."""

    host: Path
    runs: list[Said]
    states: list[dict[str, str]]
    contents: list[dict[str, str]]

    def fired(self, run: int, row: Row) -> list[tuple[str, str]]:
        return [(event, status) for event, name, _, status in self.runs[run].fired if name == row.name]


@pytest.fixture(scope="module")
def table(server: Machine, tmp_path_factory: pytest.TempPathFactory) -> Table:
    machine = Machine(tmp_path_factory.mktemp("table"), server.server)
    host = machine.folder / "host"
    host.mkdir()
    found = Table(host, [], [], [])

    def node(row: Row) -> Graph:
        return file(str(host / row.name), content="ours", provides=row.name)

    def hooks(well: bool) -> list[dict[str, Any]]:
        made = []
        for row in ROWS:
            program = f"#!/bin/sh\nexit {int(row.ending != 'ok' and not well)}\n"
            policy = "abort" if row.ending == "ok" else row.ending
            select = {"names": [row.name]}
            made.append(hook(f"h-{row.name}", {row.event: program}, [row.event], select=select, on_failure=policy))
        return made

    machine.run(*[node(row) for row in ROWS if row.state])
    for row in ROWS:
        machine.query("UPDATE resource SET state = ? WHERE name = ?", row.state, row.name)
        if not row.going and row.state and row.changed:
            (host / row.name).write_text("drifted")
        elif not row.state and not row.changed:
            (host / row.name).write_text("ours")
    defined = [node(row) for row in ROWS if not row.going]
    for well, prune in ((False, True), (True, False), (True, True)):
        found.runs.append(machine.run(*defined, hooks=hooks(well), keep_going=True, prune=prune, yes=True))
        found.states.append(machine.rows())
        found.contents.append({path.name: path.read_text() for path in host.iterdir()})
    return found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_resource_ends_in_the_state_that_its_hook_result_allows(table: Table, row: Row) -> None:
    assert table.fired(0, row) == ([(row.event, STATUS[row.ending])] if row.fires else [])
    assert table.runs[0].outcomes()[row.name] == row.outcome
    assert table.states[0].get(row.name) == row.after
    there = table.contents[0].get(row.name)
    if row.going:
        assert there == (None if row.acts else "ours")
    elif row.changed:
        assert there == ("ours" if row.acts else None if not row.state else "drifted")
    # In the second run the hooks succeed, and it finishes what was begun. The third run prunes the rest.
    last = 2 if row.going and row.event == "pre-delete" else 1
    assert table.states[last].get(row.name) == (None if row.going else "RESOLVED")
    assert table.contents[last].get(row.name) == (None if row.going else "ours")
    expected = [(row.event, "ok")] if row.fires_again else []
    assert table.fired(last, row) == expected


def test_the_table_covers_every_state_event_and_result(table: Table) -> None:
    assert len(ROWS) == len({row.name for row in ROWS}) == 2 * 5 * 3 * 4 + 4 * 3 * 4
    assert table.runs[0].end["status"] == "failed" and table.runs[1].end["status"] == "ok"
    assert table.runs[2].end["status"] == "ok" and set(table.states[2].values()) == {"RESOLVED"}


def test_a_plan_lists_hooks_without_running_them(machine: Machine) -> None:
    host = machine.folder / "host"
    events = [*COMING, *GOING]
    all_of_them = hook("all", dict.fromkeys(events, f"#!/bin/sh\ntouch {host}/fired\n"), events)
    nodes = [file(str(host / name), content="x", provides=name) for name in "ab"]
    plan = machine.run(*nodes, mode="plan", hooks=[all_of_them])
    assert plan.fired == [] and not (host / "fired").exists()
    would = next(frame["hooks"] for frame in plan.frames if frame["type"] == "plan")
    done = machine.run(*nodes, hooks=[all_of_them])
    assert sorted((each["event"], each["name"]) for each in would) == sorted((e, n) for e, n, _, _ in done.fired)
    plan = machine.run(nodes[0], mode="plan", hooks=[all_of_them], prune=True)
    would = next(frame["hooks"] for frame in plan.frames if frame["type"] == "plan")
    done = machine.run(nodes[0], hooks=[all_of_them], prune=True)
    assert [(each["event"], each["name"]) for each in would] == [(e, n) for e, n, _, _ in done.fired]
    assert {event for event, _, _, _ in done.fired} == {"pre-delete", "finalize", "post-delete", "pre-reconcile"}


def test_hooks_run_in_order_until_one_aborts(machine: Machine) -> None:
    node = file(str(machine.folder / "host" / "f"), content="x", provides="f")
    endings = [("late", 30, 0, "abort"), ("first", 10, 1, "continue"), ("second", 20, 1, "abort")]
    hooks = [
        hook(name, {"pre-reconcile": f"#!/bin/sh\nexit {status}\n"}, ["pre-reconcile"], order=order, on_failure=failure)
        for name, order, status, failure in endings
    ]
    done = machine.run(node, hooks=hooks)
    assert [(name, status) for _, _, name, status in done.fired] == [("first", "continued"), ("second", "failed")]
    assert "the pre-reconcile hook second failed" in done.part("layers", "layer")[0]["reason"]


def test_an_owed_hook_is_retried_although_another_hook_fails(machine: Machine) -> None:
    """Two hooks are owed. In the next run the first fails for good. The second stays owed until the run after that."""
    path = machine.folder / "host" / "f"
    node = file(str(path), content="x", provides="f")
    machine.run(node)

    def hooks(one: tuple[int, str], two: tuple[int, str]) -> list[dict[str, Any]]:
        return [
            hook(name, {"post-update": f"#!/bin/sh\nexit {status}\n"}, ["post-update"], on_failure=failure)
            for name, (status, failure) in (("one", one), ("two", two))
        ]

    path.write_text("drifted")
    assert machine.run(node, hooks=hooks((1, "retry"), (1, "retry"))).end["status"] == "ok"
    assert machine.run(node, hooks=hooks((1, "abort"), (1, "retry"))).end["status"] == "failed"
    done = machine.run(node, hooks=hooks((0, "abort"), (0, "retry")))
    assert ("post-update", "f", "two", "ok") in done.fired
    assert machine.run(node, hooks=hooks((0, "abort"), (0, "retry"))).fired == []


def test_a_renamed_resource_fires_post_create_and_keeps_its_memory(machine: Machine) -> None:
    """If the run is killed before it fires its hooks, the next run fires them."""
    path = machine.folder / "host" / "f"
    path.write_text("former")
    told = hook("told", {"post-create": "#!/bin/sh\nexit 0\n"}, ["post-create"])
    machine.run(file(str(path), content="x", provides="old"), hooks=[told])
    renamed = file(str(path), content="x", provides="new")
    for kill in range(20, 400, 15):
        cut = machine.run(renamed, hooks=[told], kill=kill)
        if cut.status == 0:
            break
        done = machine.run(renamed, hooks=[told])
        assert cut.fired + done.fired, kill
        assert machine.rows() == {"new": "RESOLVED"}
        machine.run(file(str(path), content="x", provides="old"), hooks=[told])
    assert machine.run(mode="destroy", yes=True).end["status"] == "ok"
    assert path.read_text() == "former"


# Random definitions, one after another, with and without interruptions

CHOICES = {
    "f": (None, "file one", "file two", "file named", "link"),
    "g": (None, "file one", "file named"),
    "d": (None, "directory", "directory with file"),
    "l": (None, "line", "line named"),
}


def graphs(host: Path, chosen: dict[str, str | None]) -> list[Graph]:
    """Return a definition with a node of the chosen kind for each path."""
    found: list[Graph] = []
    for name, how in chosen.items():
        path = str(host / name)
        # The next definition may use the same node name for another path.
        given: Any = {"provides": "named"} if how == "file named" and name == "f" else {}
        given = {"provides": "named-2"} if how == "file named" and name == "g" else given
        if how and how.startswith("file"):
            found.append(file(path, content=f"{how[5:]}\n", mode="0640", **given))
        elif how == "link":
            found.append(symlink(path, target="/elsewhere", replace=True))
        elif how and how.startswith("directory"):
            above = directory(path, mode="0711")
            found.append(above)
            if how.endswith("file"):
                found.append(file(f"{path}/inside", content="x", requires=[above]))
        elif how:
            named: Any = {"provides": "the-line"} if how == "line named" else {}
            found.append(line_in_file(path, line="color = blue", match="^color", create=True, **named))
    return found


definitions = st.fixed_dictionaries({name: st.sampled_from(choices) for name, choices in CHOICES.items()})
steps = st.tuples(definitions, st.booleans(), st.one_of(st.just(0), st.integers(1, 150)))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=st.sets(st.sampled_from("fgdl")), sequence=st.lists(steps, min_size=1, max_size=5))
def test_destroy_restores_the_host_after_any_sequence_of_runs(
    server: Machine, tmp_path: Path, before: set[str], sequence: list[tuple[dict[str, str | None], bool, int]]
) -> None:
    shutil.rmtree(tmp_path)
    host = tmp_path / "host"
    host.mkdir(parents=True)
    for name in before:
        if name == "d":
            (host / name).mkdir(mode=0o750)
        else:
            (host / name).write_text(f"former {name}\ncolor = red\n")
    first = snapshot(host)
    machine = Machine(tmp_path, server.server)
    for chosen, prune, kill in sequence:
        nodes = graphs(host, chosen)
        machine.run(*nodes, prune=prune, yes=True, kill=kill)
        done = machine.run(*nodes, prune=prune, yes=True)
        assert done.end["status"] == "ok", done.end
        defined = {node["name"] for node in done.part("layers")}
        known = set(machine.rows())
        assert known == defined if prune else known >= defined
        assert set(machine.rows().values()) <= {"RESOLVED"} and machine.journals() == []
        assert machine.run(*nodes, prune=prune, mode="plan", yes=True).part("removals") == []
        again = machine.run(*nodes, prune=prune, yes=True)
        assert again.end.get("unchanged") and again.end["status"] == "ok", again.frames
    assert machine.run(mode="destroy", yes=True).end["status"] == "ok"
    assert different(first, snapshot(host)) == {}
    assert machine.rows() == {} and machine.kept() == []
