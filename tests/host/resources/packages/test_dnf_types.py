"""Repositories, modules and groups of dnf on a real host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import lab
from tests.host.resources.packages.signed_rpms import copy_keys, require_programs, sign
from tests.host.resources.packages.test_dnf import DnfSite
from tests.host.resources.truth_packages import DNF_PACKAGES, dnf_lists
from tests.host.resources.truth_runs import check_rows
from tests.lab.fixtures import or_skip
from tests.lab.rpm import RpmRepository, rpm_host

COMPS = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE comps PUBLIC "-//Red Hat, Inc.//DTD Comps info//EN" "comps.dtd">
<comps><group><id>tools</id><name>All Tools</name><default>false</default><uservisible>true</uservisible><packagelist>
<packagereq type="mandatory">tool-a</packagereq><packagereq type="optional">extra</packagereq>
</packagelist></group></comps>
"""
MODULE = """---
document: modulemd
version: 2
data:
  name: shop
  stream: "%(stream)s"
  version: 1
  context: 00000000
  arch: noarch
  summary: A shop
  description: A shop.
  license: {module: [MIT]}
  profiles: {server: {rpms: [shop]}, tools: {rpms: [shop-tools]}}
  artifacts: {rpms: ["shop-0:%(version)s-1.noarch", "shop-tools-0:%(version)s-1.noarch"]}
...
"""
BEFORE = "fedora-release 40-1 unknown"


@pytest.fixture(scope="module")
def fedora(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.Host]:
    """Give a host with a repository that has a group and a module, and a signed repository that dnf does not use."""
    require_programs()
    directory = tmp_path_factory.mktemp("rpm")
    with or_skip():
        first, second = RpmRepository(directory / "first"), RpmRepository(directory / "second")
        first.add("tool-a", "1.0")
        first.add("extra", "1.0")
        for version in ("1.0", "2.0"):
            first.add("shop", version)
            first.add("shop-tools", version, requires="extra")
            first.add("worker", version)
        second.add("strange", "1.0")
        host = rpm_host("fedora", first)
    try:
        (directory / "comps.xml").write_text(COMPS)
        streams = [MODULE % {"stream": version[0], "version": version} for version in ("1.0", "2.0")]
        (first.directory / "modules.yaml").write_text("".join(streams))
        first.index(directory / "comps.xml")
        first.copy(host)
        sign(second, directory / "gpg")
        second.copy(host, "/srv/second")
        host.write("/etc/yum.repos.d/tests.repo", "[tests]\nname=tests\nbaseurl=file:///srv/rpm\ngpgcheck=0\n")
        host.run(["dnf", "-q", "makecache"])
        yield host
    finally:
        host.stop()


@pytest.fixture
def site(fedora: lab.Host, tmp_path: Path) -> Iterator[DnfSite]:
    """Give a project for the host, and check that it has the same packages and settings before and after the test."""
    site = DnfSite(fedora, tmp_path)
    copy_keys(fedora, "/srv/second", tmp_path)
    before = (site.packages(), settings(fedora))
    assert before[0] == [BEFORE]
    yield site
    after = (site.packages(), settings(fedora))
    fedora.run(["sh", "-c", "rm -rf /var/lib/statecfg /etc/yum.repos.d/second.repo"])
    assert after == before


def settings(host: lab.Host) -> str:
    """Return the files of dnf, the keys that rpm accepts, and the groups."""
    show = "cd /etc; grep -r . yum.repos.d pki/rpm-gpg; rpm -qa gpg-pubkey"
    show += "; grep -hE '^(name|stream|state)=.' $(grep -lE '^state=.' dnf/modules.d/*) /dev/null"
    return host.run(["sh", "-c", f"{show}; dnf -q --disablerepo='*' group list --installed; true"]).stdout


SECOND = 'dnf_repository: second, baseurl: ["file:///srv/second"], key_source: %s'


