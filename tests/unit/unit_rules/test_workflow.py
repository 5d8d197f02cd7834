"""The order of a unit's hooks."""

from __future__ import annotations

from dataclasses import replace

from statecfg.unit_rules import workflow
from statecfg.unit_rules.scheduler import ADDED, MODIFIED, REMOVED
from statecfg.unit_rules.workflow import Due, Entered, Life, due, over
from tests.each import each

FRESH = Life(charm="", digest="c1", configured="", config="s1")
UP = Life(state="started", charm="c1", digest="c1", configured="s1", config="s1")
STEPS = {
    "not installed": (FRESH, "install"),
    "installed": (replace(UP, state="installed", configured=""), "config-changed"),
    "configured": (replace(UP, state="installed"), "start"),
    "started": (UP, ""),
    "new charm": (replace(UP, digest="c2"), "upgrade-charm"),
    "new settings": (replace(UP, config="s2"), "config-changed"),
    "new charm and new settings": (replace(UP, digest="c2", config="s2"), "upgrade-charm"),
    "new charm before it is installed": (replace(FRESH, digest="c2"), "install"),
    "new charm before it is started": (replace(UP, state="installed", digest="c2"), "upgrade-charm"),
    "install failed": (replace(FRESH, error="install_error", tried="r1"), "install"),
    "start failed": (replace(UP, state="installed", error="start_error", tried="r1"), "start"),
    "upgrade failed, and the old charm is back": (replace(UP, error="charm_upgrade_error"), "upgrade-charm"),
    "settings failed, and the old settings are back": (replace(UP, error="configure_error"), "config-changed"),
    "dying": (replace(UP, dying=True), "stop"),
    "dying, while other hooks are due": (replace(UP, dying=True, digest="c2", config="s2"), "stop"),
    "dying, stop failed": (replace(UP, dying=True, error="stop_error", tried="r1"), "stop"),
    "dying, start failed": (replace(UP, state="installed", dying=True, error="start_error"), "stop"),
    "dying, stopped": (replace(UP, dying=True, state="stopped"), ""),
    "dying, never installed": (replace(FRESH, dying=True), ""),
    "dying, never started": (replace(UP, dying=True, state="installed"), ""),
}


@each("case", STEPS)
def test_due_returns_the_next_lifecycle_hook_of_a_unit(case: str) -> None:
    life, hook = STEPS[case]
    expected = Due(hook) if hook else None
    assert due(life, [], "r2") == expected
    # The same run does not retry a failed hook.
    assert due(life, [], "r1") == (None if life.tried else expected)
    assert over(life, []) == (life.dying and not hook)


def test_unit_runs_all_lifecycle_hooks_in_order() -> None:
    life, hooks = FRESH, []
    while (step := due(life, [], "r")) is not None:
        hooks.append(step.hook)
        life = replace(
            life,
            state=workflow.reached(life.state, step.hook),
            charm=life.digest,
            configured=life.config if step.hook == "config-changed" else life.configured,
        )
        if step.hook == "start":
            life = replace(life, dying=True)
    assert hooks == ["install", "config-changed", "start", "stop"]
    assert over(life, [])


def hook(kind: str, remote: str, *members: str, number: int = 1, name: str = "db") -> Due:
    return Due(f"{name}-relation-{kind}", number, kind, remote, members)


