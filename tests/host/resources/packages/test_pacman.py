"""Packages on a real host with pacman: transactions, versions from its cache, removals, what stays, and the undo."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import lab
from tests.host.resources.packages.package_cases import CONF, ManagerSite, PackageCases
from tests.host.resources.truth_packages import PACMAN_LISTS, PACMAN_PACKAGES
from tests.host.resources.truth_runs import check_rows
from tests.lab.arch import CONFIGURATION, PLACE, PacmanRepository, arch_host
from tests.lab.fixtures import or_skip


class PacmanSite(ManagerSite):
    """A host with pacman and a project for it."""

    first = []
    dependency = " automatic"
    saved = ".pacsave"
    conflict = "would have to remove mail-a"

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

    def install(self, *names: str) -> None:
        """Install packages by hand."""
        self.pacman("-S", *names)

    def install_old(self) -> None:
        """Install tool-a 1.0 by hand."""
        self.pacman("-U", old())

    def remove(self, *names: str) -> None:
        """Remove packages by hand, with what was installed for them."""
        self.pacman("-Rsn", *names)

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


class TestPackages(PackageCases):
    """Packages of pacman."""


def test_plan_says_why_pacman_cannot_install_a_package(site: PacmanSite) -> None:
    playbook = site.write("wrong.yml", "package: tool-aa", "package: mail", "package: tool-a, hold: true")
    found = site.report("plan", playbook, code=1)
    assert "pacman does not know a package tool-aa; did you mean" in found["package:tool-aa"]["reason"]
    assert "mail is a group or a virtual package, provided by mail-a" in found["package:mail"]["reason"]
    assert "hold is an option of apt, dnf and zypper, and this host has pacman" in found["package:tool-a"]["reason"]


def test_the_plan_of_a_version_in_the_cache_names_only_packages(site: PacmanSite) -> None:
    playbook = site.write(
        "old.yml", 'package: tool-b, requires: ["package:tool-a"]', 'package: tool-a, version: "1.0-1"'
    )
    planned = site.report("plan", playbook)["package:tool-a"]
    assert planned["actions"][0]["args"]["packages"] == [{"name": "tool-a", "version": "1.0-1", "others": {}}]
    assert [change["object"] for change in planned["changes"]] == ["package tool-a"]


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
    assert failed["reason"].startswith("fetch_lists:") and "/etc/pacman.conf leaves it out" in failed["reason"]
    site.host.run(["pacman", "-S", "--noconfirm", "extra"])
    site.host.run(["pacman", "-R", "--noconfirm", "extra"])
    assert site.report("apply", playbook, "--yes", code=1)["pacman_repository:second"]["reason"] == failed["reason"]
    site("destroy", playbook, "--yes")
    assert settings(site.host) == before


def test_a_repository_with_which_pacman_does_not_work(site: PacmanSite) -> None:
    """pacman does nothing if two files define a repository, or if it does not know a value."""
    before = settings(site.host)
    site.host.run(["sh", "-c", "echo 'Include = /etc/pacman.d/own*' >> /etc/pacman.conf"])
    other = "/etc/pacman.d/own.conf"
    site.host.write(other, "# mine\n[second]\nServer = file:///srv/second\n")
    text = 'pacman_repository: second, servers: ["file:///srv/second"], fetch: false'
    playbook = site.write("second.yml", text)
    refused = site.report("plan", playbook, code=1)["pacman_repository:second"]["reason"]
    assert f"{other}:2 defines the repository second, too; pacman then refuses to work" in refused
    site.host.write(other, "[tests2]\nServer = file:///srv/rpm\n")
    broken = text.replace("servers: [", "mirrorlist: /etc/pacman.d/mirrors, ").replace('"file:///srv/second"], ', "")
    site.host.write("/etc/pacman.d/mirrors", "Server = file:///srv/second\nSigLevel = Someone\n")
    failed = site.report("apply", site.write("second.yml", broken), "--yes", code=1)["pacman_repository:second"]
    assert "pacman refuses the new configuration, and the former one is restored" in failed["reason"]
    assert "invalid value for 'SigLevel'" in failed["reason"]
    site.host.run(["pacman", "-T"])
    site("destroy", playbook, "--yes")
    site.host.run(["sh", "-c", f"rm {other} /etc/pacman.d/mirrors; sed -i '/own/d' /etc/pacman.conf"])
    assert settings(site.host) == before


def test_plans_of_repositories_come_true(site: PacmanSite) -> None:
    before = settings(site.host)
    check_rows(site.host, PACMAN_LISTS, [("pacman_repository", "pacman_repository")])
    assert settings(site.host) == before


def test_plans_of_packages_come_true(site: PacmanSite) -> None:
    rows = [("package", "package (pacman)"), ("package_upgrade", "package_upgrade (pacman)")]
    check_rows(site.host, PACMAN_PACKAGES, rows)
