"""The node types on real hosts: apply does what was planned, and a second run has nothing to do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from tests.host import sent

PLACE = "/opt/executor"
# Runs in the host's Python, isolated: plans the definition from stdin, and applies it if the input says so.
DRIVER = f"""
import json, sys
sys.path.insert(0, {PLACE!r})
from importlib import import_module
from statecfg.remote.run.execution import Execution
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.machine.planned import Planned
from statecfg.remote.run.planning import Planner
from statecfg.remote.machine.real import Facets, RealMachine
from statecfg.remote.run.report import step_report
from statecfg.remote.wire.frames import decode_node, decode_value

class Unrecorded:
    def intend(self, nodes): pass
    def started(self, node, op): pass
    def all_started(self, actions): pass
    def all_took(self, ended): pass
    def took(self, node, op, result): pass
    def finished(self, node, outcome): pass
    def all_finished(self, outcomes): pass

given = json.load(sys.stdin)
blobs = {{}}
for value in given["blobs"]:
    decode_value(value, blobs)
layers = [[decode_node(wire, blobs) for wire in layer] for layer in given["layers"]]
for module in given["modules"]:
    import_module(module)
facets = Facets()
plan = Planner(REGISTRY, Planned(RealMachine(facets)), given["owed"]).plan(layers)
found = {{"plan": [step_report(step) for layer in plan.layers for step in layer]}}
if given["apply"]:
    done = Execution(plan, REGISTRY, facets, lambda event: None, Unrecorded(), lambda: "")
    found["apply"] = [node for layer in done.run() for node in layer]
