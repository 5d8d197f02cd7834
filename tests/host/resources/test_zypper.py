"""Packages on a real host with zypper: transactions, versions, locks, removals, what stays, and the undo."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import lab
from tests.host.resources.test_dnf import small_packages
from tests.host.resources.test_packages_together import Site
from tests.host.resources.truth_packages import ZYPPER_PACKAGES
from tests.host.resources.truth_runs import check_rows
from tests.lab.fixtures import or_skip
from tests.lab.suse import suse_host

CONF = "/etc/tool-a.conf"
FIRST = "opensuse-release 15.6-1"
REPOSITORY = "[tests]\nname=tests\nbaseurl=dir:///srv/rpm\ngpgcheck=0\nenabled=1\n"
AUTO = "/var/lib/zypp/AutoInstalled"
RECORDS = "# AutoInstalled generated Mon Nov 23 20:07:23 2026\n#\n#\n"  # without this file, zypper guesses


class ZypperSite(Site):
    """A host with zypper and a project for it."""

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


def test_a_package_comes_and_goes_with_what_only_it_needs(site: ZypperSite) -> None:
    playbook = site.write("tool.yml", "package: tool-b")
    planned = site.report("plan", playbook)["package:tool-b"]
    assert planned["actions"][0]["args"]["packages"][0]["others"] == {"tool-a": "2.0-1"}
    applied = site.report("apply", playbook, "--yes")["package:tool-b"]
    assert applied["changes"] == planned["changes"]
    assert site.packages() == [FIRST, "tool-a 2.0-1 automatic", "tool-b 1.0-1"]
    assert site.report("apply", playbook, "--yes")["package:tool-b"]["outcome"] == "unchanged"
    site("destroy", playbook, "--yes")


def test_several_packages_are_one_transaction(site: ZypperSite) -> None:
    playbook = site.write("several.yml", "package: tool-b", "package: Capital_name", 'package: tool-a, version: "1.*"')
    site("apply", playbook, "--yes")
    assert site.has("tool-a", "tool-b", "Capital_name") == ["tool-a", "tool-b", "Capital_name"]
    assert site.host.run(["tool-a"]).stdout == "1.0\n"
    assert site.host.read("/var/tmp/capital") == "installed\n"
    commands = [line for line in site.host.read("/var/log/zypp/history").splitlines() if "|command|" in line]
    assert all(name in commands[-1] for name in ("tool-a", "tool-b", "Capital_name"))
    site("destroy", playbook, "--yes")


def test_later_packages_are_planned_after_earlier_ones(site: ZypperSite) -> None:
    """The plan knows the packages of the second layer, too."""
    later = 'package: tool-b, requires: ["package:extra", "package:tool-a"]'
    playbook = site.write("layers.yml", "package: extra", 'package: tool-a, version: "1.*"', later)
    planned = site.report("plan", playbook)
    assert {node["outcome"] for node in planned.values()} == {"changed"}
    assert planned["package:tool-b"]["actions"][0]["args"]["packages"][0]["others"] == {}
    site("apply", playbook, "--yes")
    assert site.host.run(["tool-a"]).stdout == "1.0\n"
    assert {node["outcome"] for node in site.report("plan", playbook).values()} == {"unchanged"}
    site("destroy", playbook, "--yes")


def test_versions_are_chosen_and_restored(site: ZypperSite) -> None:
    site.zypper("install", "tool-a=1.0")
    before = site.packages()
    playbook = site.write("newer.yml", 'package: tool-a, version: "2.0-1"')
    planned = site.report("plan", playbook)["package:tool-a"]
    assert [(change["before"], change["after"]) for change in planned["changes"]] == [("1.0-1", "2.0-1")]
    assert site.report("apply", playbook, "--yes")["package:tool-a"]["changes"] == planned["changes"]
    wrong = site.write("wrong.yml", 'package: tool-a, version: "3.*"')
    assert "available: 1.0-1, 2.0-1" in site.report("plan", wrong, code=1)["package:tool-a"]["reason"]
    site("destroy", playbook, "--yes")
    assert site.packages() == before
    site.zypper("remove", "tool-a")


def test_mistakes_are_explained(site: ZypperSite) -> None:
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


def test_a_removal_that_takes_others_is_refused_and_is_undone(site: ZypperSite) -> None:
    """With `dependents`, the others go, too. The undo restores all, with the changed configuration file."""
    site.zypper("install", "tool-b")
    site.host.write(CONF, "changed here\n")
    before = site.packages()
    refused = site.write("gone.yml", "package: tool-a, absent: true")
    assert "other packages depend on tool-a: tool-b" in site.report("plan", refused, code=1)["package:tool-a"]["reason"]
    both = site.write("gone.yml", "package: tool-a, absent: true, dependents: true", "package: tool-b")
    assert "package:tool-b installs" in site.report("plan", both, code=1)["package:tool-a"]["reason"]
    playbook = site.write("gone.yml", "package: tool-a, absent: true, dependents: true")
    site("apply", playbook, "--yes")
    assert site.has("tool-a", "tool-b") == []
    assert site.host.read(f"{CONF}.rpmsave") == "changed here\n"
    site("destroy", playbook, "--yes")
    assert site.packages() == before
    assert site.host.read(CONF) == "changed here\n"
    assert site.host.run(["sh", "-c", f"ls {CONF}*"]).stdout == f"{CONF}\n"
    site.zypper("remove", "tool-b", "tool-a")


def test_a_purge_takes_changed_configuration_too(site: ZypperSite) -> None:
    site.zypper("install", "tool-a")
    site.host.write(CONF, "changed here\n")
    playbook = site.write("gone.yml", "package: tool-a, absent: true, purge: true")
    site("apply", playbook, "--yes")
    assert site.host.run(["sh", "-c", f"ls {CONF}* || true"]).stdout == ""
    site("destroy", playbook, "--yes")
    assert site.host.read(CONF) == "changed here\n"
    site.zypper("remove", "tool-a")


def test_a_conflicting_package_is_replaced_and_comes_back(site: ZypperSite) -> None:
    """Something needs one of two packages that exclude each other. Nothing else is removed, there and back."""
    site.zypper("install", "needs-mail", "mail-a")
    before = site.packages()
    refused = site.write("mail.yml", "package: mail-b")
    assert "mail-a" in site.report("plan", refused, code=1)["package:mail-b"]["reason"]
    playbook = site.write("mail.yml", "package: mail-b, replaces: [mail-a]")
    planned = site.report("plan", playbook)["package:mail-b"]
    applied = site.report("apply", playbook, "--yes")["package:mail-b"]
    assert applied["changes"] == planned["changes"]
    assert site.has("mail-a", "mail-b", "needs-mail") == ["mail-b", "needs-mail"]
    site("destroy", playbook, "--yes")
    assert site.packages() == before
    site.zypper("remove", "needs-mail", "mail-a")


def test_packages_that_exclude_each_other_are_found_before_anything_changes(site: ZypperSite) -> None:
    playbook = site.write("mail.yml", "package: mail-a", "package: mail-b")
    reason = site.report("plan", playbook, code=1)["package:mail-b"]["reason"]
    assert "mail-b can't be installed together with mail-a" in reason
    site("apply", playbook, "--yes", code=1)
    assert site.packages() == [FIRST]


def test_recommended_packages_are_left_out(site: ZypperSite) -> None:
    without = site.write("extra.yml", "package: wants-extra, recommends: false")
    site("apply", without, "--yes")
    assert site.has("extra", "wants-extra") == ["wants-extra"]
    site("destroy", without, "--yes")
    with_them = site.write("extra.yml", "package: wants-extra, recommends: true")
    site("apply", with_them, "--yes")
    assert site.has("extra", "wants-extra") == ["extra", "wants-extra"]
    site("destroy", with_them, "--yes")


def test_a_dependency_that_others_need_by_then_stays(site: ZypperSite) -> None:
    playbook = site.write("tool.yml", "package: tool-a")
    site("apply", playbook, "--yes")
    site.zypper("install", "tool-b")
    left = site.report("destroy", playbook, "--yes")["package:tool-a"]
    assert "tool-a stays: tool-b needs it" in str(left)
    assert site.packages()[1:] == ["tool-a 2.0-1 automatic", "tool-b 1.0-1"]
    site.zypper("remove", "--clean-deps", "tool-b")


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


def test_facts_and_conditions_know_the_packages(site: ZypperSite) -> None:
    site.zypper("install", "tool-a=1.0")
    present = "file: /var/tmp/fact, content: \"{{ host.facts.packages['tool-a'] }}\""
    condition = 'file: /var/tmp/condition, content: "yes", when_host: {package: tool-a, version: "< 2"}'
    other = 'file: /var/tmp/other, content: "yes", when_host: {package: tool-a, version: ">= 2"}'
    playbook = site.write("facts.yml", present, condition, other)
    site("apply", playbook, "--yes")
    assert site.host.read("/var/tmp/fact") == "1.0-1"
    assert site.host.read("/var/tmp/condition") == "yes"
    assert not site.host.path("/var/tmp/other").exists()
    site("destroy", playbook, "--yes")
    site.zypper("remove", "tool-a")


def test_plans_of_packages_come_true(site: ZypperSite) -> None:
    rows = [("package", "package (zypper)"), ("package_upgrade", "package_upgrade (zypper)")]
    check_rows(site.host, ZYPPER_PACKAGES, rows)
