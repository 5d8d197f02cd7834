"""The state of hosts: the newest run of each bound playbook counts, and no older one."""

from __future__ import annotations

from statecfg.store import hosts, runs
from statecfg.store.database import Store
from statecfg.store.host_states import last_runs, worst


def ran(store: Store, number: int, playbook: str, **statuses: str) -> None:
    said = {name: {"status": status, "summary": {}} for name, status in statuses.items()}
    report = {"run": f"r{number}", "mode": "apply", "playbook": playbook, "hosts": said}
    runs.record(store, report, float(number), float(number + 1), "ann@desk")


def states(store: Store) -> dict[str, str | None]:
    last = last_runs(store, hosts.every(store))
    return {name: worst(each.status for each in found) for name, found in last.items()}


def met(store: Store, name: str, *playbooks: str) -> None:
    hosts.check_in(store, name, {}, "", "")
    for playbook in playbooks:
        hosts.bind(store, name, f"site/{playbook}")


def test_a_failed_playbook_counts_although_another_one_is_fine(store: Store) -> None:
    met(store, "web1", "a.yml", "b.yml")
    ran(store, 1, "a.yml", web1="failed")
    ran(store, 2, "b.yml", web1="ok")
    assert states(store) == {"web1": "failed"}
    ran(store, 3, "a.yml", web1="ok")
    assert states(store) == {"web1": "ok"}


def test_an_unbound_playbook_counts_only_if_its_run_is_newest(store: Store) -> None:
    met(store, "web1", "a.yml")
    ran(store, 1, "a.yml", web1="ok")
    ran(store, 2, "old.yml", web1="failed")
    assert states(store) == {"web1": "failed"}
    ran(store, 3, "a.yml", web1="ok")
    assert states(store) == {"web1": "ok"}


def test_hosts_without_a_run_have_no_state(store: Store) -> None:
    met(store, "web1", "a.yml")
    hosts.tag(store, "web2", ["new"])
    ran(store, 1, "a.yml", web2="unreachable", web3="ok")
    assert states(store) == {"web1": None, "web2": "unreachable"}


def test_the_worst_status_wins() -> None:
    assert worst(["ok", "locked", "unknown"]) == "unknown"
    assert worst(["ok", "of a later version"]) == "of a later version"
    assert worst([]) is None