json.dump(found, sys.stdout)
"""
UNITS = "/etc/systemd/system"
Report = list[dict[str, Any]]


@dataclass
class Managed:
    """A host on which a test plans and applies definitions."""

    host: lab.Host
    project: Path

    def ask(self, graphs: Sequence[Graph], apply: bool) -> dict[str, Report]:
        """Plan a definition on the host, and apply it if `apply` is set."""
        definition = compile_graph(merge_graphs(*graphs), WireContext(base=self.project))
        content = [encode_value(blob, inline=1 << 30) for blob in definition.blobs.values()]
        types = {node["type"] for layer in definition.layers for node in layer}
        modules = sorted(map(module_of, types))
        given = {"layers": definition.layers, "blobs": content, "apply": apply, "owed": {}, "modules": modules}
        done = self.host.run(["python3", "-I", "-S", "-c", DRIVER], stdin=json.dumps(given), seconds=300)
        found: dict[str, Report] = json.loads(done.stdout)
        return found

    def plan(self, *graphs: Graph) -> Report:
        """Return the plan of a definition."""
        return self.ask(graphs, apply=False)["plan"]

    def apply(self, *graphs: Graph) -> Report:
        """Apply a definition; check that the apply follows the plan exactly and that a second plan is empty."""
        before = self.plan(*graphs)
        found = self.ask(graphs, apply=True)
        assert operations(before) == operations(found["plan"])
        report = found["apply"]
        bad = [(node["name"], node["reason"]) for node in report if node["outcome"] not in ("changed", "unchanged")]
        assert not bad, bad
        known = {node["name"] for node in found["plan"] if node["outcome"] != "unknown"}
        assert operations(report, known) == operations(found["plan"], known)
        assert operations(self.plan(*graphs)) == {}
        return report


def operations(report: Report, names: set[str] | None = None) -> dict[str, list[str]]:
    """Return the names of the ops of each node that has any."""
    return {
        node["name"]: [action["op"] for action in node["actions"]]
        for node in report
        if node["actions"] and (names is None or node["name"] in names)
    }


def outcomes(report: Report) -> dict[str, str]:
    """Return the outcome of each node that is not unchanged."""
    return {node["name"]: node["outcome"] for node in report if node["outcome"] != "unchanged"}


def diff(report: Report, thing: str, field: str) -> tuple[Any, Any]:
    """Return the old and the new value of a field in a report."""
    changes: list[Mapping[str, Any]] = [change for node in report for change in node.get("changes", ())]
    (found,) = (change for change in changes if (change["object"], change["field"]) == (thing, field))
    return found["before"], found["after"]


def prepared(host: lab.Host, project: Path) -> Managed:
    """Copy the executor and the node types to a host."""
    sent.write(sent.everything(), host.path(PLACE))
    return Managed(host, project)


@pytest.fixture(scope="module")
def managed(booted: lab.Host, tmp_path_factory: pytest.TempPathFactory) -> Managed:
    """Give a booted host with the executor."""
    return prepared(booted, tmp_path_factory.mktemp("project"))


def web(port: str = "8080", version: str | None = None) -> Graph:
    """Define a small web server: package, configuration, group, user, directory, service."""
    webd = resources.package("webd", version=version)
    group = resources.group("site", gid=4242)
    user = resources.user("site", uid=4242, group="site", shell="/bin/sh", comment="Site", requires=[group])
    pages = resources.directory("/srv/site", owner="site", group="site", mode="0750", requires=[user])
    page = resources.file("/srv/site/index", content="hello\n", owner="site", requires=[pages])
    text = f"# ours\nport = {port}\nmessage = from us\n"
    check = ["/usr/sbin/webd", "--check", "{}"]
    conf = resources.file("/etc/webd/webd.conf", content=text, mode="0644", validate=check, requires=[webd, page])
    return resources.service("webd", running=True, enabled=True, restart_on=[conf], requires=[webd])


def test_a_web_server_is_installed_left_unchanged_and_repaired(managed: Managed) -> None:
    """On a bare host the plan lists every action. Later it lists nothing, and after drift only the repairs."""
    host = managed.host
    plan = managed.plan(web())
    assert operations(plan) == {
        "group:site": ["groupadd"],
        "package:webd": ["install"],
        "user:site": ["useradd"],
        "directory:/srv/site": ["mkdir"],
        "file:/srv/site/index": ["write"],
        "file:/etc/webd/webd.conf": ["write"],
        "service:webd": ["enable", "restart"],
    }
    assert diff(plan, "package webd", "version") == (None, "1.1")
    managed.apply(web())
    assert host.run(["systemctl", "is-active", "webd"]).stdout == "active\n"
    assert host.read("/etc/webd/webd.conf").startswith("# ours")
    assert host.run(["stat", "-c", "%U:%G %a", "/srv/site"]).stdout == "site:site 750\n"
    # The plan finds each kind of drift, and nothing else.
    before = host.run(["systemctl", "show", "--value", "--property=MainPID", "webd"]).stdout
    host.write("/etc/webd/webd.conf", "port = 8080\n")
    assert operations(managed.plan(web())) == {"file:/etc/webd/webd.conf": ["write"], "service:webd": ["restart"]}
    host.run(["systemctl", "disable", "webd"])
    host.run(["usermod", "--shell", "/bin/bash", "--comment", "x", "site"])
    host.run(["chmod", "0777", "/srv/site"])
    host.run(["chown", "root:root", "/srv/site/index"])
    plan = managed.plan(web())
    assert operations(plan) == {
        "directory:/srv/site": ["chmod"],
        "file:/etc/webd/webd.conf": ["write"],
        "file:/srv/site/index": ["write"],
        "service:webd": ["enable", "restart"],
        "user:site": ["usermod"],
    }
    assert diff(plan, "user site", "shell") == ("/bin/bash", "/bin/sh")
    assert diff(plan, "unit webd.service", "enabled") == ("disabled", "enabled")
    managed.apply(web())
    assert host.run(["systemctl", "show", "--value", "--property=MainPID", "webd"]).stdout != before
    host.run(["systemctl", "stop", "webd"])
    assert operations(managed.apply(web())) == {"service:webd": ["start"]}


def test_invalid_configuration_leaves_the_service_unchanged(managed: Managed) -> None:
    """A configuration that the program rejects is not installed, and the service that depends on it is skipped."""
    managed.apply(web())
    before = managed.host.run(["systemctl", "show", "--value", "--property=MainPID", "webd"]).stdout
    report = managed.ask([web("eighty")], apply=True)["apply"]
    assert outcomes(report) == {"file:/etc/webd/webd.conf": "failed", "service:webd": "skipped"}
    assert "port = 8080" in managed.host.read("/etc/webd/webd.conf")
    assert managed.host.run(["systemctl", "show", "--value", "--property=MainPID", "webd"]).stdout == before


def test_absent_nodes_remove_every_resource_type(managed: Managed) -> None:
    """Absent nodes remove what the other nodes created."""
    managed.apply(web())
    stopped = resources.service("webd", running=False, enabled=False)
    gone = [
        resources.package("webd", absent=True, purge=True, requires=[stopped]),
        resources.user("site", absent=True, provides="no-site"),
        resources.directory("/srv/site", absent=True, recursive=True),
        resources.group("site", absent=True, requires=["no-site"]),
    ]
    report = managed.apply(*gone)
    assert operations(report)["service:webd"] == ["disable", "stop"]
    assert not managed.host.path("/etc/webd/webd.conf").exists()
    assert managed.host.run(["id", "site"], check=False).returncode == 1
    assert managed.host.run(["dpkg", "-s", "webd"], check=False).returncode == 1


def test_packages_of_one_layer_are_installed_in_one_transaction(managed: Managed) -> None:
    """One apt-get installs a layer's packages. Versions are respected, and dependents are removed only on request."""
    host = managed.host
    log = host.path("/var/log/apt/history.log")
    runs = log.read_text().count("Commandline:") if log.exists() else 0
    managed.apply(resources.package("tool-b"), resources.package("tool-a", version="1.*"))
    assert log.read_text().count("Commandline:") == runs + 1
    assert host.run(["tool-b"]).stdout == "1.0\n"
    plan = managed.plan(resources.package("tool-a", version="2.0"))
    assert diff(plan, "package tool-a", "version") == ("1.0", "2.0")
    managed.apply(resources.package("tool-a", version="2.0"))
    managed.apply(resources.package("tool-a", version="1.0"))
    (refused,) = managed.plan(resources.package("tool-a", absent=True))
    assert (refused["outcome"], "tool-b" in refused["reason"]) == ("failed", True)
    plan = managed.plan(resources.package("tool-a", absent=True, dependents=True))
    assert diff(plan, "package tool-b", "version") == ("1.0", None)
    managed.apply(resources.package("tool-a", absent=True, dependents=True))
    (unknown,) = managed.plan(resources.package("toolb"))
    assert "did you mean `tool-b`" in unknown["reason"]
    (unknown,) = managed.plan(resources.package("tool-b", version="7"))
    assert "available: 1.0" in unknown["reason"]


