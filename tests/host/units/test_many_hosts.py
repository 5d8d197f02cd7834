"""Runs with units on very many hosts."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from statecfg.playbook.compile import Definition
from statecfg.playbook.inventory import Host
from statecfg.problems import InvalidInput
from statecfg.run import deployment
from statecfg.run.job import Job
from statecfg.store import opened
from statecfg.store.services import deploy_in
from statecfg.store.units.records import Declared
from statecfg.units import in_run
from tests.host.command import statecfg


def test_a_run_refuses_units_on_too_many_hosts(tmp_path: Path) -> None:
    """Each of these hosts has its own threads until the end of the run. Runs that start no hooks have no such limit."""
    names = ", ".join(f"web{number}" for number in range(deployment.MAX_HOSTS + 1))
    (tmp_path / "inventory.yml").write_text(f"hosts: [{names}]\n")
    (tmp_path / "site.yml").write_text("- service: web\n  hosts: all\n")
    for words in (("plan",), ("apply", "--yes")):
        ran = statecfg(*words, "site.yml", cwd=tmp_path, code=5, STATECFG_STORE=str(tmp_path / "store.db"))
        assert ran.out == ""
        assert "SC0454" in ran.err and "units of services on 1,001 hosts; the limit is 1,000" in ran.err
    assert not (tmp_path / "store.db").exists()
    assert statecfg("validate", "site.yml", cwd=tmp_path).code == 0


def test_a_run_counts_the_hosts_of_units_whose_services_are_no_longer_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployment, "MAX_HOSTS", 3)
    names = tuple(f"web{number}" for number in range(deployment.MAX_HOSTS + 1))
    web = Declared("web", names, "web", "d1", {}, {}, 60.0)
    with opened(url=str(tmp_path / "store.db")) as store:
        store.attempt(lambda connection: deploy_in(connection, "shop", "site", [web], [], {}, False, 0.0))
        jobs = [Job(Host(name), "site", Definition([])) for name in names]
        former = deployment.Deployment("shop", "site")
        with pytest.raises(InvalidInput) as caught:
            in_run.of_run(store, former, "apply", "r1", jobs, threading.Event())
        assert [problem.code for problem in caught.value.problems] == ["SC0454"]
        with in_run.looked_ahead(store, former, "apply", jobs[1:]) as coordinator:
            assert len(coordinator.orders.ahead.names) == deployment.MAX_HOSTS
