"""Packages on a real host with zypper: transactions, versions, locks, removals, what stays, and the undo."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import lab
from tests.host.resources.packages.package_cases import CONF, ManagerSite, RpmPackageCases
from tests.host.resources.packages.test_dnf import small_packages
from tests.host.resources.truth_packages import ZYPPER_PACKAGES
from tests.host.resources.truth_runs import check_rows
from tests.lab.fixtures import or_skip
from tests.lab.suse import suse_host

FIRST = "opensuse-release 15.6-1"
REPOSITORY = "[tests]\nname=tests\nbaseurl=dir:///srv/rpm\ngpgcheck=0\nenabled=1\n"
AUTO = "/var/lib/zypp/AutoInstalled"
RECORDS = "# AutoInstalled generated Mon Nov 23 20:07:23 2026\n#\n#\n"  # without this file, zypper guesses


class ZypperSite(ManagerSite):
    """A host with zypper and a project for it."""

    first = [FIRST]
    dependency = " automatic"
    saved = ".rpmsave"

    def packages(self) -> list[str]:
        """Return the host's packages, each with its version, whether it is there only for others, and its lock."""
        show = ["rpm", "-qa", "--qf", "%{NAME} %{VERSION}-%{RELEASE}\\n"]
        marked = self.text(AUTO).split()
        locked = self.text("/etc/zypp/locks").split()
        lines = sorted(line for line in self.host.run(show).stdout.splitlines() if not line.startswith("gpg-pubkey "))
        marks = [("automatic", marked), ("locked", locked)]
        return [" ".join([line, *(mark for mark, names in marks if line.split()[0] in names)]) for line in lines]

    def text(self, path: str) -> str:
        """Return the content of a file; nothing if it does not exist."""
        return self.host.read(path) if self.host.path(path).exists() else ""

    def has(self, *names: str) -> list[str]:
        """Return which of these packages are installed."""
        installed = [line.split()[0] for line in self.packages()]
        return [name for name in names if name in installed]

    def install(self, *names: str) -> None:
        """Install packages by hand."""
        self.zypper("install", *names)

    def install_old(self) -> None:
        """Install tool-a 1.0 by hand."""
        self.zypper("install", "tool-a=1.0")

    def remove(self, *names: str) -> None:
        """Remove packages by hand, with what was installed for them."""
        self.zypper("remove", "--clean-deps", *names)

    def zypper(self, *arguments: str) -> str:
        """Run zypper."""
        return self.host.run(["zypper", "--non-interactive", *arguments]).stdout


@pytest.fixture(scope="module")
def suse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.Host]:
    """Give a host with zypper and one repository, whose lists it has."""
    with or_skip():
        repository = small_packages(tmp_path_factory.mktemp("rpm") / "packages")
        for version in ("1.0", "2.0"):
            repository.add("shop", version)
        host = suse_host(repository)
    try:
        repository.index()
        repository.copy(host)
        host.write("/etc/zypp/repos.d/tests.repo", REPOSITORY)
        host.write(AUTO, RECORDS)
        host.run(["zypper", "--non-interactive", "refresh"])
        yield host
    finally:
        host.stop()


@pytest.fixture
def site(suse: lab.Host, tmp_path: Path) -> Iterator[ZypperSite]:
    """Give a project for the host, and check that the host has the same packages before and after the test."""
    site = ZypperSite(suse, tmp_path)
    assert site.packages() == [FIRST]
    yield site
    after = site.packages()
    others = [line.split()[0] for line in after if line != FIRST]
    if others:
        suse.run(["rpm", "--erase", "--nodeps", *others])
    suse.run(["sh", "-c", f"rm -rf /var/lib/statecfg /var/tmp/capital /etc/zypp/locks {CONF}*"])
    suse.write(AUTO, RECORDS)
    assert after == [FIRST]


class TestPackages(RpmPackageCases):
    """Packages of zypper."""


def test_several_packages_are_one_transaction(site: ZypperSite) -> None:
    playbook = site.write("several.yml", "package: tool-b", "package: Capital_name", 'package: tool-a, version: "1.*"')
    site("apply", playbook, "--yes")
    assert site.has("tool-a", "tool-b", "Capital_name") == ["tool-a", "tool-b", "Capital_name"]
    assert site.host.run(["tool-a"]).stdout == "1.0\n"
    assert site.host.read("/var/tmp/capital") == "installed\n"
    commands = [line for line in site.host.read("/var/log/zypp/history").splitlines() if "|command|" in line]
    assert all(name in commands[-1] for name in ("tool-a", "tool-b", "Capital_name"))
    site("destroy", playbook, "--yes")


def test_plan_says_why_zypper_cannot_install_a_package(site: ZypperSite) -> None:
    playbook = site.write("wrong.yml", "package: tool-aa", "package: mail", "package: tool-a, default_release: stable")
    found = site.report("plan", playbook, code=1)
    text = "zypper does not know a package tool-aa; did you mean `tool-a` or `tool-b`?"
    assert text in found["package:tool-aa"]["reason"]
    assert "mail is a virtual package, provided by mail-a" in found["package:mail"]["reason"]
    text = "default_release is an option of apt, and this host has zypper"
    assert text in found["package:tool-a"]["reason"]