def test_a_half_installed_package_fails_until_it_can_be_configured(managed: Managed) -> None:
    """A package that can't be configured fails in each run. A later run that can configure it finishes it."""
    first = managed.ask([resources.package("broken")], apply=True)["apply"]
    assert outcomes(first) == {"package:broken": "failed"}
    again = managed.ask([resources.package("broken")], apply=True)
    assert operations(again["plan"]) == {"package:broken": ["install"]}
    assert outcomes(again["apply"]) == {"package:broken": "failed"}
    managed.host.write("/etc/broken-works", "")
    managed.apply(resources.package("broken"))
    managed.apply(resources.package("broken", absent=True, purge=True))


def test_old_package_lists_are_updated_for_a_missing_package(managed: Managed) -> None:
    """Old lists are updated before a missing package is installed, and not for an installed package."""
    host = managed.host
    host.run(["touch", "-d", "3 days ago", "/var/lib/apt/lists"])
    plan = managed.plan(resources.package("tool-a", update_cache=86400))
    assert diff(plan, "package tool-a", "version") == (None, "newest")
    managed.apply(resources.package("tool-a", update_cache=86400), resources.package("tool-b", update_cache=86400))
    (fresh,) = managed.plan(resources.package("webd", update_cache=86400))
    assert "update" not in fresh["actions"][0]["args"]["packages"][0]
    host.run(["touch", "-d", "3 days ago", "/var/lib/apt/lists"])
    assert operations(managed.plan(resources.package("tool-a", update_cache=86400))) == {}
    managed.apply(resources.package("tool-a", absent=True, dependents=True))


UNIT = "[Service]\nExecStart=/bin/sleep {}\n[Install]\nWantedBy=multi-user.target\n"


def test_a_changed_unit_file_is_reloaded_before_the_unit_starts(managed: Managed) -> None:
    """systemd reloads a new or changed unit file before it starts or restarts the unit, also for drop-ins."""
    host = managed.host

    def definition(seconds: int, **wanted: Any) -> list[Graph]:
        unit = resources.file(f"{UNITS}/nap.service", content=UNIT.format(seconds))
        given = {"running": True, "enabled": True, **wanted}
        return [resources.service("nap", restart_on=[unit], **given)]

    assert operations(managed.apply(*definition(1000)))["service:nap"] == ["daemon_reload", "enable", "start"]
    assert operations(managed.apply(*definition(2000)))["service:nap"] == ["daemon_reload", "restart"]
    assert "sleep 2000" in host.run(["systemctl", "status", "nap"]).stdout
    drop_in = resources.directory(f"{UNITS}/nap.service.d")
    conf = resources.file(f"{UNITS}/nap.service.d/nice.conf", content="[Service]\nNice=5\n", requires=[drop_in])
    assert operations(managed.apply(conf, resources.service("nap", requires=[conf])))["service:nap"] == [
        "daemon_reload"
    ]
    host.write(f"{UNITS}/nap.service", UNIT.format(3000))
    assert operations(managed.apply(resources.service("nap", running=True))) == {"service:nap": ["daemon_reload"]}
    masked = resources.service("nap", running=False, enabled=False)
    managed.apply(masked)
    gone = resources.file(f"{UNITS}/nap.service", absent=True)
    managed.apply(gone)
    managed.apply(resources.service("nap", masked=True))
    assert host.run(["systemctl", "is-enabled", "nap"], check=False).stdout == "masked\n"
    (refused,) = managed.plan(resources.service("nap", running=True))
    assert "masked: false" in refused["reason"]
    (missing,) = managed.plan(resources.service("cronn", running=True))
    assert "unit cronn.service does not exist" in missing["reason"]


