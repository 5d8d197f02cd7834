"""Packages that one run plans and removes together on a real host: dependencies, conflicts, and what stays."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import lab
from tests.host.command import Ran, reach, statecfg

OWN = "/srv/own"  # packages in files, which no repository has
LEDGER = "/var/lib/statecfg/ledger.db"
# Changes the ledger's package memory to the form of 0.3.0: names without versions, and no added dependencies.
AS_0_3_0 = """
import hashlib, json, os, sqlite3
database = sqlite3.connect("/var/lib/statecfg/ledger.db")
assert database.execute("PRAGMA user_version").fetchone()[0] >= 2
for name, text in database.execute("SELECT name, memory FROM resource WHERE type = 'package'").fetchall():
    memory = json.loads(text)
    folder = "/var/lib/statecfg/before/"
    lines = open(folder + memory["context"]["$blob"][0]).read().split("\\n")
    content = "\\n".join(line.split(" ")[0] for line in lines if not line.endswith(" -")).encode()
    sha256 = hashlib.sha256(content).hexdigest()
    open(folder + sha256, "wb").write(content)
    old = {"entry": memory["entry"], "auto": memory["auto"], "context": {"$blob": [sha256, len(content)]}}
    database.execute("UPDATE resource SET memory = ? WHERE name = ?", (json.dumps(old), name))
database.commit()
"""
ADMIN = '#!/bin/sh\nset -e\nmkdir -p /var/tmp/data\nif [ "$1" = make ]; then touch "/var/tmp/data/$2"; fi\n'
ADMIN += 'if [ "$1" = drop ]; then rm "/var/tmp/data/$2"; fi\n'


class Site:
    """A host and a project for it, with methods that look at the host's packages."""

    def __init__(self, host: lab.Host, directory: Path) -> None:
        self.host, self.directory = host, directory
        self.options = reach(directory, [host])

    def write(self, name: str, *resources: str) -> Path:
        """Write a playbook with these resources; each resource is YAML in flow style."""
        lines = ["hosts: all", "resources:", *(f"  - {{{each}}}" for each in resources)]
        path = self.directory / name
        path.write_text("\n".join(lines) + "\n")
        return path

    def __call__(self, verb: str, playbook: Path, *more: str, code: int | None = 0) -> Ran:
        return statecfg(verb, playbook, *more, *self.options, cwd=self.directory, code=code)

    def report(self, verb: str, playbook: Path, *more: str, code: int | None = 0) -> dict[str, dict[str, Any]]:
        """Return the nodes of a run's report by name, including removals."""
        found = self(verb, playbook, *more, "--json", code=code).json()["hosts"][self.host.name]
        layers = [*found.get("removals", []), *found["layers"]]
        return {node["name"]: node for layer in layers for node in layer}

    def packages(self) -> list[str]:
        """Return the host's packages, each with its version, state and mark."""
        show = ["dpkg-query", "--show", "--showformat=${Package} ${Version} ${db:Status-Abbrev}\\n"]
        marks = self.host.run(["apt-mark", "showauto"]).stdout.split()
        lines = self.host.run(show).stdout.splitlines()
        return sorted(f"{line}{' automatic' if line.split()[0] in marks else ''}" for line in lines)

    def has(self, *names: str) -> list[str]:
        """Return which of these packages are installed."""
        installed = {line.split()[0] for line in self.packages() if " ii" in line}
        return [name for name in names if name in installed]


@pytest.fixture(scope="module")
def light(light_host: lab.Host, tmp_path_factory: pytest.TempPathFactory) -> lab.Host:
    """Give a light host and a repository like that of a database: server, core, client, and shared packages."""
    try:
        repository = lab.AptRepository(tmp_path_factory.mktemp("packages"))
        repository.add("db-common", "1.0")
        repository.add("db-common", "2.0")
        repository.add("db-core", "1.0", depends="db-common")
        repository.add("db-server", "1.0", depends="db-core", files={"/usr/bin/db-admin": (ADMIN, 0o755)})
        repository.add("db-server-next", "1.0", depends="db-common (>= 2.0)")
        repository.add("db-client", "1.0", depends="db-common")
        for version in ("1.0", "2.0"):
            repository.add("exact-lib", version)
            repository.add("exact-app", version, depends=f"exact-lib (= {version})")
        own = lab.AptRepository(repository.directory.with_name(f"{repository.directory.name}-own"))
        for version in ("1.0", "2.0"):
            own.add("own", version, depends="db-common (>= 2.0)")
        own.add("own-more", "1.0", depends="own")
        repository.add("db-rival", "1.0", conflicts="db-server")
        links = "#!/bin/sh\nln -sfn /etc/hosts /etc/linked.conf\n"
        repository.add("linker", "1.0", scripts={"postinst": links, "prerm": "#!/bin/sh\nrm -f /etc/linked.conf\n"})
    except (FileNotFoundError, lab.Unavailable) as reason:
        pytest.skip(f"not run on this machine: {reason}")
    repository.use(light_host)
    shutil.copytree(own.directory, light_host.path(OWN))
    return light_host