def test_a_locked_package_is_released_and_locked_again(site: ZypperSite) -> None:
    site.zypper("install", "tool-a=1.0")
    site.zypper("addlock", "tool-a")
    before = site.packages()
    assert before[-1].endswith(" locked")
    refused = site.write("tool.yml", 'package: tool-a, version: "2.*"')
    assert "tool-a is on hold" in site.report("plan", refused, code=1)["package:tool-a"]["reason"]
    playbook = site.write("tool.yml", 'package: tool-a, version: "2.*", hold: true')
    planned = site.report("plan", playbook)["package:tool-a"]
    report = site.report("apply", playbook, "--yes")["package:tool-a"]
    assert report["changes"] == planned["changes"]
    assert [action["op"] for action in report["actions"]] == ["install", "hold"]
    assert site.packages()[-1] == "tool-a 2.0-1 locked"
    assert site.report("plan", playbook)["package:tool-a"]["outcome"] == "unchanged"
    site("destroy", playbook, "--yes")
    assert site.packages() == before
    site.zypper("removelock", "tool-a")
    site.zypper("remove", "tool-a")


def test_a_lock_with_a_pattern_stays(site: ZypperSite) -> None:
    site.zypper("install", "tool-a=1.0")
    site.zypper("addlock", "tool-*")
    playbook = site.write("tool.yml", "package: tool-a, hold: false")
    failed = site.report("apply", playbook, "--yes", code=1)["package:tool-a"]
    assert "the lock tool-* of zypper holds tool-a: remove that lock" in failed["reason"]
    site.zypper("removelock", "tool-*")
    site.zypper("remove", "tool-a")


def test_all_packages_are_upgraded_and_downgraded_again(site: ZypperSite) -> None:
    site.zypper("install", "tool-a=1.0", "shop=1.0", "wants-extra")
    site.host.run(["rpm", "--erase", "wants-extra"])  # nothing needs extra any more
    before = site.packages()
    playbook = site.write("all.yml", "package_upgrade: all, autoremove: true")
    planned = site.report("plan", playbook)["package_upgrade:all"]
    changes = [(change["object"], change["before"], change["after"]) for change in planned["changes"]]
    newer = [("package shop", "1.0-1", "2.0-1"), ("package tool-a", "1.0-1", "2.0-1")]
    assert changes == [("package extra", "1.0-1", None), *newer]
    applied = site.report("apply", playbook, "--yes")["package_upgrade:all"]
    assert applied["changes"] == planned["changes"]
    assert site.report("apply", playbook, "--yes")["package_upgrade:all"]["outcome"] == "unchanged"
    site("destroy", playbook, "--yes")
    assert [line.split()[:2] for line in site.packages()] == [line.split()[:2] for line in before]
    site.zypper("remove", "tool-a", "shop", "extra")


def test_an_upgrade_keeps_versions_that_nodes_set_and_locked_packages(site: ZypperSite) -> None:
    site.zypper("install", "tool-a=1.0", "shop=1.0")
    before = site.packages()
    playbook = site.write("kept.yml", "package_upgrade: all", 'package: tool-a, version: "1.0-1"')
    planned = site.report("plan", playbook)["package_upgrade:all"]
    assert [change["object"] for change in planned["changes"]] == ["package shop"]
    assert site.report("apply", playbook, "--yes")["package_upgrade:all"]["changes"] == planned["changes"]
    assert site.packages() == [FIRST, "shop 2.0-1", "tool-a 1.0-1"]
    assert site.report("apply", playbook, "--yes")["package_upgrade:all"]["outcome"] == "unchanged"
    site("destroy", playbook, "--yes")
    assert site.packages() == before
    site.zypper("addlock", "tool-a")
    site.host.run(["touch", "--date=@1000000000", "/var/cache/zypp/raw/tests/repodata/repomd.xml"])
    safe = site.write("safe.yml", "package_upgrade: all, mode: safe, update_cache: 3600")
    assert "steps" not in site.report("plan", safe)["package_upgrade:all"]["actions"][0]["args"]
    site("apply", safe, "--yes")
    assert site.report("plan", safe)["package_upgrade:all"]["outcome"] == "unchanged"
    assert site.packages() == [FIRST, "shop 2.0-1", "tool-a 1.0-1 locked"]
    site("destroy", safe, "--yes")
    site.zypper("removelock", "tool-a")
    assert site.packages() == before
    site.zypper("remove", "tool-a", "shop")


def test_missing_lists_are_fetched_before_the_installation(site: ZypperSite) -> None:
    site.host.run(["sh", "-c", "rm -rf /var/cache/zypp/raw/* /var/cache/zypp/solv/tests"])
    refused = site.write("tool.yml", "package: extra")
    assert "update_cache: 86400 fetches them" in site.report("plan", refused, code=1)["package:extra"]["reason"]
    assert not site.host.path("/var/cache/zypp/raw/tests").exists()
    playbook = site.write("tool.yml", "package: extra, update_cache: 3600")
    site("apply", playbook, "--yes")
    assert site.has("extra") == ["extra"]
    assert site.report("apply", playbook, "--yes")["package:extra"]["outcome"] == "unchanged"
    site("destroy", playbook, "--yes")


def test_plans_of_packages_come_true(site: ZypperSite) -> None:
    rows = [("package", "package (zypper)"), ("package_upgrade", "package_upgrade (zypper)")]
    check_rows(site.host, ZYPPER_PACKAGES, rows)
