"""Packages on a real host with rpm and dnf: transactions, versions, locks, removals, what stays, and the undo."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import lab
from tests.host.resources.packages.package_cases import CONF, ManagerSite, RpmPackageCases
from tests.lab.fixtures import or_skip
from tests.lab.rpm import RpmRepository, rpm_host

NOBODY = "fedora-release 40-1 unknown"  # rpm installed it, and not dnf


class DnfSite(ManagerSite):
    """A host with dnf and a project for it."""

    first = [NOBODY]
    dependency, wanted = " dependency", " user"
    saved = ".rpmsave"

    def packages(self) -> list[str]:
        """Return the host's packages, each with its version, with why dnf installed it, and whether it is locked."""
        show = ["dnf", "-q", "--disablerepo=*", "repoquery", "--installed", "--qf", "%{name} %{evr} %{reason}"]
        locks = self.host.read("/etc/dnf/plugins/versionlock.list")
        lines = sorted(line for line in self.host.run(show).stdout.splitlines() if line)
        return [f"{line}{' locked' if f'{line.split()[0]}-0:' in locks else ''}" for line in lines]

    def has(self, *names: str) -> list[str]:
        """Return which of these packages are installed."""
        installed = self.host.run(["rpm", "-qa", "--qf", "%{NAME}\\n"]).stdout.split()
        return [name for name in names if name in installed]

    def install(self, *names: str) -> None:
        """Install packages by hand."""
        self.dnf("install", *names)

    def install_old(self) -> None:
        """Install tool-a 1.0 by hand."""
        self.dnf("install", "tool-a-1.0")

    def remove(self, *names: str) -> None:
        """Remove packages by hand, with what was installed for them."""
        self.dnf("remove", *names)

    def dnf(self, *arguments: str) -> str:
        """Run dnf."""
        return self.host.run(["dnf", "-y", *arguments]).stdout


def small_packages(directory: Path) -> RpmRepository:
    """Build small packages that need, replace and exclude each other."""
    repository = RpmRepository(directory)
    for version in ("1.0", "2.0"):
        files = {"/usr/bin/tool-a": (f"#!/bin/sh\necho {version}\n", 0o755), CONF: (f"version = {version}\n", 0o644)}
        repository.add("tool-a", version, files=files, config=[CONF])
        repository.add("kernel-devel", version)
    repository.add("tool-b", "1.0", requires="tool-a")
    repository.add("extra", "1.0")
    repository.add("wants-extra", "1.0", recommends="extra")
    for name, other in (("mail-a", "mail-b"), ("mail-b", "mail-a")):
        repository.add(name, "1.0", conflicts=other, provides="mail")
    repository.add("needs-mail", "1.0", requires="mail")
    repository.add("Capital_name", "1.0", scripts={"post": "echo installed > /var/tmp/capital"})
    return repository


@pytest.fixture(scope="module")
def fedora(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.Host]:
    """Give a host with dnf and one repository, whose lists it has."""
    with or_skip():
        repository = small_packages(tmp_path_factory.mktemp("rpm") / "packages")
        host = rpm_host("fedora", repository)
    try:
        repository.index()
        repository.copy(host)
        host.write("/etc/yum.repos.d/tests.repo", "[tests]\nname=tests\nbaseurl=file:///srv/rpm\ngpgcheck=0\n")
        host.run(["dnf", "-q", "makecache"])
        yield host
    finally:
        host.stop()


@pytest.fixture
def site(fedora: lab.Host, tmp_path: Path) -> Iterator[DnfSite]:
    """Give a project for the host, and check that the host has the same packages before and after the test."""
    site = DnfSite(fedora, tmp_path)
    assert site.packages() == [NOBODY]
    yield site
    after = site.packages()
    others = [line.split()[0] for line in after if line != NOBODY]
    if others:
        fedora.run(["rpm", "--erase", "--nodeps", *others], check=False)
    fedora.run(["sh", "-c", f"rm -rf /var/lib/statecfg /var/tmp/capital {CONF}*"])
    fedora.write("/etc/dnf/plugins/versionlock.list", "")
    assert after == [NOBODY]


class TestPackages(RpmPackageCases):
    """Packages of dnf."""


def test_several_packages_are_one_transaction(site: DnfSite) -> None:
    playbook = site.write("several.yml", "package: tool-b", "package: Capital_name", 'package: tool-a, version: "1.*"')
    site("apply", playbook, "--yes")
    assert site.has("tool-a", "tool-b", "Capital_name") == ["tool-a", "tool-b", "Capital_name"]
    assert site.host.run(["tool-a"]).stdout == "1.0\n"
    assert site.host.read("/var/tmp/capital") == "installed\n"
    last = site.dnf("history", "info", "last")
    assert all(f"Install {name}-" in last for name in ("tool-a", "tool-b", "Capital_name"))
    site("destroy", playbook, "--yes")