def test_a_template_instance_can_be_enabled_started_and_stopped(managed: Managed) -> None:
    """An instance of a template unit is enabled, started, found in a later plan, and stopped."""
    unit = resources.file(f"{UNITS}/nap@.service", content=UNIT.format("%i"))
    service = resources.service("nap@77", running=True, enabled=True, requires=[unit])
    assert operations(managed.apply(service))["service:nap@77"][-2:] == ["enable", "start"]
    managed.host.run(["systemctl", "stop", "nap@77"])
    assert operations(managed.apply(service)) == {"service:nap@77": ["start"]}
    off = resources.service("nap@77", running=False, enabled=False)
    assert operations(managed.apply(off)) == {"service:nap@77": ["disable", "stop"]}


def test_users_get_their_groups_passwords_and_homes(managed: Managed) -> None:
    """Users get groups, passwords and homes. An existing user is changed in one step and can be removed."""
    host = managed.host
    hashed = "$6$salt$" + "a" * 86
    staff = resources.group("crew", gid=4300)
    first = resources.user("worker", groups=["crew"], password_hash=hashed, requires=[staff])
    keys = resources.directory("/home/worker/.ssh", mode="0700", owner="worker", requires=[first])
    assert operations(managed.apply(keys)) == {
        "group:crew": ["groupadd"],
        "user:worker": ["useradd", "set_password"],
        "directory:/home/worker/.ssh": ["mkdir"],
    }
    assert f"worker:{hashed}:" in host.read("/etc/shadow")
    assert "crew" in host.run(["id", "-nG", "worker"]).stdout.split()
    second = resources.user(
        "worker", uid=4301, groups=[], exact_groups=True, shell="/bin/false", home="/srv", password_hash="!"
    )
    assert operations(managed.apply(second)) == {"user:worker": ["usermod", "set_password"]}
    assert operations(managed.apply(resources.group("crew", gid=4302, members=["worker"]))) == {
        "group:crew": ["groupmod", "set_members"]
    }
    assert operations(managed.apply(resources.user("worker", home="/home/worker"))) == {"user:worker": ["usermod"]}
    host.run(["chown", "-R", "worker:", "/home/worker"])
    managed.apply(resources.user("worker", absent=True, remove_home=True))
    assert not host.path("/home/worker").exists()
    service = resources.user("daemonish", system=True)
    managed.apply(service)
    assert not host.path("/home/daemonish").exists()
    managed.apply(resources.user("daemonish", absent=True))


def test_links_that_a_user_planted_are_not_followed(managed: Managed) -> None:
    """Root writes into a user's directory, but never through a link that the user put there."""
    host = managed.host
    host.run(["useradd", "--create-home", "mallory"])
    as_mallory = ["runuser", "-u", "mallory", "--"]
    host.write("/etc/precious", "secret\n", 0o600)
    for target, link in (("/etc/precious", "/home/mallory/file"), ("/etc", "/home/mallory/directory")):
        host.run([*as_mallory, "ln", "-s", target, link])
    attempts = [
        resources.file("/home/mallory/file", content="x", provides="through"),
        resources.file("/home/mallory/file", content="x", follow=True, provides="followed"),
        resources.file("/home/mallory/directory/precious", content="x", provides="below"),
        resources.directory("/home/mallory/directory", mode="0777", provides="directory"),
        resources.line_in_file("/home/mallory/file", line="x", provides="line"),
    ]
    for attempt in attempts:
        (found,) = managed.ask([attempt], apply=True)["apply"]
        assert found["outcome"] == "failed", found
    assert host.run(["stat", "-c", "%a %U", "/etc/precious"]).stdout == "600 root\n"
    assert host.read("/etc/precious") == "secret\n"
    managed.apply(resources.symlink("/home/mallory/file", absent=True))
    managed.apply(resources.file("/home/mallory/file", content="x", owner="mallory", mode="0600"))
    managed.apply(resources.directory("/home/mallory/real", owner="mallory", mode="0700"))
    assert host.read("/etc/precious") == "secret\n"
    managed.apply(resources.user("mallory", absent=True, remove_home=True))
    assert host.path("/etc/precious").exists()


def test_a_host_without_systemd_rejects_units_and_accepts_packages(light_host: lab.Host, tmp_path: Path) -> None:
    """Only systemd has units with files. Packages still work."""
    managed = prepared(light_host, tmp_path)
    (unit,) = managed.plan(resources.systemd_unit("nap", content="[Service]\nExecStart=/usr/bin/true\n"))
    assert (unit["outcome"], unit["reason"]) == ("failed", "this host runs System V, and not systemd")
    assert operations(managed.plan(resources.package("coreutils"))) == {}
