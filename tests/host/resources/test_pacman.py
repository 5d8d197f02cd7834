"""Packages on a real host with pacman: transactions, versions from its cache, removals, what stays, and the undo."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import lab
from tests.host.resources.test_packages_together import Site
from tests.host.resources.truth_packages import PACMAN_LISTS, PACMAN_PACKAGES
from tests.host.resources.truth_runs import check_rows
from tests.lab.arch import CONFIGURATION, PLACE, PacmanRepository, arch_host
from tests.lab.fixtures import or_skip

CONF = "/etc/tool-a.conf"


class PacmanSite(Site):
    """A host with pacman and a project for it."""

    def packages(self) -> list[str]:
        """Return the packages, each with its version, and whether it is there only for others.

        If there are none, pacman ends with status 1.
        """
        marked = self.host.run(["pacman", "-Qdq"], check=False).stdout.split()
        lines = self.host.run(["pacman", "-Q"], check=False).stdout.splitlines()
        return [f"{line}{' automatic' if line.split()[0] in marked else ''}" for line in lines]

    def has(self, *names: str) -> list[str]:
        """Return which of these packages are installed."""
        installed = self.host.run(["pacman", "-Qq"], check=False).stdout.split()
        return [name for name in names if name in installed]

    def pacman(self, *arguments: str) -> None:
        """Run pacman."""
        self.host.run(["pacman", "--noconfirm", *arguments])


def old(version: str = "1.0") -> str:
    """Return the path of a package of tool-a in the repository."""
    return f"{PLACE}/tool-a-{version}-1-any.pkg.tar.gz"


@pytest.fixture(scope="module")
def arch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.Host]:
    """Give a host with pacman and one repository, whose lists it has. The cache has an older version of tool-a."""
    with or_skip():
        repository = PacmanRepository(tmp_path_factory.mktemp("pacman") / "packages")
        for version in ("1.0", "2.0"):
            program = (f"#!/bin/sh\necho {version}\n", 0o755)
            files = {"/usr/bin/tool-a": program, CONF: (f"version = {version}\n", 0o644)}
            repository.add("tool-a", version, files=files, backup=[CONF])
        repository.add("tool-b", "1.0", depend="tool-a")
        repository.add("extra", "1.0")
        for name, other in (("mail-a", "mail-b"), ("mail-b", "mail-a")):
            repository.add(name, "1.0", conflict=other, provides="mail")
        repository.add("needs-mail", "1.0", depend="mail")
        second = PacmanRepository(repository.directory.with_name("second"), "second")
        second.add("strange", "1.0")
        host = arch_host()
    try:
        second.copy(host, "/srv/second")
        repository.copy(host)
        host.write("/etc/pacman.conf", CONFIGURATION + repository.section())
        host.run(["pacman", "-Sy", "--noconfirm"])
        host.run(["cp", old(), "/var/cache/pacman/pkg/"])
        yield host
    finally:
        host.stop()


@pytest.fixture
def site(arch: lab.Host, tmp_path: Path) -> Iterator[PacmanSite]:
    """Give a project for the host, and check that the host has no packages before and after the test."""
    site = PacmanSite(arch, tmp_path)
    assert site.packages() == []
    yield site
    after = site.packages()
    if after:
        arch.run(["pacman", "-Rddn", "--noconfirm", *(line.split()[0] for line in after)])
    arch.run(["sh", "-c", f"rm -rf /var/lib/statecfg {CONF}*"])
    assert after == []


def test_a_package_comes_and_goes_with_what_only_it_needs(site: PacmanSite) -> None:
    playbook = site.write("tool.yml", "package: tool-b")
    planned = site.report("plan", playbook)["package:tool-b"]
    assert planned["actions"][0]["args"]["packages"][0]["others"] == {"tool-a": "2.0-1"}
    applied = site.report("apply", playbook, "--yes")["package:tool-b"]
    assert applied["changes"] == planned["changes"]
    assert site.packages() == ["tool-a 2.0-1 automatic", "tool-b 1.0-1"]
    assert site.report("apply", playbook, "--yes")["package:tool-b"]["outcome"] == "unchanged"
    site.host.write(CONF, "changed here\n")
    site("destroy", playbook, "--yes")
    assert site.host.run(["sh", "-c", f"ls {CONF}* || true"]).stdout == ""


def test_later_packages_are_planned_after_earlier_ones(site: PacmanSite) -> None:
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


def test_versions_are_chosen_and_restored(site: PacmanSite) -> None:
    site.pacman("-U", old())
    before = site.packages()
    playbook = site.write("newer.yml", 'package: tool-a, version: "2.0-1"')
    planned = site.report("plan", playbook)["package:tool-a"]
    assert [(change["before"], change["after"]) for change in planned["changes"]] == [("1.0-1", "2.0-1")]
    assert site.report("apply", playbook, "--yes")["package:tool-a"]["changes"] == planned["changes"]
    wrong = site.write("wrong.yml", 'package: tool-a, version: "3.*"')
    assert "available: 1.0-1, 2.0-1" in site.report("plan", wrong, code=1)["package:tool-a"]["reason"]
    site("destroy", playbook, "--yes")
    assert site.packages() == before
    site.pacman("-Rn", "tool-a")


def test_mistakes_are_explained(site: PacmanSite) -> None:
    playbook = site.write("wrong.yml", "package: tool-aa", "package: mail", "package: tool-a, hold: true")
    found = site.report("plan", playbook, code=1)
    assert "pacman does not know a package tool-aa; did you mean" in found["package:tool-aa"]["reason"]
    assert "mail is a group or a virtual package, provided by mail-a" in found["package:mail"]["reason"]
    assert "hold is an option of apt, dnf and zypper, and this host has pacman" in found["package:tool-a"]["reason"]


def test_a_removal_that_takes_others_is_refused_and_is_undone(site: PacmanSite) -> None:
    """With `dependents`, the others go, too. The undo restores all, with the changed configuration file."""
    site.pacman("-S", "tool-b")
    site.host.write(CONF, "changed here\n")
    before = site.packages()
    refused = site.write("gone.yml", "package: tool-a, absent: true")
    assert "other packages depend on tool-a: tool-b" in site.report("plan", refused, code=1)["package:tool-a"]["reason"]
    playbook = site.write("gone.yml", "package: tool-a, absent: true, dependents: true")
    site("apply", playbook, "--yes")
    assert site.packages() == []
    assert site.host.read(f"{CONF}.pacsave") == "changed here\n"
    site("destroy", playbook, "--yes")
    assert site.packages() == before
    assert site.host.read(CONF) == "changed here\n"
    assert site.host.run(["sh", "-c", f"ls {CONF}*"]).stdout == f"{CONF}\n"
    site.pacman("-Rcsn", "tool-b")


def test_a_conflicting_package_is_replaced_and_comes_back(site: PacmanSite) -> None:
    """Something needs one of two packages that exclude each other. Nothing else is removed, there and back."""
    site.pacman("-S", "mail-a", "needs-mail")
    before = site.packages()
    refused = site.write("mail.yml", "package: mail-b")
    assert "would have to remove mail-a" in site.report("plan", refused, code=1)["package:mail-b"]["reason"]
    playbook = site.write("mail.yml", "package: mail-b, replaces: [mail-a]")
    planned = site.report("plan", playbook)["package:mail-b"]
    applied = site.report("apply", playbook, "--yes")["package:mail-b"]
    assert applied["changes"] == planned["changes"]
    assert site.has("mail-a", "mail-b", "needs-mail") == ["mail-b", "needs-mail"]
    site("destroy", playbook, "--yes")
    assert site.packages() == before
    site.pacman("-R", "needs-mail", "mail-a")


def test_packages_that_exclude_each_other_are_found_before_anything_changes(site: PacmanSite) -> None:
    playbook = site.write("mail.yml", "package: mail-a", "package: mail-b")
    reason = site.report("plan", playbook, code=1)["package:mail-b"]["reason"]
    assert "mail-b can't be installed together with mail-a" in reason
    site("apply", playbook, "--yes", code=1)
    assert site.packages() == []


def test_all_packages_are_upgraded_and_downgraded_again(site: PacmanSite) -> None:
    site.pacman("-U", old())
    site.pacman("-S", "--asdeps", "extra")
    before = site.packages()
    playbook = site.write("all.yml", "package_upgrade: all, autoremove: true")
    planned = site.report("plan", playbook)["package_upgrade:all"]
    changes = [(change["object"], change["before"], change["after"]) for change in planned["changes"]]
    assert changes == [("package extra", "1.0-1", None), ("package tool-a", "1.0-1", "2.0-1")]
    applied = site.report("apply", playbook, "--yes")["package_upgrade:all"]
    assert applied["changes"] == planned["changes"]
    assert site.report("apply", playbook, "--yes")["package_upgrade:all"]["outcome"] == "unchanged"
    site("destroy", playbook, "--yes")
    assert [line.split()[:2] for line in site.packages()] == [line.split()[:2] for line in before]
    site.pacman("-Rn", "tool-a", "extra")


def test_missing_lists_are_fetched_before_the_installation(site: PacmanSite) -> None:
    site.host.run(["sh", "-c", "rm -f /var/lib/pacman/sync/*"])
    refused = site.write("tool.yml", "package: extra")
    assert "update_cache: 86400 fetches them" in site.report("plan", refused, code=1)["package:extra"]["reason"]
    playbook = site.write("tool.yml", "package: extra, update_cache: 3600")
    site("apply", playbook, "--yes")
    assert site.has("extra") == ["extra"]
    site("destroy", playbook, "--yes")


def test_facts_and_conditions_know_the_packages_of_pacman(site: PacmanSite) -> None:
    site.pacman("-U", old())
    present = "file: /var/tmp/fact, content: \"{{ host.facts.packages['tool-a'] }}\""
    condition = 'file: /var/tmp/condition, content: "yes", when_host: {package: tool-a, version: "< 2"}'
    other = 'file: /var/tmp/other, content: "yes", when_host: {package: tool-a, version: ">= 2"}'
    playbook = site.write("facts.yml", present, condition, other)
    site("apply", playbook, "--yes")
    assert site.host.read("/var/tmp/fact") == "1.0-1"
    assert site.host.read("/var/tmp/condition") == "yes"
    assert not site.host.path("/var/tmp/other").exists()
    site("destroy", playbook, "--yes")
    site.pacman("-Rn", "tool-a")


def settings(host: lab.Host) -> str:
    """Return the files that configure pacman, and the names of its lists."""
    show = "cat /etc/pacman.conf; grep -r . /etc/pacman.d; ls /var/lib/pacman/sync"
    return host.run(["sh", "-c", f"{show}; true"]).stdout


def test_a_repository_is_fetched_and_used_and_removed(site: PacmanSite) -> None:
    before = settings(site.host)
    text = 'pacman_repository: second, servers: ["file:///srv/second"], sig_level: [Optional, TrustAll]'
    playbook = site.write("second.yml", text, "package: strange")
    planned = site.report("plan", playbook)["pacman_repository:second"]
    assert [action["op"] for action in planned["actions"]] == ["write", "include", "fetch_lists"]
    applied = site.report("apply", playbook, "--yes")
    assert {node["outcome"] for node in applied.values()} == {"changed"}
    assert site.has("strange") == ["strange"]
    assert {node["outcome"] for node in site.report("apply", playbook, "--yes").values()} == {"unchanged"}
    site.host.run(["rm", "/var/lib/pacman/sync/second.db"])
    again = site.report("plan", playbook)["pacman_repository:second"]
    assert [action["op"] for action in again["actions"]] == ["fetch_lists"]
    site("destroy", playbook, "--yes")
    assert settings(site.host) == before


def test_a_repository_that_does_not_answer_fails(site: PacmanSite) -> None:
    before = settings(site.host)
    playbook = site.write("gone.yml", 'pacman_repository: second, servers: ["file:///srv/nothing"]')
    failed = site.report("apply", playbook, "--yes", code=1)["pacman_repository:second"]
    assert failed["reason"].startswith("fetch_lists:")
    site("destroy", playbook, "--yes")
    assert settings(site.host) == before


def test_plans_of_repositories_come_true(site: PacmanSite) -> None:
    before = settings(site.host)
    check_rows(site.host, PACMAN_LISTS, [("pacman_repository", "pacman_repository")])
    assert settings(site.host) == before


def test_plans_of_packages_come_true(site: PacmanSite) -> None:
    rows = [("package", "package (pacman)"), ("package_upgrade", "package_upgrade (pacman)")]
    check_rows(site.host, PACMAN_PACKAGES, rows)