@pytest.fixture
def site(light: lab.Host, tmp_path: Path) -> Iterator[Site]:
    """Give a project for the host, and check that the host has the same packages before and after the test."""
    site = Site(light, tmp_path)
    before = site.packages()
    yield site
    names = ["db-common", "db-core", "db-server", "db-server-next", "db-client", "db-rival", "linker"]
    names += ["exact-app", "exact-lib"]
    light.run(
        [
            "sh",
            "-c",
            f"dpkg --purge own-more own; apt-get -qy purge {' '.join(names)}; rm -rf /var/lib/statecfg /var/tmp/data",
        ]
    )
    assert site.packages() == before


COMMANDS = (
    "command: shop, argv: [db-admin, make, shop], creates: /var/tmp/data/shop, undo: [db-admin, drop, shop], "
    'requires: ["package:db-server"]',
    'command: lonely, shell: "mkdir -p /var/tmp/data; touch /var/tmp/data/lonely", creates: /var/tmp/data/lonely, '
    "undo: [db-admin, drop, lonely]",
)


@pytest.mark.parametrize("written_by", ["now", "0.3.0"])
def test_destroy_removes_packages_last_and_their_dependencies_with_them(site: Site, written_by: str) -> None:
    """Commands are undone before the packages are removed. Afterwards the host has its former packages."""
    before = site.packages()
    playbook = site.write("db.yml", "package: db-client", "package: db-server", *COMMANDS)
    site("apply", playbook, "--yes")
    if written_by == "0.3.0":
        site.host.run(["python3", "-c", AS_0_3_0])
    found = site.report("destroy", playbook, "--yes")
    assert {node["outcome"] for node in found.values()} == {"changed"}
    names = list(found)
    assert max(map(names.index, ["command:shop", "command:lonely"])) < names.index("package:db-client")
    gone = {
        name: [change["object"] for change in node["changes"] if change["field"] == "version"]
        for name, node in found.items()
        if name.startswith("package:")
    }
    assert gone == {
        "package:db-client": ["package db-client"],
        "package:db-server": ["package db-common", "package db-core", "package db-server"],
    }
    assert site.packages() == before
    assert not site.host.path("/var/tmp/data/shop").exists()
    assert "Nothing to remove" in site("destroy", playbook, "--yes").out


def test_a_shared_dependency_stays_until_its_last_package_is_removed(site: Site) -> None:
    """The first removal leaves the dependency, and plan and report say so. The last removal takes it along."""
    before = site.packages()
    playbook = site.write("db.yml", "package: db-server", "package: db-client, requires: ['package:db-server']")
    site("apply", playbook, "--yes")
    playbook = site.write("db.yml", "package: db-client")
    said = "db-common, which came with db-server, stays: db-client needs it"
    planned = site("plan", playbook, "--prune")
    assert said in planned.out and "package db-core" in planned.out
    done = site("apply", playbook, "--prune", "--yes")
    assert said in done.out
    assert site.has("db-server", "db-core", "db-common", "db-client") == ["db-common", "db-client"]
    site("destroy", playbook, "--yes")
    assert site.packages() == before


def test_a_dependency_managed_by_another_playbook_stays(site: Site) -> None:
    """A dependency that another playbook manages stays until that playbook is destroyed."""
    before = site.packages()
    one = site.write("one.yml", "package: db-server")
    other = site.write("other.yml", "package: db-common")
    site("apply", one, "--yes")
    site("apply", other, "--yes")
    done = site("destroy", one, "--yes")
    assert "db-common, which came with db-server, stays: another node manages it" in done.out
    assert site.has("db-server", "db-core", "db-common") == ["db-common"]
    site("destroy", other, "--yes")
    assert site.packages() == before


