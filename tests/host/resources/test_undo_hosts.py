"""Undo of node types on a booted host: packages, units, users and groups return to their former state."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from statecfg import resources
from statecfg.graph.graph import Graph, merge_graphs
from statecfg.playbook.compile import compile_graph
from statecfg.playbook.context import WireContext
from statecfg.remote.wire.frames import encode_value
from statecfg.resources.index.modules import module_of
from tests import lab
from tests.host.command import reach, statecfg
from tests.host.resources.test_real import PLACE, UNIT, prepared, web

LIBRARY = "/usr/lib/systemd/system"  # a unit in /etc can't be masked
DRIVER = Path(__file__).parent / "undo_on_host.py"
# Prints the state of all packages, units, users, groups and files of a host.
STATE = r"""
dpkg-query --show --showformat='${Package} ${Version} ${db:Status-Abbrev}\n' | sort
echo; apt-mark showauto | sort
echo; systemctl list-unit-files --no-legend --no-pager --plain | sort
for unit in webd.service nap.service; do echo "$unit $(systemctl is-active $unit | sed s/failed/inactive/)"; done
echo; for table in passwd group gshadow; do sort /etc/$table; done; cut -d: -f1,2 /etc/shadow | sort
echo; find /etc /srv /home /opt/site -xdev ! -path '/etc/*-' ! -name .pwd.lock ! -name ld.so.cache \
    ! -path '/etc/passwd' ! -path '/etc/group' ! -path '/etc/shadow' ! -path '/etc/gshadow' ! -path '/etc/sub?id' \
    ! -path '/srv/apt*' -printf '%p %y %m %u %g %l\n' 2>/dev/null | sort
find /etc/webd /srv /home -xdev -type f ! -path '/srv/apt*' -exec sha256sum {} + 2>/dev/null | sort
"""


# Waits until webd answers, and prints its message.
ASK = """
import sys, time, urllib.request
for _ in range(600):
    try:
        sys.exit(sys.stdout.write(urllib.request.urlopen("http://127.0.0.1:8080").read().decode().strip()) and 0)
    except OSError:
        time.sleep(0.1)
