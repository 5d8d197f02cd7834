"""Repositories of zypper on a real host: their keys, their lists, and their undo."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import lab
from tests.host.resources.packages.signed_rpms import copy_keys, require_programs, sign
from tests.host.resources.packages.test_zypper import AUTO, FIRST, RECORDS, REPOSITORY, ZypperSite
from tests.host.resources.truth_packages import zypper_lists
from tests.host.resources.truth_runs import check_rows
from tests.lab.fixtures import or_skip
from tests.lab.rpm import RpmRepository
from tests.lab.suse import suse_host

SECOND = 'zypper_repository: second, baseurl: ["dir:///srv/second"], key_source: %s'
RAW = "/var/cache/zypp/raw/second"


@pytest.fixture(scope="module")
def suse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.Host]:
    """Give a host with a repository, and a signed repository that zypper does not use."""
    require_programs()
    directory = tmp_path_factory.mktemp("rpm")
    with or_skip():
        first, second = RpmRepository(directory / "first"), RpmRepository(directory / "second")
        first.add("tool-a", "1.0")
        second.add("strange", "1.0")
        host = suse_host(first)
    try:
        first.index()
        first.copy(host)
        sign(second, directory / "gpg", index=True)
        second.copy(host, "/srv/second")
        host.write("/etc/zypp/repos.d/tests.repo", REPOSITORY)
        host.write(AUTO, RECORDS)
        host.run(["zypper", "--non-interactive", "refresh"])
        yield host
    finally:
        host.stop()


@pytest.fixture
def site(suse: lab.Host, tmp_path: Path) -> Iterator[ZypperSite]:
    """Give a project for the host, and check that it has the same packages and settings before and after the test."""
    site = ZypperSite(suse, tmp_path)
    copy_keys(suse, "/srv/second", tmp_path)
    before = (site.packages(), settings(suse))
    assert before[0] == [FIRST]
    yield site
    after = (site.packages(), settings(suse))
    suse.run(["sh", "-c", f"rm -rf /var/lib/statecfg /etc/zypp/repos.d/second.repo /etc/pki/rpm-gpg {RAW}"])
    suse.write(AUTO, RECORDS)
    assert after == before


def settings(host: lab.Host) -> str:
    """Return the files of zypper and the keys that rpm accepts."""
    return host.run(["sh", "-c", "cd /etc; grep -r . zypp/repos.d pki/rpm-gpg; rpm -qa gpg-pubkey; true"]).stdout


@pytest.mark.parametrize("key", ["key.asc", "key.gpg"])
def test_a_signed_repository_is_fetched_and_used_and_removed(site: ZypperSite, key: str) -> None:
    playbook = site.write("second.yml", SECOND % key + ", priority: 50, autorefresh: true", "package: strange")
    planned = site.report("plan", playbook)["zypper_repository:second"]
    ops = [action["op"] for action in planned["actions"]]
    assert [op for op in ops if op != "make_directory"] == ["write", "import_key", "write", "fetch_lists"]
    applied = site.report("apply", playbook, "--yes")
    assert {node["outcome"] for node in applied.values()} == {"changed"}
    assert site.has("strange") == ["strange"]
    listed = site.zypper("--no-refresh", "--xmlout", "repos", "second")
    assert 'priority="50"' in listed and 'autorefresh="1"' in listed and 'gpgcheck="1"' in listed
    assert {node["outcome"] for node in site.report("apply", playbook, "--yes").values()} == {"unchanged"}
    site.host.run(["sh", "-c", f"rm -r {RAW}; rpm -e gpg-pubkey"])
    again = site.report("plan", playbook)["zypper_repository:second"]
    assert [action["op"] for action in again["actions"]] == ["import_key", "fetch_lists"]
    site("destroy", playbook, "--yes")


def test_lists_without_a_trusted_signature_are_refused(site: ZypperSite) -> None:
    playbook = site.write("second.yml", 'zypper_repository: second, baseurl: ["dir:///srv/second"]', "package: strange")
    failed = site.report("apply", playbook, "--yes", code=1)["zypper_repository:second"]
    assert failed["reason"].startswith("fetch_lists:")
    assert site.has("strange") == []
    site("destroy", playbook, "--yes")


def test_a_repository_that_does_not_answer_fails(site: ZypperSite) -> None:
    playbook = site.write("gone.yml", 'zypper_repository: second, baseurl: ["dir:///srv/nothing"], gpgcheck: false')
    failed = site.report("apply", playbook, "--yes", code=1)["zypper_repository:second"]
    assert failed["reason"].startswith("fetch_lists:")
    site("destroy", playbook, "--yes")


def test_a_repository_with_which_zypper_does_not_work(site: ZypperSite) -> None:
    """zypper then answers nothing, whatever it is asked. It uses one of two files that define a repository."""
    other = "/etc/zypp/repos.d/other.repo"
    site.host.write(other, "[second]\nname=x\nbaseurl=dir:///srv/rpm\n")
    playbook = site.write("second.yml", 'zypper_repository: second, baseurl: ["dir:///srv/second"], fetch: false')
    refused = site.report("plan", playbook, code=1)["zypper_repository:second"]["reason"]
    assert f"{other}:1 defines the repository second, too" in refused
    site.host.run(["rm", other])
    wrong = site.write("second.yml", 'zypper_repository: second, baseurl: ["nfs:/foo"], fetch: false')
    failed = site.report("apply", wrong, "--yes", code=1)["zypper_repository:second"]["reason"]
    assert "zypper refuses the new configuration, and the former one is restored" in failed
    assert "requires a host component" in failed
    assert not site.host.path("/etc/zypp/repos.d/second.repo").exists()
    site.zypper("repos")


def test_a_disabled_repository_is_not_fetched(site: ZypperSite) -> None:
    playbook = site.write("second.yml", SECOND % "key.asc" + ", enabled: false")
    site("apply", playbook, "--yes")
    assert not site.host.path(RAW).exists()
    assert site.report("apply", playbook, "--yes")["zypper_repository:second"]["outcome"] == "unchanged"
    site("destroy", playbook, "--yes")


def test_plans_of_repositories_come_true(site: ZypperSite) -> None:
    case = zypper_lists(site.directory / "files/key.asc")
    check_rows(site.host, case, [("zypper_repository", "zypper_repository")])