def test_an_absent_package_cannot_remove_a_package_of_another_playbook(site: Site) -> None:
    """Even with `dependents`: the plan fails and names the other playbook's node."""
    site("apply", site.write("other.yml", "package: db-client"), "--yes")
    playbook = site.write("one.yml", "package: db-common, absent: true, dependents: true")
    reason = site.report("plan", playbook, code=1)["package:db-common"]["reason"]
    assert reason.startswith("the removal of db-common would also remove db-client, which package:db-client of ")
    assert reason.endswith("/other.yml installs")


def test_a_package_needed_by_a_manually_installed_one_stays(site: Site) -> None:
    """A package installed by hand keeps its dependency. Both are removed together later."""
    playbook = site.write("db.yml", "package: db-common")
    site("apply", playbook, "--yes")
    site.host.run(["apt-get", "-qy", "install", "db-client"])
    assert "db-common stays: db-client needs it" in site("destroy", playbook, "--yes").out
    assert site.has("db-common", "db-client") == ["db-common", "db-client"]
    # The host has the packages of this machine, so other packages may be unneeded as well.
    assert "Purg db-common" in site.host.run(["apt-get", "-qys", "purge", "--auto-remove", "db-client"]).stdout


def test_packages_stay_when_an_undo_fails(site: Site) -> None:
    """A failed command undo keeps the packages that it may need. The next destroy removes them."""
    playbook = site.write("db.yml", "package: db-server", *COMMANDS)
    site("apply", playbook, "--yes")
    site.host.run(["rm", "/var/tmp/data/lonely"])
    site.host.run(["mkdir", "/var/tmp/data/lonely"])
    found = site.report("destroy", playbook, "--yes", "--keep-going", code=1)
    assert found["command:shop"]["outcome"] == "changed"
    assert found["package:db-server"]["outcome"] == "skipped"
    reason = "kept: the removal of command:lonely may need it, and that node failed"
    assert found["package:db-server"]["reason"] == reason
    site.host.run(["rmdir", "/var/tmp/data/lonely"])
    site.host.run(["touch", "/var/tmp/data/lonely"])
    site("destroy", playbook, "--yes")
    assert site.has("db-server", "db-core", "db-common") == []


def test_plan_and_destroy_list_packages_that_stay_upgraded(site: Site) -> None:
    """An existing package is upgraded for another one and stays upgraded. Plan and report say so."""
    site.host.run(["apt-get", "-qy", "install", "db-common=1.0"])
    playbook = site.write("db.yml", "package: db-server-next")
    site("apply", playbook, "--yes")
    site.write("db.yml", "directory: /var/tmp/data, provides: kept")
    said = "db-common, which was upgraded for db-server-next, stays at 2.0 (it was 1.0)"
    assert said in site("plan", playbook, "--prune").out
    assert said in site("destroy", playbook, "--yes").out
    assert site.has("db-common", "db-server-next") == ["db-common"]


@pytest.mark.parametrize("requires", ["", ", requires: ['package:db-server']"])
def test_the_plan_fails_for_conflicting_packages(site: Site, requires: str) -> None:
    """The packages are in the same layer or in two. The plan fails and names both, and an apply changes nothing."""
    before = site.packages()
    playbook = site.write("db.yml", "package: db-server", f"package: db-rival{requires}")
    planned = site.report("plan", playbook, code=1)
    failed = [node for node in planned.values() if node["outcome"] == "failed"]
    assert len(failed) == 1 and "can't be installed together with" in failed[0]["reason"]
    assert "db-rival" in failed[0]["reason"] and "db-server" in failed[0]["reason"]
    done = site.report("apply", playbook, "--yes", code=1)
    (other,) = (node for name, node in done.items() if name != failed[0]["name"])
    assert other["outcome"] == "skipped"
    assert other["reason"] == "not started: its plan fails"
    assert site.packages() == before


def test_the_plan_lists_dependencies_of_packages_in_later_layers(site: Site) -> None:
    """The package requires another package and a file that apt does not read. The plan still lists everything."""
    playbook = site.write(
        "db.yml",
        "package: db-client",
        "file: /etc/db.conf, content: x, requires: ['package:db-client']",
        "package: db-server, requires: ['file:/etc/db.conf']",
    )
    planned = site.report("plan", playbook)
    assert {node["outcome"] for node in planned.values()} == {"changed"}
    assert not planned["package:db-server"].get("known_after")  # the file may be a link of the package
    comes = [change["object"] for change in planned["package:db-server"]["changes"]]
    assert comes == ["package db-core", "package db-server"]
    done = site.report("apply", playbook, "--yes")
    assert [node["changes"] for node in done.values()] == [node["changes"] for node in planned.values()]
    site("destroy", playbook, "--yes")