sys.exit("webd does not answer")
"""


class Managed:
    """A host on which a test applies and undoes nodes."""

    def __init__(self, host: lab.Host, project: Path) -> None:
        self.host, self.project = host, project
        self.graphs: Sequence[Graph] = ()

    def ask(self, do: str) -> Any:
        definition = compile_graph(merge_graphs(*self.graphs), WireContext(base=self.project))
        content = [encode_value(blob, inline=1 << 30) for blob in definition.blobs.values()]
        types = {node["type"] for layer in definition.layers for node in layer}
        modules = sorted(map(module_of, types))
        given = {"layers": definition.layers, "blobs": content, "do": do, "modules": modules}
        done = self.host.run(["python3", "-I", "-S", "/opt/undo.py", PLACE], stdin=json.dumps(given), seconds=300)
        return json.loads(done.stdout)

    def state(self) -> list[str]:
        return self.host.run(["sh", "-c", STATE], check=False).stdout.splitlines()

    def come(self, *graphs: Graph) -> None:
        """Apply the nodes, and check that each of them succeeds."""
        self.graphs = graphs
        bad = [node for node in self.ask("come") if node[1] not in ("changed", "unchanged")]
        assert not bad, bad

    def go(self) -> Any:
        """Undo the nodes, check that this follows the plan and is complete, and return ops by node and what stays."""
        found = self.ask("go")
        assert (found["wrong"], found["rest"]) == ([], {})
        return found["ops"], found["left"]

    def come_and_go(self, *graphs: Graph) -> Any:
        """Apply and undo nodes, and check that the host has its former state."""
        before = self.state()
        self.come(*graphs)
        assert self.state() != before
        found = self.go()
        after = self.state()
        assert sorted(set(before) ^ set(after)) == []
        return found


@pytest.fixture(scope="module")
def managed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Managed]:
    """Give a booted host with the executor and packages that depend on each other."""
    try:
        repository = lab.apt_repository(tmp_path_factory.mktemp("apt"))
        repository.add("shared", "1.0")
        for name in ("first", "second"):
            repository.add(name, "1.0", depends="shared")
        for name, more in (("lingers", ""), ("refuses", "RefuseManualStop=yes\n")):
            unit = f"[Unit]\n{more}[Service]\nExecStart=/usr/bin/sleep 4343\n"
            start = f"#!/bin/sh\nsystemctl daemon-reload\nsystemctl start {name}\n"
            files = {f"/usr/lib/systemd/system/{name}.service": (unit, 0o644)}
            repository.add(name, "1.0", files=files, scripts={"postinst": start})
        host = lab.booted_host("undo")
    except lab.Unavailable as reason:
        pytest.skip(f"not run on this machine: {reason}")
    try:
        repository.use(host)
        project = tmp_path_factory.mktemp("project")
        prepared(host, project)
        host.write("/opt/undo.py", DRIVER.read_text())
        yield Managed(host, project)
    finally:
        host.stop()


def test_undo_of_a_web_server_restores_the_host(managed: Managed) -> None:
    """Package, configuration, group, user, directory, files and service are undone."""
    before = managed.state()
    managed.come(web())
    ops, left = managed.go()
    managed.host.run(["rm", "-r", "/home/site"])  # undo keeps home directories
    after = managed.state()
    assert sorted(set(before) ^ set(after)) == []
    assert ops == {
        "directory:/srv/site": ["remove"],
        "file:/etc/webd/webd.conf": ["write"],
        "file:/srv/site/index": ["remove"],
        "group:site": ["groupdel"],
        "package:webd": ["remove"],
        "user:site": ["userdel", "groupadd"],  # userdel also removes the group, which existed before the user
    }
    assert left == ["/home/site, the home directory that was created for site, stays"]


PLAYBOOK = """
hosts: undo
resources:
  - package: webd
  - package: tool-b
  - package: tool-a
  - package: first
  - package: second
  - group: site
    gid: 4242
  - user: site
    group: site
    remove_home: true
    requires: ["group:site"]
  - directory: /srv/site/pages
    owner: site
    parents: true
    requires: ["user:site"]
  - file: /etc/webd/webd.conf
    content: "port = 8080\\nmessage = ours\\n"
    requires: ["package:webd"]
  - service: webd
    running: true
    enabled: true
    restart_on: ["file:/etc/webd/webd.conf"]
  - line_in_file: /etc/hosts
    line: 192.0.2.1 site
  - process: /usr/bin/sleep
    args: ["4242"]
    user: site
    group: site
    env: {}
    requires: ["user:site"]
"""


def test_prune_and_destroy_over_ssh_restore_the_host(managed: Managed, tmp_path: Path) -> None:
    """All types together, over SSH: prune removes half of the nodes, and destroy removes the rest."""
    options = reach(tmp_path, [managed.host])
    playbook = tmp_path / "site.yml"
    before = managed.state()
    playbook.write_text(PLAYBOOK)
    statecfg("apply", playbook, "--yes", *options, cwd=tmp_path)
    playbook.write_text(PLAYBOOK.partition("  - directory")[0].replace("  - package: webd\n", ""))
    statecfg("apply", playbook, "--yes", "--prune", *options, cwd=tmp_path)
    ran = statecfg("destroy", playbook, "--yes", *options, cwd=tmp_path)
    assert "stays" not in ran.out
    after = managed.state()
    assert sorted(set(before) ^ set(after)) == []
    assert managed.host.run(["pgrep", "-f", "sleep 4242"], check=False).returncode == 1


WEB = """
hosts: undo
resources:
  - package: webd
  - file: /etc/webd/webd.conf
    content: "port = 8080\\nmessage = ours\\n"
    requires: ["package:webd"]
  - command: noted
    shell: touch /srv/noted
    creates: /srv/noted
    undo: [rm, -f, /srv/noted]
  - service: webd
    running: true
    restart_on: ["file:/etc/webd/webd.conf"]