def test_plan_says_why_dnf_cannot_install_a_package(site: DnfSite) -> None:
    playbook = site.write("wrong.yml", "package: tool-aa", "package: mail", "package: tool-a, default_release: stable")
    found = site.report("plan", playbook, code=1)
    assert (
        "dnf does not know a package tool-aa; did you mean `tool-a` or `tool-b`?" in found["package:tool-aa"]["reason"]
    )
    assert "mail is a virtual package, provided by mail-a" in found["package:mail"]["reason"]
    text = "default_release is an option of apt, and this host has dnf"
    assert text in found["package:tool-a"]["reason"]


def test_a_locked_package_is_released_and_locked_again(site: DnfSite) -> None:
    site.dnf("install", "tool-a-1.0")
    site.dnf("versionlock", "add", "tool-a")
    before = site.packages()
    assert before[-1].endswith(" locked")
    refused = site.write("tool.yml", 'package: tool-a, version: "2.*"')
    assert "tool-a is on hold" in site.report("plan", refused, code=1)["package:tool-a"]["reason"]
    playbook = site.write("tool.yml", 'package: tool-a, version: "2.*", hold: true')
    report = site.report("apply", playbook, "--yes")["package:tool-a"]
    assert [action["op"] for action in report["actions"]] == ["install", "hold"]
    assert site.packages()[-1] == "tool-a 2.0-1 user locked"
    assert site.report("plan", playbook)["package:tool-a"]["outcome"] == "unchanged"
    site("destroy", playbook, "--yes")
    assert site.packages() == before
    site.dnf("versionlock", "delete", "tool-a")
    site.dnf("remove", "tool-a")


def test_all_packages_are_upgraded_and_downgraded_again(site: DnfSite) -> None:
    site.dnf("install", "tool-a-1.0", "extra")
    before = site.packages()
    playbook = site.write("all.yml", "package_upgrade: all")
    planned = site.report("plan", playbook)["package_upgrade:all"]
    assert [(change["object"], change["before"], change["after"]) for change in planned["changes"]] == [
        ("package tool-a", "1.0-1", "2.0-1")
    ]
    kept = site.write("kept.yml", "package_upgrade: all", 'package: tool-a, version: "1.0-1"')
    assert site.report("plan", kept)["package_upgrade:all"]["outcome"] == "unchanged"
    applied = site.report("apply", playbook, "--yes")["package_upgrade:all"]
    assert applied["changes"] == planned["changes"]
    assert site.report("apply", playbook, "--yes")["package_upgrade:all"]["outcome"] == "unchanged"
    site("destroy", playbook, "--yes")
    assert site.packages() == before
    site.dnf("remove", "tool-a", "extra")


def test_old_lists_are_fetched_before_the_installation(site: DnfSite) -> None:
    site.host.run(["sh", "-c", "rm -rf /var/cache/dnf/*"])
    refused = site.write("tool.yml", "package: extra")
    assert "update_cache: 86400 fetches them" in site.report("plan", refused, code=1)["package:extra"]["reason"]
    playbook = site.write("tool.yml", "package: extra, update_cache: 3600")
    site("apply", playbook, "--yes")
    assert site.has("extra") == ["extra"]
    site("destroy", playbook, "--yes")


def test_versions_that_are_installed_together(site: DnfSite) -> None:
    """dnf keeps several versions of what belongs to a kernel."""
    site.host.write("/etc/dnf/dnf.conf", "[main]\ninstallonlypkgs=kernel-devel\n")
    site.dnf("install", "kernel-devel-2.0")
    playbook = site.write("old.yml", 'package: kernel-devel, version: "1.0-1"')
    site("apply", playbook, "--yes")
    assert site.has("kernel-devel") and site.host.run(["rpm", "-q", "kernel-devel"]).stdout.count("\n") == 2
    newer = site.write("newer.yml", 'package: kernel-devel, version: "2.0-1"')
    for each in (playbook, newer):
        assert site.report("plan", each)["package:kernel-devel"]["outcome"] == "unchanged"
    assert "kernel-devel 1.0-1 stays beside version 2.0-1" in site("destroy", playbook, "--yes").out
    site.host.run(["rpm", "--erase", "--allmatches", "kernel-devel"])
    site.host.run(["rm", "/etc/dnf/dnf.conf"])


def test_the_plan_says_what_hides_a_package(site: DnfSite) -> None:
    site.host.write("/etc/dnf/dnf.conf", "[main]\nexcludepkgs=ext*\n")
    site.host.write(
        "/etc/yum.repos.d/spare.repo", "[spare]\nname=spare\nbaseurl=file:///srv/rpm\nenabled=0\ngpgcheck=0\n"
    )
    try:
        for more in ("", ', version: "1.0-1"'):
            hidden = site.write("hidden.yml", f"package: extra{more}")
            reason = site.report("plan", hidden, code=1)["package:extra"]["reason"]
            assert "its excludepkgs, or those of a repository, hide extra" in reason
        site.host.run(["rm", "/etc/dnf/dnf.conf"])
        disabled = site.write("disabled.yml", "package: extra, enable_repositories: [spare]")
        reason = site.report("plan", disabled, code=1)["package:extra"]["reason"]
        assert "dnf lacks lists" in reason and "fetch: true those of a disabled dnf_repository" in reason
    finally:
        site.host.run(["rm", "-f", "/etc/dnf/dnf.conf", "/etc/yum.repos.d/spare.repo"])