@pytest.mark.parametrize("key", ["key.asc", "key.gpg"])
def test_a_signed_repository_is_fetched_and_used_and_removed(site: DnfSite, key: str) -> None:
    playbook = site.write("second.yml", SECOND % key, "package: strange")
    planned = site.report("plan", playbook)["dnf_repository:second"]
    ops = [action["op"] for action in planned["actions"]]
    assert [op for op in ops if op != "make_directory"] == ["write", "import_key", "write", "fetch_lists"]
    applied = site.report("apply", playbook, "--yes")
    assert {node["outcome"] for node in applied.values()} == {"changed"}
    assert site.has("strange") == ["strange"]
    assert site.host.run(["rpm", "-q", "gpg-pubkey"]).stdout.startswith("gpg-pubkey-")
    assert {node["outcome"] for node in site.report("apply", playbook, "--yes").values()} == {"unchanged"}
    site.host.run(["sh", "-c", "rm -r /var/cache/dnf/second-*; rpm -e gpg-pubkey"])
    again = site.report("plan", playbook)["dnf_repository:second"]
    assert [action["op"] for action in again["actions"]] == ["import_key", "fetch_lists"]
    site("destroy", playbook, "--yes")
    site.host.run(["rm", "-rf", "/etc/pki/rpm-gpg"])


def test_a_key_that_another_repository_uses_stays(site: DnfSite) -> None:
    """The other one has the same key as a binary file."""
    third = SECOND.replace("second,", "third,") % "key.gpg" + ', requires: ["dnf_repository:second"]'
    both = site.write("both.yml", SECOND % "key.asc", third)
    site("apply", both, "--yes")
    site.write("both.yml", third.split(", requires")[0])
    left = " ".join(site("prune", both, "--yes").out.split())
    assert "because another repository may use it: /etc/yum.repos.d/third.repo" in left
    assert site.host.run(["rpm", "-q", "gpg-pubkey"]).stdout.startswith("gpg-pubkey-")
    assert not site.host.path("/etc/yum.repos.d/second.repo").exists()
    site("destroy", both, "--yes")
    site.host.run(["sh", "-c", "rpm -e gpg-pubkey; rm -rf /etc/pki/rpm-gpg"])


def test_a_package_without_a_valid_signature_is_refused(site: DnfSite) -> None:
    """The package of the other repository has no signature."""
    text = 'dnf_repository: second, baseurl: ["file:///srv/rpm"], key_source: key.asc, settings: {excludepkgs: extra}'
    playbook = site.write("second.yml", text, "package: tool-a")
    site.host.run(["sh", "-c", "mv /etc/yum.repos.d/tests.repo /srv/tests.repo"])
    try:
        failed = site.report("apply", playbook, "--yes", code=1)["package:tool-a"]
        assert failed["outcome"] == "failed"
        assert "install:" in failed["reason"]
        assert site.packages() == [BEFORE]
        site("destroy", playbook, "--yes")
    finally:
        site.host.run(["sh", "-c", "mv /srv/tests.repo /etc/yum.repos.d/tests.repo; rm -rf /etc/pki/rpm-gpg"])


def test_a_repository_that_does_not_answer_fails(site: DnfSite) -> None:
    playbook = site.write("gone.yml", 'dnf_repository: second, baseurl: ["file:///srv/nothing"]')
    failed = site.report("apply", playbook, "--yes", code=1)["dnf_repository:second"]
    assert failed["reason"].startswith("fetch_lists:")
    site("destroy", playbook, "--yes")


