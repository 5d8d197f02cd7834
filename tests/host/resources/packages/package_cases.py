"""Tests of packages that are the same with dnf, zypper and pacman.

The file of a package manager inherits them, and has the fixture `site`. Its repository has tool-a 1.0 and 2.0; tool-b,
which needs tool-a; mail-a and mail-b, which exclude each other; needs-mail, which needs one of the two; and extra. With
rpm, wants-extra recommends extra.
"""

from __future__ import annotations

from typing import ClassVar

from tests.host.resources.packages.test_packages_together import Site

CONF = "/etc/tool-a.conf"  # the configuration file of tool-a


class ManagerSite(Site):
    """A host with another package manager than apt, and a project for it."""

    first: ClassVar[list[str]]  # the packages of the host before and after each test
    dependency: ClassVar[str]  # what `packages` adds to a package that was installed for another one
    wanted: ClassVar[str] = ""  # what `packages` adds to other packages
    saved: ClassVar[str]  # the ending of a changed configuration file that a removal keeps
    conflict: ClassVar[str] = "mail-a"  # a part of the reason why mail-b can't be installed beside mail-a

    def install(self, *names: str) -> None:
        """Install packages by hand."""
        raise NotImplementedError

    def install_old(self) -> None:
        """Install tool-a 1.0 by hand."""
        raise NotImplementedError

    def remove(self, *names: str) -> None:
        """Remove packages by hand, with what was installed for them."""
        raise NotImplementedError

    def configurations(self) -> list[str]:
        """Return the paths of the configuration file of tool-a and of its copies."""
        return self.host.run(["sh", "-c", f"ls {CONF}* || true"]).stdout.split()