"""


def test_destroy_owes_no_restart_to_units_of_removed_packages(managed: Managed, tmp_path: Path) -> None:
    """The removals contain no restart of such a unit, and another destroy has nothing to do."""
    options = reach(tmp_path, [managed.host])
    playbook = tmp_path / "site.yml"
    playbook.write_text(WEB)
    statecfg("apply", playbook, "--yes", *options, cwd=tmp_path)
    for expected in ({"service:webd", "command:noted", "file:/etc/webd/webd.conf", "package:webd"}, set()):
        ran = statecfg("destroy", playbook, "--yes", "--json", *options, cwd=tmp_path)
        done = ran.json()["hosts"]["undo"]
        assert {node["name"] for layer in done["removals"] for node in layer} == expected
        assert done["owed"] == []
        assert debts(managed.host) == ""


def debts(host: lab.Host) -> str:
    """Return the nodes to which the host's ledger still owes a restart.

    The host runs SQLite itself: SQLite follows the links of a path and would leave the host's file system.
    """
    query = "import sqlite3; print(*sqlite3.connect('/var/lib/statecfg/ledger.db').execute('SELECT node FROM owed'))"
    return host.run(["python3", "-I", "-S", "-c", query]).stdout.strip()


def test_removing_a_package_stops_its_running_unit(managed: Managed) -> None:
    """The plan shows the stop. For a unit that refuses a manual stop it says that the unit keeps running."""
    host = managed.host
    ops, left = managed.come_and_go(resources.package("lingers"))
    assert (ops, left) == ({"package:lingers": ["remove"]}, [])
    assert host.run(["pgrep", "-f", "sleep 4343"], check=False).returncode == 1
    managed.come(resources.package("refuses"))
    _, (left,) = managed.go()
    assert left.startswith("refuses.service keeps running unless the scripts of refuses stop it: ")
    assert host.run(["pgrep", "-f", "sleep 4343"]).stdout
    host.run(["systemctl", "kill", "refuses"])


def test_an_absent_package_stops_its_unit(managed: Managed, tmp_path: Path) -> None:
    options = reach(tmp_path, [managed.host])
    playbook = tmp_path / "site.yml"
    playbook.write_text("hosts: undo\nresources:\n  - package: lingers\n    absent: true\n")
    managed.host.run(["apt-get", "-qy", "install", "lingers"])
    ran = statecfg("plan", playbook, *options, cwd=tmp_path)
    assert "unit lingers.service" in ran.out
    statecfg("apply", playbook, "--yes", *options, cwd=tmp_path)
    assert managed.host.run(["pgrep", "-f", "sleep 4343"], check=False).returncode == 1
    statecfg("destroy", playbook, "--yes", *options, cwd=tmp_path)
    managed.host.run(["apt-get", "-qy", "purge", "lingers"])
    managed.host.run(["systemctl", "stop", "lingers"], check=False)


def test_undo_removes_a_package_with_its_dependencies(managed: Managed) -> None:
    """Dependencies are removed with the last package that needs them. A package needed by another one stays."""
    ops, left = managed.come_and_go(resources.package("tool-b"))
    assert (ops, left) == ({"package:tool-b": ["remove"]}, [])
    managed.come_and_go(resources.package("first"), resources.package("second"))
    managed.come_and_go(resources.package("tool-b"), resources.package("tool-a"))
    managed.come(resources.package("tool-a"))
    managed.host.run(["apt-get", "-qy", "install", "tool-b"])
    assert managed.go() == ({"package:tool-a": ["mark_automatic"]}, ["tool-a stays: tool-b needs it"])
    assert managed.host.run(["apt-mark", "showauto", "tool-a"]).stdout == "tool-a\n"
    managed.host.run(["apt-get", "-qy", "purge", "tool-a", "tool-b"])


def test_undo_restores_package_versions_and_automatic_marks(managed: Managed) -> None:
    """An existing package returns to its version, and is marked as automatic again if it was before."""
    host = managed.host
    host.run(["apt-get", "-qy", "install", "tool-a=1.0", "tool-b"])
    host.run(["apt-mark", "auto", "tool-a"])
    ops, _ = managed.come_and_go(resources.package("tool-a", version="2.0"))
    assert ops == {"package:tool-a": ["install", "mark_automatic"]}
    ops, _ = managed.come_and_go(resources.package("tool-a", absent=True, dependents=True))
    assert ops == {"package:tool-a": ["install", "mark_automatic"]}
    managed.come(resources.package("tool-a"))
    host.run(["apt-get", "-qy", "install", "tool-a=2.0"])
    assert managed.go() == ({"package:tool-a": ["mark_automatic"]}, [])  # the version of others stays
    assert host.run(["tool-a"]).stdout == "2.0\n"
    host.run(["apt-get", "-qy", "purge", "tool-a", "tool-b"])


def test_undo_keeps_a_package_whose_former_version_is_unavailable(managed: Managed) -> None:
    """If apt no longer has the former version, the package stays as it is, and the removal says so."""
    host = managed.host
    host.run(["apt-get", "-qy", "install", "tool-a=1.0"])
    host.run(["sh", "-c", "sed -i '/^Package: tool-a$/,/^$/s/^Version: 1.0/Version: 0.9/' /var/lib/dpkg/status"])
    assert "0.9" in host.run(["dpkg-query", "--show", "tool-a"]).stdout
    managed.come(resources.package("tool-a", version="2.0"))
    said = "tool-a had version 0.9, which is no longer available: it stays at 2.0"
    assert managed.go() == ({}, [said])
    host.run(["apt-get", "-qy", "purge", "tool-a"])


def test_undo_restores_a_purged_package_with_its_configuration(managed: Managed) -> None:
    """Changes to its configuration files and the state of its service come back, too.

    The configuration comes back before the package, whose service is started as soon as it is installed: a service
    that may not read its configuration, or reads it while it is being replaced, would not run afterwards.
    """
    host = managed.host
    host.run(["apt-get", "-qy", "install", "webd=1.0"])
    assert host.run(["python3", "-c", ASK]).stdout == "hello"  # webd has read its configuration, so it can change now
    host.write("/etc/webd/webd.conf", "port = 8080\nmessage = ours\n")
    host.run(["chmod", "0640", "/etc/webd/webd.conf"])
    host.run(["chgrp", "www-data", "/etc/webd/webd.conf"])
    stopped = resources.service("webd", running=False, enabled=False)
    ops, _ = managed.come_and_go(stopped, resources.package("webd", absent=True, purge=True, requires=[stopped]))
    assert ops["package:webd"] == ["put_back", "install", "remove"]
    assert host.run(["python3", "-c", ASK]).stdout == "ours"
    host.run(["apt-get", "-qy", "purge", "webd"])


@pytest.mark.parametrize(("enabled", "running"), [(True, True), (False, False)])
def test_undo_restores_the_state_of_a_unit(managed: Managed, enabled: bool, running: bool) -> None:
    """Running, enabled and masked: each attribute that the node set gets its former value back."""
    host = managed.host
    host.write(f"{LIBRARY}/nap.service", UNIT.format(1000))
    host.run(["systemctl", "daemon-reload"])
    host.run(["systemctl", "enable" if enabled else "disable", "nap"])
    host.run(["systemctl", "start" if running else "stop", "nap"])
    managed.come_and_go(resources.service("nap", running=not running, enabled=not enabled))
    managed.come_and_go(resources.service("nap", running=not running))
    managed.come_and_go(resources.service("nap", masked=True))
    host.run(["systemctl", "stop", "nap"])
    host.run(["systemctl", "mask", "nap"])
    managed.come_and_go(resources.service("nap", masked=False, running=True))
    host.run(["systemctl", "unmask", "nap"])
    host.run(["systemctl", "disable", "--now", "nap"])


def test_undo_ignores_units_that_no_longer_exist(managed: Managed) -> None:
    """The mask of a unit that never existed is removed. A unit whose file was deleted is ignored."""
    host = managed.host
    managed.come_and_go(resources.service("nowhere", masked=True))
    host.write(f"{LIBRARY}/nap.service", UNIT.format(1000))
    host.run(["systemctl", "daemon-reload"])
    managed.come(resources.service("nap", running=True))
    host.run(["systemctl", "stop", "nap"])
    host.run(["rm", f"{LIBRARY}/nap.service"])
    host.run(["systemctl", "daemon-reload"])
    assert managed.go() == ({}, [])


def test_undo_removes_new_users_and_groups_but_keeps_homes(managed: Managed) -> None:
    """A user's group is removed only if it came with the user. Homes stay unless `remove_home` is set."""
    host = managed.host
    crew = resources.group("crew", gid=4300)
    ops, _ = managed.come_and_go(resources.user("worker", groups=["crew"], create_home=False, requires=[crew]))
    assert ops == {"user:worker": ["userdel"], "group:crew": ["groupdel"]}
    managed.come_and_go(resources.user("worker", remove_home=True))
    managed.come(resources.user("worker"))
    managed.go()
    assert host.path("/home/worker").is_dir()
    managed.come_and_go(resources.user("worker", remove_home=True))
    assert host.path("/home/worker").is_dir()
    host.run(["rm", "-r", "/home/worker"])
    host.run(["groupadd", "worker"])
    managed.come_and_go(resources.user("worker", create_home=False))
    host.run(["groupdel", "worker"])


