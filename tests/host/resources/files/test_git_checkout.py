"""Git checkouts on a light host, from repositories that the test makes: they come true, move on and are undone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.resources.text.test_text_edits import Site, nodes
from tests.lab import Host, add_user

GIT = ["git", "-c", "user.name=tests", "-c", "user.email=tests@example.org", "-c", "init.defaultBranch=main"]
NEW = """
cd "$1" && echo "$2" > f && git add f && git -c user.name=a -c user.email=a@b commit -qm "$2" && git rev-parse HEAD
"""


class Repository:
    """A repository on the host."""

    def __init__(self, host: Host, path: str) -> None:
        self.host, self.path = host, path
        host.run([*GIT, "init", "--quiet", path])

    def commit(self, text: str) -> str:
        """Make a commit in which the file `f` has this text, and return its id."""
        return self.host.run(["sh", "-c", NEW, "sh", self.path, text]).stdout.strip()

    def git(self, *words: str) -> str:
        return self.host.run([*GIT, "-C", self.path, *words]).stdout.strip()


@pytest.fixture
def site(light_host: Host, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    found = Site(light_host, tmp_path, f"/srv/{request.node.name}")
    light_host.run(["mkdir", "-p", found.place])
    yield found
    found.clean()


@pytest.fixture
def repository(site: Site) -> Repository:
    return Repository(site.host, f"{site.place}/repository")


def checkout(site: Site, repository: str, *more: str) -> str:
    lines = [f"repository: {repository}", *more]
    return f"  - git_checkout: {site.place}/shop\n" + "".join(f"    {line}\n" for line in lines)


def test_a_checkout_follows_a_branch_comes_true_and_is_undone(site: Site, repository: Repository) -> None:
    one = repository.commit("one")
    name = f"git_checkout:{site.place}/shop"
    url = f"file://{repository.path}"
    planned = site.come_true(checkout(site, url, "version: main"))
    assert planned[name]["actions"][0]["args"]["commit"] == one
    assert site.read("shop/f") == "one\n"
    two = repository.commit("two")
    planned = site.come_true(checkout(site, url, "version: main"))
    assert planned[name]["actions"][0]["args"]["commit"] == two and site.read("shop/f") == "two\n"
    assert site.come_true(checkout(site, url, f"version: {one}"))[name]["outcome"] == "changed"
    assert site.read("shop/f") == "one\n"
    repository.git("tag", "-a", "-m", "second", "v2")
    site.write("shop/new", "mine\n")
    site.come_true(checkout(site, url, "version: v2"))
    assert site.read("shop/f") == "two\n" and site.read("shop/new") == "mine\n"
    assert "has changed or new files (new): it stays" in site.say("destroy").out
    site.host.run(["rm", f"{site.place}/shop/new"])
    site.say("apply", checkout(site, url))
    site.host.run(["rm", "-r", f"{site.place}/shop"])
    site.say("apply", checkout(site, url, "depth: 1"))
    assert site.host.run(["git", "-C", f"{site.place}/shop", "rev-list", "--count", "HEAD"]).stdout == "1\n"


def test_a_checkout_that_existed_gets_its_branch_back(site: Site, repository: Repository) -> None:
    repository.commit("one")
    site.host.run(["git", "clone", "--quiet", repository.path, f"{site.place}/shop"])
    repository.commit("two")
    other = Repository(site.host, f"{site.place}/other")
    other.commit("three")
    site.come_true(checkout(site, other.path, "version: main"))
    assert site.read("shop/f") == "three\n"
    site.say("destroy")
    assert site.read("shop/f") == "one\n"
    told = site.host.run(["git", "-C", f"{site.place}/shop", "status", "--branch", "--porcelain"]).stdout
    assert told.startswith("## main")
    origin = site.host.run(["git", "-C", f"{site.place}/shop", "config", "remote.origin.url"]).stdout
    assert origin.strip() == repository.path


def test_local_changes_stop_an_update(site: Site, repository: Repository) -> None:
    repository.commit("one")
    site.say("apply", checkout(site, repository.path))
    site.write("shop/f", "mine\n")
    failed = nodes(site.report("plan", code=1))[f"git_checkout:{site.place}/shop"]
    assert "has local changes (f); discard_changes: true discards them" in failed["reason"]
    site.come_true(checkout(site, repository.path, "discard_changes: true"))
    assert site.read("shop/f") == "one\n"


def test_a_user_owns_the_checkout_and_no_hook_runs(site: Site, repository: Repository) -> None:
    """root never runs what a user put into the checkout."""
    repository.commit("one")
    add_user(site.host, "deploy")
    site.host.run(["chown", "-R", "deploy:", repository.path])  # git reads no repository of another user
    site.come_true(checkout(site, repository.path, "user: deploy"))
    assert site.host.run(["stat", "-c", "%U", f"{site.place}/shop/f"]).stdout == "deploy\n"
    hook = f"{site.place}/shop/.git/hooks/post-checkout"
    site.host.write(hook, f"#!/bin/sh\nid -un > {site.place}/shop/ran\n", 0o755)
    site.host.run(["runuser", "-u", "deploy", "--", "sh", "-c", NEW, "sh", repository.path, "two"])
    site.come_true(checkout(site, repository.path))
    assert site.read("shop/f") == "two\n" and not site.exists("shop/ran")
    assert site.host.run(["stat", "-c", "%U", f"{site.place}/shop/f"]).stdout == "deploy\n"


def test_a_repository_over_ssh_needs_the_key_of_the_node(site: Site, repository: Repository) -> None:
    repository.commit("one")
    site.host.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{site.place}/key"])
    keys = site.host.path("/root/.ssh/authorized_keys")
    before = keys.read_text() if keys.exists() else ""
    site.host.write("/root/.ssh/authorized_keys", before + site.read("key.pub"), 0o600)
    key = site.host.read("/etc/ssh/ssh_host_ed25519_key.pub").split()
    site.host.write("/etc/ssh/ssh_known_hosts", f"127.0.0.1 {key[0]} {key[1]}\n")
    url = f"ssh://root@127.0.0.1{repository.path}"
    failed = nodes(site.report("plan", checkout(site, url), code=1))[f"git_checkout:{site.place}/shop"]
    assert f"git cannot read {url}: " in failed["reason"]
    site.come_true(checkout(site, url, f"ssh_key: {site.place}/key"))
    assert site.read("shop/f") == "one\n"
    site.host.write("/root/.ssh/authorized_keys", before, 0o600)


def test_a_commit_is_known_after_a_node_that_changes_first(site: Site, repository: Repository) -> None:
    one = repository.commit("one")
    before = f"  - file: {site.place}/config\n    content: a\n"
    node = before + checkout(site, repository.path, f'requires: ["file:{site.place}/config"]')
    name = f"git_checkout:{site.place}/shop"
    assert nodes(site.report("plan", node))[name]["known_after"] == f"file:{site.place}/config"
    applied = nodes(site.report("apply"))[name]
    assert applied["actions"][0]["args"]["commit"] == one
    wrong = checkout(site, repository.path, "version: none")
    assert "has no branch or tag none" in nodes(site.report("plan", wrong, code=1))[name]["reason"]
