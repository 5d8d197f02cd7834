"""Directories of other users: root never runs what they put there, and refuses places that several users can change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from statecfg.remote.machine.trial import VIEW
from tests.host.resources import races
from tests.host.resources.files.test_git_checkout import Repository, checkout
from tests.host.resources.text.test_text_edits import Site, nodes
from tests.lab import Host, add_user


@pytest.fixture
def site(light_host: Host, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    found = Site(light_host, tmp_path, f"/srv/{request.node.name}")
    light_host.run(["mkdir", "-p", found.place])
    yield found
    found.clean()


def test_users_who_exchange_their_directories_get_nothing_from_root(light_host: Host) -> None:
    races.prepared(light_host)
    found = races.race(light_host, 70, seed=1)
    assert found["ran"], "no program of a user ran, not even as this user"


@pytest.fixture
def home(site: Site) -> str:
    """Return the home of a user. There is another one."""
    for user in ("ann", "ben"):
        if site.host.run(["id", user], check=False).returncode:
            add_user(site.host, user)
    return "/home/ann"


def test_git_runs_as_the_owner_of_the_place(site: Site, home: str) -> None:
    repository = Repository(site.host, f"{site.place}/repository")
    repository.commit("one")
    site.host.run(["chown", "-R", "ann:", repository.path])
    site.host.run(["ln", "-sfn", home, f"{site.place}/home"])
    node = checkout(site, repository.path).replace(f"{site.place}/shop", f"{site.place}/home/shop")
    (planned,) = site.come_true(node).values()
    assert planned["actions"][0]["args"]["user"] == "ann"
    assert site.host.run(["stat", "-c", "%U", f"{home}/shop/.git/config"]).stdout == "ann\n"


def test_places_that_several_users_can_change_are_refused(site: Site, home: str) -> None:
    repository = Repository(site.host, f"{site.place}/repository")
    repository.commit("one")

    def reason(path: str, *more: str) -> str:
        node = checkout(site, repository.path, *more).replace(f"{site.place}/shop", path)
        report = site.report("plan", node, code=1)
        (failed,) = nodes(report).values()
        found: str = failed["reason"]
        return found

    site.host.run(["install", "-d", "-o", "ben", f"{home}/ben", "-m", "755"])
    assert f"ann can change {home}, and root must not run git" in reason(f"{home}/ben/shop")
    assert f"ann can change {home}, and ben must not run git" in reason(f"{home}/ben/shop", "user: ben")
    assert f"ann can change {home}, and root must not run git" in reason(f"{home}/shop", "user: root")
    site.host.run(["install", "-d", f"{site.place}/open", "-m", "777"])
    assert "every user can change" in reason(f"{site.place}/open/shop")
    site.host.run(["groupadd", "-f", "team"])
    for user in ("ann", "ben"):
        site.host.run(["usermod", "-aG", "team", user])
    site.host.run(["install", "-d", "-g", "team", f"{site.place}/team", "-m", "2775"])
    assert "the group team can change" in reason(f"{site.place}/team/shop")
    site.host.run(["git", "clone", "--quiet", repository.path, f"{home}/old"])
    assert f"{home}/old belongs to root, but ann can change {home}" in reason(f"{home}/old")
    site.host.run(["git", "clone", "--quiet", repository.path, f"{site.place}/parts"])
    site.host.run(["chown", "ann:", f"{site.place}/parts/.git/config"])
    assert f"{site.place}/parts belongs to root, but ann can change" in reason(f"{site.place}/parts")


def test_a_validator_reads_a_file_that_no_other_user_can_exchange(site: Site, home: str) -> None:
    validator = f"{site.place}/validator"
    site.host.write(
        validator, f'#!/bin/sh\nstat -c "%U %a" "$(dirname "$1")" > {site.place}/seen\ngrep -q good "$1"\n', 0o755
    )
    node = f"  - file: {home}/settings\n    content: good\n    owner: ann\n    validate: [{validator}, '{{}}']\n"
    site.come_true(node)
    assert site.read("seen") == "root 700\n"
    failed = site.report("apply", node.replace("good", "bad"), code=1)
    assert f"{validator} rejects the new content" in str(failed)
    assert site.host.read(f"{home}/settings") == "good"


@pytest.mark.parametrize("place", ["/home/ann", "/tmp"])
def test_a_validator_reads_nothing_that_others_put_next_to_the_content(site: Site, home: str, place: str) -> None:
    """Many programs obey settings in the directory of what they read, and in those above. Plans are no exception."""
    validator = "/usr/local/bin/teller"
    site.host.write(
        validator, '#!/bin/sh\necho "in $(dirname "$1"), $(stat -c %U "$(dirname "$1")"): no"\nexit 1\n', 0o755
    )
    node = f"  - file: {place}/settings\n    content: good\n    owner: ann\n    validate: [{validator}, '{{}}']\n"
    (planned,) = nodes(site.report("plan", node, code=1)).values()
    assert "in /etc/.statecfg-trial-" in planned["reason"]
    assert ", root: no" in planned["reason"]
    assert not list(site.host.path("/etc").glob(".statecfg-trial*"))


@pytest.mark.parametrize("kind", ["file", "directory", "symlink", ""])
def test_a_plan_follows_no_link_that_a_user_has_just_made(site: Site, home: str, kind: str) -> None:
    """The directory was one when the plan looked. The link leads to a directory that the view shares with the host."""
    site.host.run(["sh", "-c", "rm -rf /run/real; mkdir -p /run/real/lib; touch /run/real/lib/kept"])
    site.host.run(["ln", "-sfn", "/run/real", f"{home}/cache"])
    paths = [[f"{home}/cache/lib", kind, 0o777, [1, 1], "aGk="]]
    order = {"argv": ["true"], "paths": paths, "started": "started", "memory": 1 << 20}
    before = site.host.run(["stat", "-c", "%A %U", "/run/real/lib"]).stdout
    done = site.host.run(["python3", "-I", "-S", "-c", VIEW], stdin=json.dumps(order), check=False)
    assert "Not a directory" in done.stderr
    assert site.host.run(["stat", "-c", "%A %U", "/run/real/lib"]).stdout == before
    assert site.host.path("/run/real/lib/kept").exists()
    site.host.run(["sh", "-c", f"rm -rf /run/real {home}/cache"])
