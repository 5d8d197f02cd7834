"""Work in git checkouts on a light host: a plan names what an update or a removal would lose, and does not lose it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.resources.files.test_git_checkout import GIT, Repository, checkout
from tests.host.resources.text.test_text_edits import Site, nodes
from tests.lab import Host


@pytest.fixture
def site(light_host: Host, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    found = Site(light_host, tmp_path, f"/srv/{request.node.name}")
    light_host.run(["mkdir", "-p", found.place])
    light_host.run(["git", "config", "--system", "protocol.file.allow", "always"])  # for submodules
    yield found
    found.clean()


@pytest.fixture
def repository(site: Site) -> Repository:
    return Repository(site.host, f"{site.place}/repository")


def add(repository: Repository, name: str, text: str) -> str:
    """Commit a file."""
    repository.host.write(f"{repository.path}/{name}", text)
    repository.git("add", "--force", name)
    repository.git("commit", "--quiet", "-m", name)
    return repository.git("rev-parse", "HEAD")


def git(site: Site, *words: str, where: str = "shop") -> str:
    return site.host.run([*GIT, "-C", f"{site.place}/{where}", *words]).stdout.strip()


def reason(site: Site, resources: str = "") -> str:
    """Return the reason why the plan of the checkout fails."""
    found: str = nodes(site.report("plan", resources, code=1))[f"git_checkout:{site.place}/shop"]["reason"]
    return found


@pytest.mark.parametrize("ignored", [False, True], ids=["untracked", "ignored"])
def test_files_in_the_way_are_named_in_the_plan(site: Site, repository: Repository, ignored: bool) -> None:
    repository.commit("one")
    if ignored:
        add(repository, ".gitignore", "settings.ini\ndata\nlogs\n")
    node = checkout(site, f"file://{repository.path}", "version: main")
    site.say("apply", node)
    site.write("shop/settings.ini", "mine\n")
    site.host.run(["mkdir", f"{site.place}/shop/data"])
    site.write("shop/data/x", "mine\n")
    site.write("shop/data/y", "mine\n")
    site.write("shop/logs", "mine\n")
    site.write("shop/free", "mine\n")
    for name in ("settings.ini", "data/x", "logs/today"):
        site.host.run(["mkdir", "-p", f"{repository.path}/data", f"{repository.path}/logs"])
        add(repository, name, "theirs\n")
    text = reason(site)
    assert "files that the new commit would overwrite (" in text and "free" not in text and "data/y" not in text
    for name in ("settings.ini", "data/x", "logs"):
        assert name in text
    site.say("apply", code=1)
    assert site.read("shop/settings.ini") == site.read("shop/data/x") == site.read("shop/logs") == "mine\n"
    site.come_true(checkout(site, f"file://{repository.path}", "version: main", "discard_changes: true"))
    assert site.read("shop/settings.ini") == site.read("shop/data/x") == site.read("shop/logs/today") == "theirs\n"
    assert site.read("shop/data/y") == site.read("shop/free") == "mine\n"


def test_an_update_keeps_commits_that_only_head_has(site: Site, repository: Repository) -> None:
    repository.commit("one")
    site.say("apply", checkout(site, repository.path, "version: main"))
    site.write("shop/mine", "mine\n")
    git(site, "add", "mine")
    git(site, "commit", "--quiet", "-m", "mine")
    own = git(site, "rev-parse", "HEAD")
    repository.commit("two")
    assert "work that exists nowhere else (1 commit of HEAD (" in reason(site)
    git(site, "branch", "kept")
    site.come_true(checkout(site, repository.path, "version: main"))
    assert site.read("shop/f") == "two\n" and git(site, "rev-parse", "kept") == own


@pytest.mark.parametrize("kind", ["commit", "branch", "tag", "stash", "worktree", "ignored", "overlooked"])
def test_a_removal_keeps_work_that_exists_nowhere_else(site: Site, repository: Repository, kind: str) -> None:
    repository.commit("one")
    repository.git("tag", "v1")
    site.host.run(["rm", "-rf", f"{site.place}/other"])
    site.say("apply", checkout(site, f"file://{repository.path}", "version: main"))
    site.write("shop/f", "mine\n")
    if kind == "ignored":
        site.write("shop/.git/info/exclude", "secret\n")
        site.write("shop/secret", "mine\n")
        git(site, "checkout", "f")
    elif kind == "stash":
        git(site, "stash")
    elif kind == "overlooked":
        git(site, "update-index", "--skip-worktree", "f")
    else:
        git(site, "commit", "--quiet", "-a", "-m", "mine")
    if kind in ("branch", "tag"):
        git(site, kind, "mine")
        git(site, "checkout", "--quiet", "--detach", "HEAD~")
    if kind == "worktree":
        git(site, "worktree", "add", "--quiet", "--detach", f"{site.place}/other")
        git(site, "checkout", "--quiet", "--detach", "HEAD~")
    named = {"commit": "1 commit of HEAD", "stash": "1 stash", "worktree": f"the worktree {site.place}/other"}
    named |= {"branch": "1 commit of mine", "tag": "1 commit of tags/mine", "ignored": "new files (secret)"}
    named["overlooked"] = "new files (f)"
    removed = site.say("destroy")
    assert named[kind] in removed.out and "it stays" in removed.out, removed.out
    assert site.exists("shop/.git")
    gone = f"  - git_checkout: {site.place}/shop\n    absent: true\n"
    assert named[kind] in reason(site, gone)
    site.say("apply", gone, code=1)
    assert site.exists("shop/.git")
    site.come_true(gone + "    discard_changes: true\n")
    assert not site.exists("shop")


def test_what_came_from_the_repository_is_no_work(site: Site, repository: Repository) -> None:
    """Tags outside the branches, a branch that is rewritten, deleted or renamed, and short histories can go."""
    repository.commit("one")
    repository.git("checkout", "--quiet", "-b", "side")
    repository.commit("aside")
    repository.git("tag", "-a", "-m", "aside", "v1")
    repository.git("checkout", "--quiet", "main")
    repository.git("branch", "-D", "side")
    url = f"file://{repository.path}"
    for more in (["version: v1"], ["version: v1", "depth: 1"], ["version: main", "depth: 1"], ["version: main"]):
        site.come_true(checkout(site, url, *more))
        assert "it stays" not in site.say("destroy").out
        assert not site.exists("shop"), more
    site.say("apply", checkout(site, url, "version: main"))
    repository.git("commit", "--quiet", "--amend", "-m", "rewritten")
    site.come_true(checkout(site, url, "version: main"))
    repository.git("branch", "-m", "main", "trunk")
    repository.git("commit", "--quiet", "--amend", "-m", "again")
    site.come_true(checkout(site, url, "version: trunk"))
    assert "it stays" not in site.say("destroy").out and not site.exists("shop")


def with_submodule(site: Site, repository: Repository) -> Repository:
    """Give a repository a submodule, which has one itself."""
    inner = Repository(site.host, f"{site.place}/inner")
    inner.commit("inner")
    middle = Repository(site.host, f"{site.place}/middle")
    middle.commit("middle")
    middle.git("submodule", "--quiet", "add", inner.path, "inner")
    middle.git("commit", "--quiet", "-m", "inner")
    repository.commit("one")
    repository.git("submodule", "--quiet", "add", middle.path, "middle")
    repository.git("commit", "--quiet", "-m", "middle")
    return middle


def test_submodules_are_part_of_the_state(site: Site, repository: Repository) -> None:
    middle = with_submodule(site, repository)
    url = f"file://{repository.path}"
    site.come_true(checkout(site, url, "version: main"))
    assert not site.exists("shop/middle/f")
    site.come_true(checkout(site, url, "version: main", "submodules: true"))
    assert site.read("shop/middle/f") == "middle\n" and site.read("shop/middle/inner/f") == "inner\n"
    git(site, "submodule", "--quiet", "deinit", "--force", "inner", where="shop/middle")
    site.come_true(checkout(site, url, "version: main", "submodules: true"))
    assert site.read("shop/middle/inner/f") == "inner\n"
    middle.commit("newer")
    repository.git("-C", "middle", "pull", "--quiet", "origin", "main")
    repository.git("commit", "--quiet", "-a", "-m", "newer")
    site.come_true(checkout(site, url, "version: main", "submodules: true"))
    assert site.read("shop/middle/f") == "newer\n"
    git(site, "checkout", "--quiet", "HEAD~", where="shop/middle")
    site.come_true(checkout(site, url, "version: main", "submodules: true"))
    assert site.read("shop/middle/f") == "newer\n"
    assert "it stays" not in site.say("destroy").out and not site.exists("shop")


def test_a_submodule_that_could_not_be_cloned_is_cloned_later(site: Site, repository: Repository) -> None:
    middle = with_submodule(site, repository)
    site.host.run(["mv", middle.path, middle.path + "-away"])
    node = checkout(site, repository.path, "version: main", "submodules: true", "update: false")
    assert site.say("apply", node, code=None).code == 1
    assert site.say("apply", code=None).code == 1
    site.host.run(["mv", middle.path + "-away", middle.path])
    assert nodes(site.report("plan"))[f"git_checkout:{site.place}/shop"]["outcome"] == "changed"
    site.come_true(node)
    assert site.read("shop/middle/inner/f") == "inner\n"


def test_work_in_submodules_is_kept(site: Site, repository: Repository) -> None:
    with_submodule(site, repository)
    node = checkout(site, repository.path, "version: main", "submodules: true")
    site.say("apply", node)
    site.write("shop/middle/inner/new", "mine\n")
    assert "middle/inner/new" in site.say("destroy").out
    site.say("apply", node)
    git(site, "add", "new", where="shop/middle/inner")
    git(site, "commit", "--quiet", "-m", "mine", where="shop/middle/inner")
    assert "1 commit of HEAD" in reason(site)
    site.say("apply", code=1)
    assert site.read("shop/middle/inner/new") == "mine\n"
    gone = f"  - git_checkout: {site.place}/shop\n    absent: true\n"
    assert "1 commit of HEAD" in reason(site, gone)
    site.say("apply", code=1)
    assert site.read("shop/middle/inner/new") == "mine\n"


def test_a_plan_writes_nothing_into_the_checkout(site: Site, repository: Repository) -> None:
    repository.commit("one")
    site.say("apply", checkout(site, f"file://{repository.path}", "version: main"))
    site.write("shop/new", "mine\n")
    site.host.run(["touch", f"{site.place}/shop/f"])  # the index is out of date, so git would like to write it
    repository.commit("two")
    look = ["find", f"{site.place}/shop", "-printf", "%p %i %s %T@ %C@\n"]
    before = site.host.run(look).stdout
    site.host.write(f"{site.place}/shop/.git/index.lock", "")
    before = site.host.run(look).stdout
    assert nodes(site.report("plan"))[f"git_checkout:{site.place}/shop"]["outcome"] == "changed"
    site.say("verify", code=None)
    assert site.host.run(look).stdout == before
    site.host.run(["rm", f"{site.place}/shop/.git/index.lock"])


def test_the_whole_history_replaces_a_short_one(site: Site, repository: Repository) -> None:
    first = repository.commit("one")
    repository.commit("two")
    url = f"file://{repository.path}"
    site.come_true(checkout(site, url, "version: main", "depth: 1"))
    site.come_true(checkout(site, url, f"version: {first}"))
    assert site.read("shop/f") == "one\n"
