"""No node type's things are taken by a purge, by another playbook, or by a run that leaves its nodes out."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from statecfg import resources
from statecfg.remote.graph.model import HostNode
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.ledger.claims import OWNED, owned
from statecfg.remote.ledger.records import identities
from statecfg.remote.machine.planned import Planned
from statecfg.remote.run.claims import OTHER_USERS, Claims
from statecfg.remote.run.definitions import StoredDefinitions
from statecfg.remote.run.order import Order
from statecfg.remote.run.plan import Plan
from statecfg.remote.run.planning import Planner
from statecfg.remote.run.shared_files import Owner
from statecfg.resources.shared.tree import VITAL
from tests import ROOT as CHECKOUT
from tests.each import check_each
from tests.unit.resources import test_cases as cases
from tests.unit.resources.conformance.types import STATE_DIR, TYPES, Example, actions, examples, prepared, settles
from tests.unit.resources.test_cases import Case

# Types whose nodes are never another's: they manage nothing, or several nodes may manage the same.
SHARED = {
    "ansible_module": "a node of this name in another playbook is a different one",
    "command": "a command of this name in another playbook is a different command",
    "http_request": "a request of this name in another playbook is a different request",
    "mariadb_grant": "several nodes can grant the same privileges",
    "postgresql_grant": "several nodes can grant the same privileges",
    "reboot": "it manages nothing",
    "wait_for": "it manages nothing",
}


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATECFG_STATE_DIR", STATE_DIR)


def planned(example: Example, layers: Sequence[Sequence[HostNode]], owners: Sequence[Owner] = ()) -> Plan:
    """Return a plan for nodes on a machine where other nodes own something."""
    order = Order.from_json({"run": "r", "mode": "plan", "who": "", "playbook": "p/site.yml", "types": {}})
    planner = Planner(REGISTRY, Planned(example.machine, root=True))
    if owners:
        planner.claims = planner.machine.claims = Claims(owners, StoredDefinitions(order, "lineage"))
    return planner.plan(layers)


def claims(node: HostNode) -> list[str]:
    """Return the claims of a node, as ledgers store them."""
    found = identities(node)
    return [*found, *(OWNED + claim for claim in owned(node, found))]


def files(example: Example) -> set[str]:
    """Return the paths in a memory machine."""
    return {path for path, entry in example.machine.entries.items() if entry.stat is not None}


def created(case: Case, directory: Path) -> tuple[Example, list[str]]:
    """Return an example after its apply, and the paths that the node created in directories that can be purged."""
    example = prepared(case, directory)
    before = files(example)
    example.apply(example.plan())
    made = sorted(files(example) - before)
    made = [path for path in made if not path.startswith(STATE_DIR)]  # nobody purges the state directory
    return example, [path for path in made if posixpath.dirname(path).strip("/") not in (*VITAL, "")]


def purges(example: Example, paths: Sequence[str]) -> list[list[HostNode]]:
    """Return the layers of nodes that purge the directories of paths."""
    parents = sorted({posixpath.dirname(path) for path in paths})
    outer = [path for path in parents if not any(path.startswith(other + "/") for other in parents)]
    graphs = [resources.directory(path, purge=True, provides=f"purge {path}") for path in outer]
    return example.layers(graphs)


def by_type(names: Sequence[str]) -> dict[str, Case]:
    return {name: examples(name)[0] for name in names}


def test_a_purged_directory_keeps_what_nodes_of_the_same_playbook_created(tmp_path: Path) -> None:
    def check(case: Case) -> None:
        example, paths = created(case, tmp_path / cases.name_of(case.data["node"]).replace("/", "_"))
        if not paths or not settles(case):
            return
        layers = [*example.layers(), *purges(example, paths)]
        for _ in range(3):
            plan = planned(example, layers)
            if plan.steps[example.name].outcome == "failed":
                return  # an archive on the host, whose files are not known
            example.apply(plan)
            assert set(paths) <= files(example), sorted(set(paths) - files(example))
        assert actions(planned(example, layers)) == []

    check_each(by_type(TYPES), check)


@pytest.mark.parametrize("playbook", ["p/other.yml", ""])
def test_a_purged_directory_keeps_what_nodes_outside_the_run_created(tmp_path: Path, playbook: str) -> None:
    """They belong to another playbook, or to the part of this one that `--tags` leaves out."""

    def check(case: Case) -> None:
        example, paths = created(case, tmp_path / cases.name_of(case.data["node"]).replace("/", "_"))
        if not paths:
            return
        owners = [
            Owner(playbook, node.provides, "digest", claims(node)) for layer in example.layers() for node in layer
        ]
        plan = planned(example, purges(example, paths), owners)
        example.apply(plan)
        assert set(paths) <= files(example), sorted(set(paths) - files(example))
        texts = [text for step in plan.steps.values() for text in step.spec.left]
        assert bool(playbook) is any("of p/other.yml manages it" in text for text in texts), texts

    check_each(by_type(TYPES), check)


def test_the_same_thing_of_another_playbook_fails_in_the_plan(tmp_path: Path) -> None:
    def check(case: Case) -> None:
        example = prepared(case, tmp_path / cases.name_of(case.data["node"]).replace("/", "_"))
        owners = [Owner("p/other.yml", "theirs", "digest", claims(example.node()))]
        step = planned(example, example.layers(), owners).steps[example.name]
        assert (step.outcome, step.conflict) == ("failed", True), (step.outcome, claims(example.node()))
        assert "theirs of p/other.yml manages" in step.reason and "take_over: true" in step.reason
        assert planned(example, taking(example), owners).steps[example.name].outcome == "changed"

    check_each(by_type([name for name in TYPES if name not in SHARED]), check)
    for name in SHARED:
        example = prepared(examples(name)[0], tmp_path / f"shared-{name}")
        assert identities(example.node()) == [], name


def taking(example: Example) -> list[list[HostNode]]:
    """Return the nodes of an example, which take over what others own."""
    layers = example.layers()
    for layer in layers:
        for node in layer:
            node.options = {**node.options, "take_over": True}
    return layers


def test_equal_nodes_of_two_playbooks_are_no_conflict(tmp_path: Path) -> None:
    order: Any = Order.from_json({"run": "r", "mode": "plan", "who": "", "playbook": "p/site.yml", "types": {}})

    def check(case: Case) -> None:
        example = prepared(case, tmp_path / cases.name_of(case.data["node"]).replace("/", "_"))
        definitions = StoredDefinitions(order, "lineage")
        owners = [
            Owner("p/other.yml", node.provides, definitions.digest(node), claims(node))
            for layer in example.layers()
            for node in layer
        ]
        assert planned(example, example.layers(), owners).steps[example.name].outcome == "changed"

    check_each(by_type(TYPES), check)


def test_only_users_of_the_host_keep_another_playbook_from_removing_them() -> None:
    """A role of PostgreSQL may have the name of a user of the host. The attributes of such types are other texts."""
    found = {}
    for page in (path for path in (CHECKOUT / "resources").rglob("*.py") if path.stem in resources.available()):
        for kind in re.findall(r"^    (?:user|owner|group): (\w+)", page.read_text(encoding="utf-8"), re.M):
            found[page.stem] = kind in ("UserName", "GroupName", "Owner", "OwnerGroup")
    assert {name for name, of_host in found.items() if not of_host} >= {"mariadb_grant", "postgresql_database"}
    assert [name for name, of_host in found.items() if of_host is name.startswith(OTHER_USERS)] == []
