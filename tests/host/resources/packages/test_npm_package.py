"""Global packages of npm from a registry that the test makes: they come true and are undone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.resources.packages import npm_registry
from tests.host.resources.text.test_text_edits import Site, nodes
from tests.lab import Host


@pytest.fixture(scope="module")
def registry(booted: Host) -> str:
    packages = (("tool", "1.0.0"), ("tool", "2.0.0"), ("helper", "1.0.0"))
    npm_registry.on_host(booted, "/srv/npm-registry", *packages)
    return npm_registry.URL


@pytest.fixture
def site(booted: Host, registry: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    found = Site(booted, tmp_path, f"/srv/{request.node.name[:40]}")
    found.write("README", "")
    yield found
    found.clean()


def package(site: Site, name: str, *more: str) -> str:
    lines = [f"prefix: {site.place}", *more]
    return f"  - npm_package: {name}\n" + "".join(f"    {line}\n" for line in lines)


def test_a_package_is_installed_upgraded_and_removed(site: Site, registry: str) -> None:
    where = f"registry: {registry}"
    site.come_true(package(site, "tool", "version: 1.0.0", where))
    assert site.host.run([f"{site.place}/bin/tool"]).stdout == "1.0.0\n"
    assert not site.exists("lib/node_modules/tool/script-ran")
    (planned,) = site.come_true(package(site, "tool", "version: 2.0.0", where)).values()
    assert planned["actions"][0]["args"]["was"] == "1.0.0"
    assert site.host.run([f"{site.place}/bin/tool"]).stdout == "2.0.0\n"
    site.say("destroy")
    assert not site.exists("lib/node_modules/tool") and not site.exists("bin/tool")


def test_an_older_package_comes_back(site: Site, registry: str) -> None:
    npm = ["npm", "install", "-g", "--prefix", site.place, "--registry", registry]
    site.host.run([*npm, "tool@1.0.0"])
    where = f"registry: {registry}"
    both = package(site, "tool", "version: 2.0.0", where) + package(site, "helper", where)
    site.come_true(both)
    site.say("destroy")
    assert site.host.run([f"{site.place}/bin/tool"]).stdout == "1.0.0\n" and not site.exists("bin/helper")
    site.come_true(package(site, "tool", "absent: true"))
    assert not site.exists("bin/tool")


def test_a_version_that_others_installed_stays(site: Site, registry: str) -> None:
    site.come_true(package(site, "tool", "version: 1.0.0", f"registry: {registry}"))
    site.host.run(["npm", "install", "-g", "--prefix", site.place, "--registry", registry, "tool@2.0.0"])
    assert "tool stays at 2.0.0: others installed it after this node" in site.say("destroy").out
    assert site.host.run([f"{site.place}/bin/tool"]).stdout == "2.0.0\n"
    site.host.run(["npm", "uninstall", "-g", "--prefix", site.place, "tool"])


def test_the_name_of_a_package_is_no_option(site: Site, registry: str) -> None:
    """npm would print its version and succeed, and install nothing."""
    (node,) = nodes(site.report("apply", package(site, "--version", f"registry: {registry}"), code=1)).values()
    assert "404" in str(node["actions"][0]["log"]) and "--version" in str(node["actions"][0]["log"])


def test_scripts_run_if_they_may_and_a_user_owns_the_files(site: Site, registry: str) -> None:
    site.host.run(["useradd", "--create-home", "nodes"])
    site.host.run(["chown", "nodes", site.place])
    site.come_true(package(site, "tool", "run_scripts: true", "user: nodes", f"registry: {registry}"))
    assert site.exists("lib/node_modules/tool/script-ran")
    assert site.host.run(["stat", "-c", "%U", f"{site.place}/lib/node_modules/tool/package.json"]).stdout == "nodes\n"


def test_an_unknown_version_fails_with_the_words_of_npm(site: Site, registry: str) -> None:
    missing = package(site, "tool", "version: 9.0.0", f"registry: {registry}")
    (node,) = nodes(site.report("apply", missing, code=1)).values()
    assert "9.0.0" in str(node)
    assert not site.exists("lib/node_modules/tool")


def test_a_failure_says_why(site: Site, registry: str) -> None:
    """npm ends its errors with the place of its log."""
    site.write("bin/tool", "mine")
    (failed,) = nodes(site.report("apply", package(site, "tool", f"registry: {registry}"), code=1)).values()
    assert failed["reason"] == "install: npm: EEXIST: file already exists"
    assert site.read("bin/tool") == "mine"
    (failed,) = nodes(site.report("apply", package(site, "unknown", f"registry: {registry}"), code=1)).values()
    assert failed["reason"].startswith("install: npm: 404 ") and "/unknown" in failed["reason"]