def test_undo_restores_changed_users_and_groups(managed: Managed) -> None:
    """Fields, groups and members come back. Manual changes to other fields stay."""
    host = managed.host
    for name in ("one", "two", "three"):
        host.run(["groupadd", name])
    host.run(["useradd", "--create-home", "--shell", "/bin/sh", "--groups", "one", "worker"])
    host.run(["usermod", "--append", "--groups", "two", "daemon"])
    managed.come_and_go(
        resources.user("worker", uid=4301, group="two", shell="/bin/false", comment="W", home="/srv", groups=["three"])
    )
    managed.come_and_go(resources.user("worker", groups=["three"], exact_groups=True))
    managed.come_and_go(resources.group("two", gid=4302, members=["worker"]))
    managed.come(resources.user("worker", groups=["three"], password_hash="$6$salt$" + "a" * 86))
    host.run(["usermod", "--shell", "/usr/sbin/nologin", "--append", "--groups", "two", "worker"])
    ops, left = managed.go()
    assert (ops, left) == (
        {"user:worker": ["usermod"]},
        ["the password of the user worker stays: statecfg does not record passwords"],
    )
    assert host.run(["id", "-nG", "worker"]).stdout.split() == ["worker", "one", "two"]
    assert "/usr/sbin/nologin" in host.run(["getent", "passwd", "worker"]).stdout
    host.run(["passwd", "--lock", "worker"])


def test_undo_restores_removed_users_and_groups(managed: Managed) -> None:
    """Id, groups, members and a removed home come back, and the password does not."""
    host = managed.host
    host.run(["sh", "-c", "id worker || useradd --create-home --groups one worker; mkdir -m 700 -p ~worker/.ssh"])
    host.run(["sh", "-c", "echo key > ~worker/.ssh/id; chown -R worker:worker ~worker; usermod --password '!' worker"])
    ops, left = managed.come_and_go(resources.user("worker", absent=True, remove_home=True))
    assert ops["user:worker"][:2] == ["groupadd", "useradd"]
    assert left == ["the password of the user worker is not restored: statecfg does not record passwords"]
    managed.come_and_go(resources.group("one", absent=True))
    user = resources.user("worker", absent=True)
    managed.come_and_go(resources.group("three", absent=True, requires=[user]))
    host.run(["userdel", "--remove", "worker"])
    for name in ("one", "two", "three"):
        host.run(["groupdel", name])