def test_a_package_after_a_new_source_is_known_only_later(site: Site) -> None:
    """The plan does not guess what apt will find in a source that this run adds."""
    source = "deb [trusted=yes] file:/srv/apt ./\\n# again\\n"
    playbook = site.write(
        "db.yml",
        f'file: /etc/apt/sources.list.d/tests.list, content: "{source}"',
        "package: db-client, requires: ['file:/etc/apt/sources.list.d/tests.list']",
    )
    planned = site.report("plan", playbook)["package:db-client"]
    assert (planned["outcome"], planned["known_after"]) == ("changed", "file:/etc/apt/sources.list.d/tests.list")
    done = site.report("apply", playbook, "--yes")["package:db-client"]
    assert [change["object"] for change in done["changes"]] == ["package db-common", "package db-client"]
    site("destroy", playbook, "--yes")


def test_a_file_node_never_replaces_a_link_of_a_package(site: Site) -> None:
    """The file node fails at its turn. With `follow` it would manage the target of the link."""
    playbook = site.write(
        "db.yml", "package: linker", "file: /etc/linked.conf, content: ours, requires: ['package:linker']"
    )
    assert site.report("plan", playbook)["file:/etc/linked.conf"]["outcome"] == "changed"
    done = site.report("apply", playbook, "--yes", code=1)["file:/etc/linked.conf"]
    assert "/etc/linked.conf is a link to /etc/hosts, not a file; follow: true" in done["reason"]
    assert site.host.run(["readlink", "/etc/linked.conf"]).stdout == "/etc/hosts\n"
    assert (
        "is a link to /etc/hosts, not a file"
        in site.report("plan", playbook, code=1)["file:/etc/linked.conf"]["reason"]
    )
    site("destroy", playbook, "--yes")


def test_a_removal_that_would_remove_unplanned_packages_is_refused(light: lab.Host, tmp_path: Path) -> None:
    """Somebody installed a package since the plan. apt is asked again just before the removal."""
    from tests.host.resources.test_real import PLACE, prepared

    prepared(light, tmp_path)
    light.run(["apt-get", "-qy", "install", "db-client"])
    script = (
        f"import sys, json; sys.path.insert(0, {PLACE!r})\n"
        "from statecfg.remote.machine.real import RealMachine\n"
        "from statecfg.resources.packages.managers.apt import apt\n"
        "item = {'name': 'db-common', 'purge': True, 'others': []}\n"
        "print(json.dumps(apt.remove([item]).perform(RealMachine())))\n"
    )
    try:
        found = json.loads(light.run(["python3", "-I", "-S", "-c", script]).stdout)
        assert found["status"] == "error"
        assert (
            found["reason"] == "nothing was changed: apt would also change db-client, which was not planned; plan again"
        )
        assert "ii" in light.run(["dpkg-query", "--show", "--showformat=${db:Status-Abbrev}", "db-client"]).stdout
    finally:
        light.run(["apt-get", "-qy", "purge", "db-client", "db-common"])


def test_exact_versions_that_need_each_other(site: Site) -> None:
    """Each package alone would get the newest version of the other one. Together, they are one transaction."""
    pair = ['package: exact-app, version: "1.0"', 'package: exact-lib, version: "1.*"']
    playbook = site.write("site.yml", *pair)
    site("apply", playbook, "--yes")
    assert [line for line in site.packages() if line.startswith("exact")] == ["exact-app 1.0 ii ", "exact-lib 1.0 ii "]
    site("destroy", playbook, "--yes")
    site.host.run(["apt-get", "-qy", "install", "exact-app"])  # 2.0: both are downgraded
    before = site.packages()
    assert {node["outcome"] for node in site.report("plan", playbook).values()} == {"changed"}
    site("apply", playbook, "--yes")
    assert [line for line in site.packages() if line.startswith("exact")] == ["exact-app 1.0 ii ", "exact-lib 1.0 ii "]
    site("destroy", playbook, "--yes")
    assert site.packages() == before