class PackageCases:
    """The tests for all of these package managers."""

    def test_a_package_comes_and_goes_with_what_only_it_needs(self, site: ManagerSite) -> None:
        playbook = site.write("tool.yml", "package: tool-b")
        planned = site.report("plan", playbook)["package:tool-b"]
        assert planned["actions"][0]["args"]["packages"][0]["others"] == {"tool-a": "2.0-1"}
        applied = site.report("apply", playbook, "--yes")["package:tool-b"]
        assert applied["changes"] == planned["changes"]
        assert site.packages() == [*site.first, f"tool-a 2.0-1{site.dependency}", f"tool-b 1.0-1{site.wanted}"]
        assert site.report("apply", playbook, "--yes")["package:tool-b"]["outcome"] == "unchanged"
        site.host.write(CONF, "changed here\n")
        site("destroy", playbook, "--yes")
        assert site.configurations() == []

    def test_later_packages_are_planned_after_earlier_ones(self, site: ManagerSite) -> None:
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

    def test_versions_are_chosen_and_restored(self, site: ManagerSite) -> None:
        site.install_old()
        before = site.packages()
        playbook = site.write("newer.yml", 'package: tool-a, version: "2.0-1"')
        planned = site.report("plan", playbook)["package:tool-a"]
        assert [(change["before"], change["after"]) for change in planned["changes"]] == [("1.0-1", "2.0-1")]
        assert site.report("apply", playbook, "--yes")["package:tool-a"]["changes"] == planned["changes"]
        wrong = site.write("wrong.yml", 'package: tool-a, version: "3.*"')
        assert "available: 1.0-1, 2.0-1" in site.report("plan", wrong, code=1)["package:tool-a"]["reason"]
        site("destroy", playbook, "--yes")
        assert site.packages() == before
        site.remove("tool-a")

    def test_a_removal_that_takes_others_is_refused_and_is_undone(self, site: ManagerSite) -> None:
        """With `dependents`, the others go, too. The undo restores all, with the changed configuration file."""
        site.install("tool-b")
        site.host.write(CONF, "changed here\n")
        before = site.packages()
        refused = site.write("gone.yml", "package: tool-a, absent: true")
        assert (
            "other packages depend on tool-a: tool-b"
            in site.report("plan", refused, code=1)["package:tool-a"]["reason"]
        )
        both = site.write("gone.yml", "package: tool-a, absent: true, dependents: true", "package: tool-b")
        assert "package:tool-b installs" in site.report("plan", both, code=1)["package:tool-a"]["reason"]
        playbook = site.write("gone.yml", "package: tool-a, absent: true, dependents: true")
        site("apply", playbook, "--yes")
        assert site.packages() == site.first
        assert site.host.read(f"{CONF}{site.saved}") == "changed here\n"
        site("destroy", playbook, "--yes")
        assert site.packages() == before
        assert site.host.read(CONF) == "changed here\n"
        assert site.configurations() == [CONF]
        site.remove("tool-b")

    def test_a_conflicting_package_is_replaced_and_comes_back(self, site: ManagerSite) -> None:
        """Something needs one of two packages that exclude each other. Nothing else is removed, there and back."""
        site.install("needs-mail", "mail-a")
        before = site.packages()
        refused = site.write("mail.yml", "package: mail-b")
        assert site.conflict in site.report("plan", refused, code=1)["package:mail-b"]["reason"]
        playbook = site.write("mail.yml", "package: mail-b, replaces: [mail-a]")
        planned = site.report("plan", playbook)["package:mail-b"]
        applied = site.report("apply", playbook, "--yes")["package:mail-b"]
        assert applied["changes"] == planned["changes"]
        assert site.has("mail-a", "mail-b", "needs-mail") == ["mail-b", "needs-mail"]
        site("destroy", playbook, "--yes")
        assert site.packages() == before
        site.remove("needs-mail", "mail-a")

    def test_packages_that_exclude_each_other_are_found_before_anything_changes(self, site: ManagerSite) -> None:
        playbook = site.write("mail.yml", "package: mail-a", "package: mail-b")
        reason = site.report("plan", playbook, code=1)["package:mail-b"]["reason"]
        assert "mail-b can't be installed together with mail-a" in reason
        site("apply", playbook, "--yes", code=1)
        assert site.packages() == site.first

    def test_facts_and_conditions_know_the_packages(self, site: ManagerSite) -> None:
        site.install_old()
        present = "file: /var/tmp/fact, content: \"{{ host.facts.packages['tool-a'] }}\""
        condition = 'file: /var/tmp/condition, content: "yes", when_host: {package: tool-a, version: "< 2"}'
        other = 'file: /var/tmp/other, content: "yes", when_host: {package: tool-a, version: ">= 2"}'
        playbook = site.write("facts.yml", present, condition, other)
        site("apply", playbook, "--yes")
        assert site.host.read("/var/tmp/fact") == "1.0-1"
        assert site.host.read("/var/tmp/condition") == "yes"
        assert not site.host.path("/var/tmp/other").exists()
        site("destroy", playbook, "--yes")
        site.remove("tool-a")


class RpmPackageCases(PackageCases):
    """The tests for dnf and zypper."""

    def test_a_purge_takes_changed_configuration_too(self, site: ManagerSite) -> None:
        site.install("tool-a")
        site.host.write(CONF, "changed here\n")
        playbook = site.write("gone.yml", "package: tool-a, absent: true, purge: true")
        site("apply", playbook, "--yes")
        assert site.configurations() == []
        site("destroy", playbook, "--yes")
        assert site.host.read(CONF) == "changed here\n"
        site.remove("tool-a")

    def test_recommended_packages_are_left_out(self, site: ManagerSite) -> None:
        without = site.write("extra.yml", "package: wants-extra, recommends: false")
        site("apply", without, "--yes")
        assert site.has("extra", "wants-extra") == ["wants-extra"]
        site("destroy", without, "--yes")
        with_them = site.write("extra.yml", "package: wants-extra, recommends: true")
        site("apply", with_them, "--yes")
        assert site.has("extra", "wants-extra") == ["extra", "wants-extra"]
        site("destroy", with_them, "--yes")

    def test_a_dependency_that_others_need_by_then_stays(self, site: ManagerSite) -> None:
        playbook = site.write("tool.yml", "package: tool-a")
        site("apply", playbook, "--yes")
        site.install("tool-b")
        left = site.report("destroy", playbook, "--yes")["package:tool-a"]
        assert "tool-a stays: tool-b needs it" in str(left)
        assert site.packages() == [*site.first, f"tool-a 2.0-1{site.dependency}", f"tool-b 1.0-1{site.wanted}"]
        site.remove("tool-b")