def test_a_repository_that_dnf_would_ignore(site: DnfSite) -> None:
    """dnf uses the file that it reads first. Values that it does not accept are taken back."""
    other = "/etc/yum.repos.d/other.repo"
    site.host.write(other, "[other]\nname=o\nbaseurl=file:///srv/o\n\n[second]\nname=x\nbaseurl=file:///srv/rpm\n")
    repository = 'dnf_repository: second, baseurl: ["file:///srv/second"], gpgcheck: false'
    playbook = site.write("second.yml", repository)
    refused = site.report("plan", playbook, code=1)["dnf_repository:second"]["reason"]
    assert f"{other}:5 defines the repository second, too, with another value of baseurl, enabled, gpgcheck" in refused
    site.host.run(["mv", other, "/etc/yum.repos.d/zz.repo"])
    site("apply", playbook, "--yes")
    assert "file:///srv/second" in site.host.run(["dnf", "-C", "repoinfo", "--all", "second"]).stdout
    site.host.run(["rm", "/etc/yum.repos.d/zz.repo"])
    before = site.host.read("/etc/yum.repos.d/second.repo")
    wrong = site.write("second.yml", repository + ", settings: {sslverify: maybe}")
    failed = site.report("apply", wrong, "--yes", code=1)["dnf_repository:second"]["reason"]
    assert "dnf refuses the new configuration, and the former one is restored" in failed
    assert "sslverify=maybe" in failed
    assert site.host.read("/etc/yum.repos.d/second.repo") == before
    site("destroy", playbook, "--yes")


def test_a_disabled_repository_serves_the_packages_that_name_it(site: DnfSite) -> None:
    disabled = SECOND % "key.asc" + ", enabled: false, fetch: true"
    playbook = site.write("second.yml", disabled, "package: strange, enable_repositories: [second]")
    site("apply", playbook, "--yes")
    assert site.has("strange") == ["strange"]
    site("destroy", playbook, "--yes")
    site.host.run(["rm", "-rf", "/etc/pki/rpm-gpg"])


def test_a_stream_decides_which_version_is_installed(site: DnfSite) -> None:
    playbook = site.write("shop.yml", 'dnf_module: shop, stream: "1"', "package: shop")
    site("apply", playbook, "--yes")
    assert "shop 1.0-1 user" in site.packages()
    assert {node["outcome"] for node in site.report("apply", playbook, "--yes").values()} == {"unchanged"}
    other = site.write("shop.yml", 'dnf_module: shop, stream: "2"', 'package: shop, version: "2.*"')
    site("apply", other, "--yes")
    assert "shop 2.0-1 user" in site.packages()
    wrong = site.write("wrong.yml", 'dnf_module: nothing, stream: "2"')
    assert site.report("apply", wrong, "--yes", code=1)["dnf_module:nothing"]["reason"].startswith("choose:")
    site("destroy", other, "--yes")


def test_a_former_stream_is_restored(site: DnfSite) -> None:
    site.dnf("module", "enable", "shop:1")
    before = settings(site.host)
    playbook = site.write("shop.yml", "dnf_module: shop, disabled: true")
    planned = site.report("plan", playbook)["dnf_module:shop"]
    assert planned["changes"] == site.report("apply", playbook, "--yes")["dnf_module:shop"]["changes"]
    assert "state=disabled" in site.host.read("/etc/dnf/modules.d/shop.module")
    site("destroy", playbook, "--yes")
    assert settings(site.host) == before
    reset = site.write("shop.yml", "dnf_module: shop, absent: true")
    site("apply", reset, "--yes")
    assert "state=enabled" not in site.host.read("/etc/dnf/modules.d/shop.module")
    site("destroy", reset, "--yes")
    assert settings(site.host) == before
    site.dnf("module", "reset", "shop")


def test_a_profile_comes_and_goes(site: DnfSite) -> None:
    playbook = site.write("shop.yml", 'dnf_module: shop, stream: "1", profiles: [tools]')
    planned = site.report("plan", playbook)["dnf_module:shop"]
    assert [action["op"] for action in planned["actions"]] == ["choose", "change_profiles"]
    assert planned["actions"][1]["args"]["steps"] == {"extra": "1.0-1", "shop-tools": "1.0-1"}
    applied = site.report("apply", playbook, "--yes")["dnf_module:shop"]
    assert applied["changes"] == planned["changes"]
    assert site.has("extra", "shop", "shop-tools") == ["extra", "shop-tools"]
    assert site.report("apply", playbook, "--yes")["dnf_module:shop"]["outcome"] == "unchanged"
    other = site.write("shop.yml", 'dnf_module: shop, stream: "2", profiles: [server]')
    planned = site.report("plan", other)["dnf_module:shop"]
    assert planned["actions"][1]["args"]["steps"] == {"shop": "2.0-1"}
    assert site.report("apply", other, "--yes")["dnf_module:shop"]["changes"] == planned["changes"]
    assert site.has("shop") == ["shop"]
    wrong = site.write("wrong.yml", 'dnf_module: shop, stream: "2", profiles: [sever]')
    assert "dnf can't do this: " in site.report("plan", wrong, code=1)["dnf_module:shop"]["reason"]
    site("destroy", other, "--yes")
    assert site.has("shop") == []
    site.dnf("remove", "shop-tools", "extra")