def test_a_dependency_that_is_declared_becomes_manual(site: Site) -> None:
    """Otherwise an autoremove would take it. Undo makes it automatic again."""
    site.host.run(["apt-get", "-qy", "install", "db-client"])
    before = site.packages()
    assert "db-common 2.0 ii  automatic" in before
    playbook = site.write("site.yml", "package: db-common")
    planned = site.report("plan", playbook)["package:db-common"]
    assert [action["op"] for action in planned["actions"]] == ["mark_manual"]
    site("apply", playbook, "--yes")
    assert "db-common 2.0 ii " in site.packages()
    assert site.report("plan", playbook)["package:db-common"]["outcome"] == "unchanged"
    site("destroy", playbook, "--yes")
    assert site.packages() == before


def test_installed_packages_that_are_taken_over_one_by_one(site: Site) -> None:
    """The record of the second one compares it with the first one, which only the ledger's database has."""
    site.host.run(["apt-get", "-qy", "install", "linker", "db-rival"])
    site("apply", site.write("site.yml", "package: linker"), "--yes")
    playbook = site.write("site.yml", "package: linker", "package: db-rival")
    assert {node["outcome"] for node in site.report("apply", playbook, "--yes").values()} == {"unchanged"}


def deb(site: Site, name: str) -> str:
    """Return the path of a package on the host that no repository has."""
    (path,) = (path for path in site.host.run(["find", OWN, "-name", f"{name}*.deb"]).stdout.split())
    return path


def test_a_package_in_a_file(site: Site) -> None:
    """apt installs what it needs from the repositories. Another file with another version is a difference."""
    before, first, second = site.packages(), deb(site, "own_1.0"), deb(site, "own_2.0")
    more = f"package: own-more, file: {deb(site, 'own-more')}"
    playbook = site.write("site.yml", f"package: own, file: {first}", more)
    planned = site.report("plan", playbook)
    changes = {change["object"]: change["after"] for node in planned.values() for change in node["changes"]}
    assert changes == {"package own": "1.0", "package own-more": "1.0", "package db-common": "2.0"}
    applied = site.report("apply", playbook, "--yes")
    assert [node["changes"] for node in applied.values()] == [node["changes"] for node in planned.values()]
    assert {node["outcome"] for node in site.report("apply", playbook, "--yes").values()} == {"unchanged"}
    newer = site.write("site.yml", f"package: own, file: {second}", more)
    (change,) = site.report("plan", newer)["package:own"]["changes"]
    assert (change["before"], change["after"]) == ("1.0", "2.0")
    site("apply", newer, "--yes")
    assert "own 2.0 ii" in " ".join(site.packages())
    site("apply", playbook := site.write("site.yml", f"package: own, file: {first}", "package: own-more"), "--yes")
    assert "own 1.0 ii" in " ".join(site.packages())
    site("destroy", playbook, "--yes")
    assert site.packages() == before
    wrong = site.write("wrong.yml", f"package: own, file: {deb(site, 'own-more')}", "package: x, file: /etc/hosts")
    found = site.report("plan", wrong, code=1)
    assert "contains the package own-more" in found["package:own"]["reason"]
    assert "dpkg can't read the package /etc/hosts" in found["package:x"]["reason"]


def test_a_package_in_a_file_that_the_run_brings(site: Site) -> None:
    """Until the file is there, nobody knows its version and what it needs. The next layer has a package above it."""
    before = site.packages()
    (site.directory / "own.deb").write_bytes(site.host.path(deb(site, "own_1.0")).read_bytes())
    resources = ["file: /srv/own.deb, source: own.deb", "package: own, file: /srv/own.deb"]
    last = f"package: own-more, file: {deb(site, 'own-more')}, requires: ['package:own']"
    playbook = site.write("site.yml", *resources, last)
    planned = site.report("plan", playbook)
    assert planned["package:own"]["outcome"] == "changed"
    assert planned["package:own"]["known_after"] == "file:/srv/own.deb"
    applied = site.report("apply", playbook, "--yes")
    assert {node["outcome"] for node in applied.values()} == {"changed"}
    assert site.has("own", "own-more") == ["own", "own-more"]
    assert {node["outcome"] for node in site.report("apply", playbook, "--yes").values()} == {"unchanged"}
    site("destroy", playbook, "--yes")
    assert site.packages() == before