DB = Entered(1, "db", members=("db/0", "db/1"))
CACHE = Entered(2, "cache")
RELATIONS: dict[str, tuple[Life, list[Entered], Due | None]] = {
    "no events": (UP, [DB, CACHE], None),
    "a unit joined": (UP, [replace(DB, events=((3, "db/2", ADDED),))], hook("joined", "db/2", "db/0", "db/1", "db/2")),
    "a unit changed": (UP, [replace(DB, events=((3, "db/1", MODIFIED),))], hook("changed", "db/1", "db/0", "db/1")),
    "a unit departed": (UP, [replace(DB, events=((3, "db/1", REMOVED),))], hook("departed", "db/1", "db/0")),
    "the earliest event of all relations comes first": (
        UP,
        [replace(DB, events=((3, "db/1", REMOVED),)), replace(CACHE, events=((2, "c/0", ADDED),))],
        hook("joined", "c/0", "c/0", number=2, name="cache"),
    ),
    "lifecycle hooks come before relation hooks": (
        replace(UP, config="s2"),
        [replace(DB, events=((3, "db/1", REMOVED),)), replace(CACHE, dying=True)],
        Due("config-changed"),
    ),
    "the hooks of a relation that ends come before other events": (
        UP,
        [replace(DB, events=((3, "db/1", REMOVED),)), replace(CACHE, dying=True, members=("c/1", "c/0"))],
        hook("departed", "c/0", "c/1", number=2, name="cache"),
    ),
    "broken is the last hook": (UP, [replace(CACHE, dying=True)], hook("broken", "", number=2, name="cache")),
    "events of a relation that ends are ignored": (
        UP,
        [replace(CACHE, dying=True, events=((3, "c/1", ADDED),))],
        hook("broken", "", number=2, name="cache"),
    ),
    "a dying unit leaves a relation that ends": (
        replace(UP, dying=True),
        [replace(DB, dying=True)],
        hook("departed", "db/0", "db/1"),
    ),
    "a dying unit leaves all its relations": (
        replace(UP, dying=True),
        [replace(DB, events=((3, "db/1", REMOVED),))],
        hook("departed", "db/0", "db/1"),
    ),
    "a dying unit without relations stops": (replace(UP, dying=True), [], Due("stop")),
    "a failed relation waits for another run": (
        UP,
        [replace(DB, failed="db-relation-changed", tried="r2", events=((3, "db/1", MODIFIED),))],
        None,
    ),
    "a failed relation does not delay other relations": (
        UP,
        [
            replace(DB, failed="db-relation-changed", tried="r2", events=((3, "db/1", MODIFIED),)),
            replace(CACHE, events=((4, "c/0", ADDED),)),
        ],
        hook("joined", "c/0", "c/0", number=2, name="cache"),
    ),
    "a failed relation keeps a dying unit from stopping": (
        replace(UP, dying=True),
        [replace(DB, dying=True, failed="db-relation-departed", tried="r2")],
        None,
    ),
    "a failed hook is tried again in another run": (
        UP,
        [replace(DB, failed="db-relation-changed", tried="r1", events=((3, "db/1", MODIFIED),))],
        hook("changed", "db/1", "db/0", "db/1"),
    ),
    "a failed hook that any run may retry is due": (
        UP,
        [replace(DB, failed="db-relation-changed", events=((3, "db/1", MODIFIED),))],
        hook("changed", "db/1", "db/0", "db/1"),
    ),
    "a unit in error does nothing": (
        replace(UP, error="configure_error", tried="r2"),
        [replace(DB, events=((3, "db/1", MODIFIED),))],
        None,
    ),
}


@each("case", RELATIONS)
def test_due_returns_the_next_relation_hook_of_a_unit(case: str) -> None:
    life, relations, expected = RELATIONS[case]
    assert due(life, relations, "r2") == expected
    assert due(life, relations[::-1], "r2") == expected


def test_running_unit_or_failed_relation_is_not_over() -> None:
    assert not over(replace(UP, dying=True), [replace(DB, dying=True, failed="db-relation-departed", tried="r2")])
    assert not over(UP, [])


def test_workflow_names_hook_files_errors_and_states() -> None:
    assert workflow.files("upgrade-charm") == ("upgrade-charm", "upgrade")
    assert workflow.files("db-relation-joined") == ("db-relation-joined",)
    assert {workflow.failed_hook(error) for error in workflow.ERRORS.values()} == set(workflow.ERRORS)
    assert (workflow.shown("started", ""), workflow.shown("started", "stop_error")) == ("started", "stop_error")


@each(("units", "leads"), [({}, None), ({2: False, 1: False}, 1), ({1: True, 2: False}, 2), ({4: True, 3: True}, 3)])
def test_leader_is_the_first_unit_that_is_not_dying(units: dict[int, bool], leads: int | None) -> None:
    assert workflow.leader(units) == leads
