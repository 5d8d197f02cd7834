"""Gems of Ruby from a source that the test makes: they come true and are undone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.resources.packages import gem_source
from tests.host.resources.text.test_text_edits import Site, nodes
from tests.lab import Host

SOURCE = "/srv/gem-source"
WHERE = f"source: {gem_source.url(SOURCE)}"


@pytest.fixture(scope="module")
def source(light_host: Host) -> None:
    gems = (("tool", "1.0.0"), ("tool", "2.0.0"), ("tool-extra", "1.0.0"), ("helper", "1.0.0"))
    gem_source.on_host(light_host, SOURCE, *gems, needs="helper")


@pytest.fixture
def site(light_host: Host, source: None, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    found = Site(light_host, tmp_path, f"/srv/{request.node.name[:40]}")
    found.write("README", "")
    yield found
    found.clean()


def gem(site: Site, name: str, *more: str) -> str:
    lines = [f"directory: {site.place}/gems", *more]
    return f"  - gem: {name}\n" + "".join(f"    {line}\n" for line in lines)


def output(site: Site, program: str) -> str:
    """Return what an installed program prints."""
    argv = ["env", f"GEM_HOME={site.place}/gems", f"{site.place}/gems/bin/{program}"]
    return site.host.run(argv).stdout


def test_a_gem_is_installed_upgraded_and_removed(site: Site) -> None:
    site.come_true(gem(site, "tool", "version: 1.0.0", WHERE))
    assert output(site, "tool") == "1.0.0\n" and site.exists("gems/gems/helper-1.0.0")
    (planned,) = site.come_true(gem(site, "tool", "version: 2.0.0", "only_version: true", WHERE)).values()
    assert [action["op"] for action in planned["actions"]] == ["install", "uninstall"]
    assert planned["actions"][1]["args"]["versions"] == ["1.0.0"]
    assert output(site, "tool") == "2.0.0\n" and not site.exists("gems/gems/tool-1.0.0")
    site.say("destroy")
    assert not site.exists("gems/gems/tool-2.0.0") and not site.exists("gems/bin/tool")
    assert site.exists("gems/gems/helper-1.0.0")


def test_former_versions_come_back_and_other_gems_stay(site: Site) -> None:
    place = ["--install-dir", f"{site.place}/gems", "--clear-sources", "--source", gem_source.url(SOURCE)]
    for name, version in (("tool", "1.0.0"), ("tool-extra", "1.0.0")):
        site.host.run(["gem", "install", "--silent", "--no-document", name, "--version", version, *place])
    both = gem(site, "tool", "version: 2.0.0", "only_version: true", WHERE) + gem(site, "helper", WHERE)
    planned = site.come_true(both)
    assert [node["outcome"] for node in planned.values()].count("unchanged") == 1
    site.say("destroy")
    assert output(site, "tool") == "1.0.0\n" and not site.exists("gems/gems/tool-2.0.0")
    site.come_true(gem(site, "tool", "absent: true"))
    assert not site.exists("gems/bin/tool") and output(site, "tool-extra") == "1.0.0\n"


def test_versions_that_others_installed_stay(site: Site) -> None:
    site.come_true(gem(site, "tool", "version: 1.0.0", WHERE))
    place = ["--install-dir", f"{site.place}/gems", "--clear-sources", "--source", gem_source.url(SOURCE)]
    site.host.run(["gem", "install", "--silent", "--no-document", "tool", "--version", "2.0.0", *place])
    site.say("destroy")
    assert output(site, "tool") == "2.0.0\n" and not site.exists("gems/gems/tool-1.0.0")


def test_a_gem_that_others_need_is_not_removed(site: Site) -> None:
    site.come_true(gem(site, "helper", WHERE))
    site.come_true(gem(site, "helper", WHERE) + gem(site, "tool", "version: 1.0.0", WHERE))
    (node,) = nodes(site.report("apply", gem(site, "helper", "absent: true"), code=1)).values()
    assert "dependent gem" in str(node) and site.exists("gems/gems/helper-1.0.0")


def test_gems_of_a_user_and_of_all_users(site: Site) -> None:
    site.host.run(["useradd", "--create-home", "rubyist"])
    own = "  - gem: tool\n    user: rubyist\n    user_install: true\n    " + WHERE + "\n"
    everyone = "  - gem: helper\n    " + WHERE + "\n"
    site.come_true(own + everyone)
    (installed,) = site.host.path("/home/rubyist/.local/share/gem/ruby").glob("*/gems/tool-2.0.0")
    assert installed.stat().st_uid == site.host.path("/home/rubyist").stat().st_uid
    assert site.host.run(["helper"]).stdout == "1.0.0\n"
    site.say("destroy")
    assert not installed.exists() and not site.host.path("/usr/local/bin/helper").exists()


def test_an_unknown_version_fails_with_the_words_of_gem(site: Site) -> None:
    (node,) = nodes(site.report("apply", gem(site, "tool", "version: 9.0.0", WHERE), code=1)).values()
    assert "9.0.0" in str(node)
    assert not site.exists("gems/gems/tool-9.0.0")
