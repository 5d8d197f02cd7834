"""A store with many hosts and runs, written directly because real runs would take hours."""

from __future__ import annotations

from typing import Any

from sqlalchemy import insert

from statecfg import store
from statecfg.playbook import project
from statecfg.store.tables import binding, host, run, run_host
from tests.host.server.serving import Served

LARGE_RUN = "all-hosts"
START = 1_750_000_000.0  # seconds since 1970
MINUTE = 60.0
OK = {"status": "ok", "summary": {"unchanged": 3, "changed": 1}}
FAILED = {"status": "failed", "summary": {"unchanged": 3, "failed": 1}}


def fill(served: Served, hosts: int, runs: int) -> None:
    """Write hosts, runs with three hosts each, and a run of all hosts in which every hundredth host failed."""
    here = project.find(served.root)
    with store.opened(here, served.store) as opened, opened.transaction() as connection:
        end = START + MINUTE * runs
        connection.execute(insert(host), [_host(opened.project, number, end) for number in range(hosts)])
        bound = [
            {"host": 1 + number, "playbook": f"{opened.project}/site.yml", "since": end} for number in range(hosts)
        ]
        connection.execute(insert(binding), bound)
        heads = [_run(opened.project, f"run{number:05}", START + MINUTE * number) for number in range(runs - 1)]
        connection.execute(insert(run), [*heads, _run(opened.project, LARGE_RUN, end)])
        parts = [
            _part(f"run{n:05}", (3 * n + i) % hosts, bool((3 * n + i) % 10)) for n in range(runs - 1) for i in range(3)
        ]
        connection.execute(insert(run_host), parts)
        connection.execute(insert(run_host), [_part(LARGE_RUN, n, bool(n % 100)) for n in range(hosts)])


def _host(owner: str, number: int, at: float) -> dict[str, Any]:
    facts = {"os": {"pretty_name": "Debian GNU/Linux 12 (bookworm)"}, "kernel": "6.1.0", "machine_id": str(number)}
    times = {"registered": START, "last_checkin": at, "installed": "site.yml", "installed_at": at}
    empty = {"metadata": {}, "boot_id": "", "ledger": ""}
    return {"project": owner, "name": f"host{number}", "facts": facts, "tags": [f"rack{number % 40}"], **empty, **times}


def _run(owner: str, id: str, at: float) -> dict[str, Any]:
    times = {"started": at, "ended": at + 30}
    return {"id": id, **times, "mode": "apply", "who": "ann@desk", "playbook": "site.yml", "project": owner}


def _part(id: str, number: int, is_ok: bool) -> dict[str, Any]:
    said = OK if is_ok else FAILED
    name = "needle" if number == 100 else "config"
    node = {"name": f"file:/etc/{name}", "type": "file", "outcome": "changed", "position": "site.yml:3"}
    failed = {"name": "command:migrate", "type": "command", "outcome": "failed", "reason": "exit code 3"}
    same = [{"name": f"file:/etc/{each}", "type": "file", "outcome": "unchanged"} for each in range(3)]
    report = {**said, "layers": [same, [node if is_ok else {**failed, "position": f"site.yml:9 {name}"}]]}
    return {"run": id, "host": f"host{number}", **said, "report": report}
