"""Failed hooks of services in the store: they are retried, or resolved by hand."""

from __future__ import annotations

import pytest

from statecfg.store import services
from statecfg.store.database import Store
from statecfg.store.units.records import DueStep, StoredChanges
from tests.host.store.running import (
    PROJECT,
    Failed,
    declared,
    deploy,
    run_hooks,
    units,
)
from tests.host.store.service_store import BOTH, DB, LIFE, WEB, own, shared, step_of, store, tell

__all__ = ["shared", "store"]


def test_a_failed_hook_is_retried_only_in_another_run(store: Store) -> None:
    def fails(step: DueStep) -> StoredChanges:
        raise Failed("exit code 3.")

    deploy(store, DB)
    assert run_hooks(store, {"db start": fails}) == [f"db/0 {hook}" for hook in LIFE]
    assert (units(store)["db/0"].condition.state, units(store)["db/0"].condition.why) == ("start_error", "exit code 3.")
    assert run_hooks(store) == [], "a failed hook is not repeated in the same run"
    step = step_of(store, "db/0", "r2")
    assert step.now.failed_before and step.hook == "start"
    assert run_hooks(store, run="r2") == ["db/0 start"]
    assert (units(store)["db/0"].condition.state, units(store)["db/0"].condition.why) == ("started", "")


def test_a_unit_names_the_runs_in_which_its_hooks_failed(store: Store) -> None:
    def fails(step: DueStep) -> StoredChanges:
        raise Failed("exit code 3.")

    deploy(store, *BOTH)
    run_hooks(store, {"web db-relation-joined": fails}, run="r1")
    assert units(store)["web/0"].condition.failed_in == ("r1",)
    assert units(store)["db/0"].condition.failed_in == ()
    deploy(store, DB, declared("web", "h2", digest="c2"), BOTH[2])
    run_hooks(store, {"web upgrade-charm": fails, "web db-relation-joined": fails}, run="r2")
    assert units(store)["web/0"].condition.why and units(store)["web/0"].condition.relation_errors
    assert units(store)["web/0"].condition.failed_in == ("r2", "r1"), "the run of its own hook, then of the relation's"
    services.resolve(store, PROJECT, "web/0", retry=True)
    assert units(store)["web/0"].condition.failed_in == (), "any run may retry it"


def test_a_failed_relation_hook_is_retried_for_remaining_units(store: Store) -> None:
    def fails(step: DueStep) -> StoredChanges:
        raise Failed("exit code 1.")

    deploy(store, declared("db", "h1", "h3"), WEB, BOTH[2])
    run_hooks(store, {"web db-relation-joined": fails})
    assert units(store)["web/0"].condition.relation_errors == {"db:0": "db-relation-joined: exit code 1."}
    assert units(store)["web/0"].condition.state == "started"
    tell(store, "db/0", a="1")
    tell(store, "db/1", a="1")
    run_hooks(store)
    # The unit that is removed now was never announced to web/0.
    deploy(store, declared("db", "h1"), WEB, BOTH[2], prune=True)
    run_hooks(store)
    assert [hook for hook in run_hooks(store, run="r2") if "relation" in hook] == [
        "web/0 db-relation-joined db/0 [db/0]",
        "web/0 db-relation-changed db/0 [db/0]",
    ]
    assert units(store)["web/0"].condition.relation_errors == {}


def test_removing_a_unit_clears_its_failed_joined_hook(store: Store) -> None:
    def fails(step: DueStep) -> StoredChanges:
        raise Failed("exit code 1.")

    deploy(store, *BOTH)
    run_hooks(store, {"web db-relation-joined": fails})
    deploy(store, declared("db"), WEB, BOTH[2], prune=True)
    run_hooks(store, run="r2", only=["db/0"])
    assert units(store)["web/0"].condition.relation_errors == {}
    assert run_hooks(store, run="r3") == []


@pytest.mark.parametrize("failing", ["install", "config-changed", "start", "upgrade-charm", "stop"])
def test_resolve_continues_as_if_the_failed_hook_succeeded(store: Store, failing: str) -> None:
    def fails(step: DueStep) -> StoredChanges:
        raise Failed("exit code 1.")

    deploy(store, DB)
    for run, parts in (("r1", [DB]), ("r2", [declared("db", "h1", digest="c2")]), ("r3", [])):
        deploy(store, *parts, prune=True)
        run_hooks(store, {f"db {failing}": fails}, run=run)
        if "db/0" in units(store) and units(store)["db/0"].condition.state.endswith("_error"):
            break
    assert services.resolve(store, PROJECT, "db/0", retry=False) == [failing]
    assert services.resolve(store, PROJECT, "db/0", retry=False) == []
    after = {"install": ["config-changed", "start"], "config-changed": ["start"]}.get(failing, [])
    assert run_hooks(store) == [f"db/0 {hook}" for hook in after]
    assert [each.condition.state for each in units(store).values()] == ([] if failing == "stop" else ["started"])


@pytest.mark.parametrize("kind", ["joined", "changed", "departed", "broken"])
def test_resolve_retries_or_skips_a_failed_relation_hook(store: Store, kind: str) -> None:
    def fails(step: DueStep) -> StoredChanges:
        raise Failed("exit code 1.")

    deploy(store, *BOTH)
    run_hooks(store, {f"web db-relation-{kind}": fails})
    if kind in ("departed", "broken"):
        deploy(store, DB, WEB, prune=True)
        run_hooks(store, {f"web db-relation-{kind}": fails})
    assert list(units(store)["web/0"].condition.relation_errors) == ["db:0"]
    assert services.resolve(store, PROJECT, "web/0", retry=True) == [f"db-relation-{kind}"]
    assert step_of(store, "web/0").hook == f"db-relation-{kind}", "the hook is due again in the same run"
    assert services.resolve(store, PROJECT, "web/0", retry=False) == [f"db-relation-{kind}"]
    assert units(store)["web/0"].condition.relation_errors == {}
    after = {"joined": ["db-relation-changed db/0 [db/0]"], "departed": ["db-relation-broken []"]}.get(kind, [])
    assert own(run_hooks(store), "web/0") == after


def test_resolve_skips_only_what_the_failed_hook_had_seen(store: Store) -> None:
    """Changes that the failed hook had not seen cause another hook."""

    def fails(step: DueStep) -> StoredChanges:
        raise Failed("exit code 1.")

    deploy(store, *BOTH)
    run_hooks(store)
    tell(store, "db/0", a="1")
    run_hooks(store, {"web db-relation-changed": fails})
    tell(store, "db/0", a="2")
    assert services.resolve(store, PROJECT, "web/0", retry=False) == ["db-relation-changed"]
    assert "web/0 db-relation-changed db/0 [db/0]" in run_hooks(store)
    services.set_settings(store, PROJECT, "db", {"size": 40})
    run_hooks(store, {"db config-changed": fails})
    services.set_settings(store, PROJECT, "db", {"size": 41})
    assert services.resolve(store, PROJECT, "db/0", retry=False) == ["config-changed"]
    assert run_hooks(store, run="r2") == ["db/0 config-changed"]
    deploy(store, declared("db", "h1", digest="c2"), WEB, BOTH[2])
    run_hooks(store, {"db upgrade-charm": fails}, run="r3")
    deploy(store, declared("db", "h1", digest="c3"), WEB, BOTH[2])
    assert services.resolve(store, PROJECT, "db/0", retry=False) == ["upgrade-charm"]
    assert run_hooks(store, run="r4") == ["db/0 upgrade-charm"]
