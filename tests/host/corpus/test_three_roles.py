"""Three roles on three hosts in one run: a hardened base, a web server with TLS, and PostgreSQL with a replica."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import lab
from tests.host.command import reach, statecfg
from tests.host.corpus import debian, snapshot
from tests.host.corpus.course import PAGE, PROJECT, RELEASE
from tests.host.corpus.roles import POSTGRESQL_ACCOUNTS, writable_sysctls
from tests.host.corpus.states import count, failures, nodes
from tests.lab import Host
from tests.lab.fixtures import or_skip

SECRETS = {"CORPUS_REPLICATION_PASSWORD": "replica-Secret-1", "CORPUS_SHOP_PASSWORD": "shop-Secret-2"}
MAX_LINES = 150  # of a role's YAML
Reports = dict[str, dict[str, Any]]


@pytest.fixture
def hosts() -> Iterator[list[Host]]:
    """Boot three bare hosts, or skip the test if this machine can't run them."""
    booted: list[Host] = []
    try:
        with or_skip():
            booted.extend(lab.booted_host(name, bare=debian.bare()) for name in ("web1", "db1", "db2"))
        yield booted
    finally:
        for host in booted:
            host.stop()


class Playbook:
    """The playbook with the three roles."""

    def __init__(self, directory: Path, hosts: list[Host]) -> None:
        self.project = directory / "project"
        shutil.copytree(PROJECT, self.project)
        web, primary, replica = hosts
        groups = {"web": [web.name], "primary": [primary.name], "replica": [replica.name]}
        self.options = reach(directory, hosts, **groups)

    def run(self, verb: str, *more: str, code: int | None = 0) -> Reports:
        """Run a command with the playbook; return the report of each host."""
        ran = statecfg(
            verb, self.project / "playbooks/three_roles.yml", *self.options, *more, "--json", code=None,
            cwd=self.project, **SECRETS,
        )  # fmt: skip
        assert '"hosts"' in ran.out, f"{verb}: {ran.out}\n{ran.err}"
        assert not any(secret in ran.out + ran.err for secret in SECRETS.values())
        reports: Reports = ran.json()["hosts"]
        assert code in (None, ran.code), "\n".join(map(failures, reports.values()))
        return reports


def row(name: str, planned: dict[str, Any], applied: dict[str, Any]) -> str:
    """Return the row of a host in the table of docs/measured.md."""
    found = count(nodes(planned, "layers"), nodes(applied, "layers"))
    assert not found.wrong, f"{name}: {found.wrong}"
    return f"| {name} | {found.exact} / {len(found.known_after)} / {len(found.wrong)} |"


def check(hosts: list[Host]) -> None:
    """Check that all services work, and that the replica gets what the primary writes."""
    web, primary, replica = hosts
    page = web.run(["curl", "-fsSk", "--connect-to", f"::{web.address}:443", "https://shop.example.test/"]).stdout
    assert "The shop on web1" in page
    assert "301" in web.run(["curl", "-sSI", "http://127.0.0.1/"]).stdout
    ask = ["env", "PGPASSWORD=shop-Secret-2", "psql", "-h", "127.0.0.1", "-U", "shop", "-Atc"]
    primary.run([*ask, "CREATE TABLE told AS SELECT 'by the primary' AS text"])
    script = "for i in $(seq 100); do \"$@\" 'SELECT text FROM told' 2>/dev/null && exit; sleep 0.1; done; exit 1"
    assert replica.run(["sh", "-c", script, "ask", *ask]).stdout == "by the primary\n"
    assert replica.run([*ask, "SELECT pg_is_in_recovery()"]).stdout == "t\n"
    for host in hosts:
        assert "maxauthtries 4\n" in host.run(["sshd", "-T"]).stdout
        assert host.run(["sysctl", "-n", "net.ipv4.conf.all.rp_filter"]).stdout == "1\n"


def test_three_roles_on_three_hosts_come_and_go_in_one_run(tmp_path: Path, hosts: list[Host]) -> None:
    for role in (PROJECT / "roles").glob("*/role.yml"):
        assert len(role.read_text().splitlines()) <= MAX_LINES
    for host in hosts:
        writable_sysctls(host, tmp_path)
    playbook = Playbook(tmp_path, hosts)
    before = [snapshot.take(host) for host in hosts]

    planned, applied = playbook.run("plan"), playbook.run("apply", "--yes")
    rows = [row(name, planned[name], report) for name, report in applied.items()]
    check(hosts)
    for name, report in playbook.run("apply", "--yes").items():
        assert set(report["summary"]) == {"unchanged"}, name

    playbook.run("destroy", "--yes")
    for host, was in zip(hosts, before, strict=True):
        different = snapshot.differences(was, snapshot.take(host), POSTGRESQL_ACCOUNTS)
        assert not different, f"{host.name}:\n" + "\n".join(different)
    if debian.codename() == RELEASE:
        page = PAGE.read_text(encoding="utf-8")
        assert all(line in page for line in rows), "\n".join(rows)