def test_a_removed_profile_is_installed_again(site: DnfSite) -> None:
    site.dnf("module", "install", "shop:1/server", "shop:1/tools")
    before = (site.packages(), settings(site.host))
    refused = site.write("gone.yml", "dnf_module: shop, profiles: [server], absent: true", "package: shop")
    assert "package:shop installs" in site.report("plan", refused, code=1)["dnf_module:shop"]["reason"]
    playbook = site.write("gone.yml", "dnf_module: shop, profiles: [server], absent: true")
    planned = site.report("plan", playbook)["dnf_module:shop"]
    assert planned["actions"][0]["args"]["steps"] == {"shop": None}
    assert site.report("apply", playbook, "--yes")["dnf_module:shop"]["changes"] == planned["changes"]
    assert site.has("extra", "shop", "shop-tools") == ["extra", "shop-tools"]
    assert site.report("apply", playbook, "--yes")["dnf_module:shop"]["outcome"] == "unchanged"
    site("destroy", playbook, "--yes")
    assert (site.packages(), settings(site.host)) == before
    site.dnf("module", "remove", "shop:1")
    site.dnf("module", "reset", "shop")
    site.dnf("remove", "extra")


def test_a_group_comes_and_goes(site: DnfSite) -> None:
    playbook = site.write("tools.yml", "dnf_group: All Tools, optional: true")
    planned = site.report("plan", playbook)["dnf_group:All Tools"]
    assert planned["actions"][0]["args"]["steps"] == {"extra": "1.0-1", "tool-a": "1.0-1"}
    applied = site.report("apply", playbook, "--yes")["dnf_group:All Tools"]
    assert applied["changes"] == planned["changes"]
    assert site.has("extra", "tool-a") == ["extra", "tool-a"]
    assert site.report("apply", playbook, "--yes")["dnf_group:All Tools"]["outcome"] == "unchanged"
    refused = site.write("gone.yml", "dnf_group: tools, absent: true", "package: tool-a")
    assert "package:tool-a installs" in site.report("plan", refused, code=1)["dnf_group:tools"]["reason"]
    site("destroy", playbook, "--yes")
    wrong = site.write("wrong.yml", "dnf_group: tolls")
    assert "the groups are: tools" in site.report("plan", wrong, code=1)["dnf_group:tolls"]["reason"]


def test_a_removed_group_is_installed_again(site: DnfSite) -> None:
    site.dnf("group", "install", "tools")
    before = site.packages()
    playbook = site.write("gone.yml", "dnf_group: tools, absent: true")
    site("apply", playbook, "--yes")
    assert site.has("tool-a") == []
    site("destroy", playbook, "--yes")
    assert site.packages() == before
    site.dnf("group", "remove", "tools")


def test_plans_of_repositories_and_modules_come_true(site: DnfSite) -> None:
    rows = [("dnf_repository", "dnf_repository"), ("dnf_module", "dnf_module")]
    check_rows(site.host, dnf_lists(site.directory / "files/key.asc"), rows)


def test_plans_of_packages_come_true(site: DnfSite) -> None:
    rows = [("package", "package (dnf)"), ("package_upgrade", "package_upgrade (dnf)"), ("dnf_group", "dnf_group")]
    check_rows(site.host, DNF_PACKAGES, rows)
