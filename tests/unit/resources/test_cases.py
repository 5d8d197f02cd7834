"""The cases of all node types (`cases/*.yml`): each is planned, applied in memory, and planned again."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from statecfg import problems, resources
from statecfg.graph.graph import Graph, merge_graphs
from statecfg.playbook.compile import compile_graph
from statecfg.playbook.context import WireContext
from statecfg.remote.graph.model import Action, Blob, HostNode
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.machine.memory import MemoryMachine
from statecfg.remote.machine.planned import Planned
from statecfg.remote.machine.world import Machine, Probe, World
from statecfg.remote.run.plan import Plan
from statecfg.remote.run.planning import Planner
from statecfg.remote.wire.frames import decode_node
from statecfg.resources.databases.mariadb import mariadb
from statecfg.resources.databases.postgresql import postgresql
from statecfg.resources.databases.redis import redis_settings
from statecfg.resources.files.downloads import git_state
from statecfg.resources.network import nft
from statecfg.resources.packages.languages import gems
from statecfg.resources.programs import ansible_runs, http_requests
from tests.each import check_each
from tests.unit import ansible_loaded  # noqa: F401  # its import is all that it does

DIRECTORY = Path(__file__).parent / "cases"
ROOT = "/host"  # the first component of the paths in cases; on the real machine, a temporary directory
KEYS = {"case", "files", "modes", "links", "facets", "probes", "before", "node", "with", "ops", "args", "changes"}
KEYS |= {"after", "error", "bad", "known_after", "only", "local", "again"}

# These node types manage things at fixed places, such as /etc/hostname. No test applies them to the machine it runs on.
FIXED = {
    "alternative", "apt_pin", "apt_repository", "authorized_key", "ca_certificate", "compose_project", "container",
    "container_image", "cron", "debconf", "diversion", "dnf_group", "dnf_module", "dnf_repository",
    "filesystem", "host_entry", "hostname", "kernel_module", "known_host", "limits", "locale", "logrotate", "mount",
    "lvm_logical_volume", "lvm_volume_group",
    "nftables", "pam", "password_aging", "quadlet", "reboot", "ssh_config", "sshd_config", "sudoers", "swap", "sysctl",
    "pacman_repository", "selinux_boolean", "selinux_fcontext", "selinux_port", "systemd_unit", "timezone",
    "ufw", "ufw_rule", "zypper_repository",
}  # fmt: skip
# Programs of node types that are too long for a case.
PROGRAMS = {
    "ansible": " ".join(ansible_runs.command()),
    "http": " ".join(http_requests.command()),
    "gems": " ".join(gems.RUBY),
    "git": " ".join(["git", *git_state.SAFE]),
    "mariadb": " ".join([*mariadb.command(mariadb.SOCKET), f"--execute={mariadb.MODE}"]),
    "redis": " ".join(redis_settings.command("6379", "")[:-1]),
    "nft": " ".join(["unshare", "--net", "sh", "-c", nft.TRIAL, "sh"]),
    "psql": " ".join(postgresql.command(5432, "")[:-1]),
}
READ_ONLY = {"assertion"}  # their nodes never have actions
PATIENT = {"reboot", "wait_for"}  # their checks never fail: what they look for may still come


PATHS = {path.stem: path for path in DIRECTORY.rglob("*.yml")}  # each has the name of its node type
FILES = sorted(PATHS)


@dataclass(frozen=True)
class Case:
    """A case of a file, and its place: `file.yml:line: title`."""

    place: str
    data: dict[str, Any]

    def meant_for(self, machine: str) -> bool:
        """Return whether a case is for this kind of machine. A case without `only` is for all kinds.

        No case writes outside its own directory on the machine of the tests.
        """
        data = self.data
        if machine == "real" and not all(f"{path}/".startswith(f"{ROOT}/") for path in data.get("files", ())):
            return False
        types = {next(iter(node)) for node in (data["node"], *data.get("with", ()), *data.get("before", ()))}
        if machine == "real" and types & FIXED:
            return False
        return bool(data.get("only", machine) == machine)


@functools.cache
def cases_of(file: str) -> tuple[Case, ...]:
    """Return the cases of a file."""
    loader = yaml.CSafeLoader(PATHS[file].read_text(encoding="utf-8"))
    read = []
    for node in loader.get_single_node().value:
        data = loader.construct_document(node)
        place = f"{file}.yml:{node.start_mark.line + 1}: {data.get('case')}"
        assert set(data) <= KEYS, f"{place}: unknown keys {set(data) - KEYS}"
        read.append(Case(place, data))
    return tuple(read)


def by_place(cases: Iterable[Case]) -> dict[str, dict[str, Any]]:
    """Return the data of each case by its place."""
    return {case.place: case.data for case in cases}


def declared(description: Mapping[str, Any]) -> Graph:
    """Return the graph of a node in YAML notation: the type with its argument, then the attributes."""
    (kind, argument), *attributes = description.items()
    graph = getattr(resources, kind)(argument, **dict(attributes))
    assert isinstance(graph, Graph)
    return graph


def layers(graphs: Sequence[Graph], project: Path) -> list[list[HostNode]]:
    """Return the nodes in the form in which a host receives them, with all content."""
    definition = compile_graph(merge_graphs(*graphs), WireContext(base=project))
    blobs: dict[str, Blob] = dict(definition.blobs)
    return [[decode_node(wire, blobs) for wire in layer] for layer in definition.layers]


def planned(machine: Any, nodes: list[list[HostNode]]) -> Plan:
    """Return a plan for `machine`, which stays unchanged."""
    return Planner(REGISTRY, Planned(machine, root=True)).plan(nodes)


def actions(plan: Plan) -> list[Action]:
    """Return the actions of a plan, without shutdown-first actions."""
    return [action for layer in plan.layers for step in layer for action in step.spec.actions]


def taken(machine: Machine, plan: Plan) -> None:
    """Perform the actions of a plan on a machine."""
    for action in actions(plan):
        result = action.perform(machine)
        assert result["status"] == "ok", f"{action.op}: {result}"


def look(world: World, path: str, wanted: Any) -> None:
    """Compare a path with the expected state: `None` for nothing, a content, or a map of fields."""
    stat = world.stat(path)
    if wanted is None:
        assert stat is None, f"{path} is there: {stat}"
        return
    assert stat is not None, f"{path} is not there"
    fields = wanted if isinstance(wanted, dict) else {"content": wanted}
    for field, value in fields.items():
        if field == "content":
            assert world.read(path).decode() == value
        else:
            found = f"{stat.mode:04o}" if field == "mode" else getattr(stat, field)
            assert found == value, f"{field} of {path}"


def compare(case: Mapping[str, Any], plan: Plan) -> None:
    """Compare a plan with the expectations of a case."""
    (step,) = (step for layer in plan.layers for step in layer if step.node.provides == name_of(case["node"]))
    if "error" in case:
        assert step.outcome == "failed", (step.outcome, [action.op for action in step.spec.actions])
        assert case["error"] in step.reason
        return
    assert step.outcome != "failed", step.reason
    if "known_after" in case:
        assert (step.outcome, step.known_after) == ("unknown", case["known_after"])
        return
    assert [action.op for action in step.spec.actions] == case.get("ops", []), step.reason
    assert step.outcome == ("changed" if case.get("ops") else "unchanged")
    for action, wanted in zip(step.spec.actions, case.get("args", []), strict=False):
        assert {name: action.args[name] for name in wanted} == wanted
    found = {f"{change['object']} {change['field']}": change for change in step.changes}
    for what, wanted in case.get("changes", {}).items():
        assert what in found, sorted(found)
        if isinstance(wanted, list):
            assert [found[what]["before"], found[what]["after"]] == wanted
        elif wanted is not None:
            assert wanted in found[what]["diff"]


def facets(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facets of a case. The text of a field `content` becomes content."""
    return {
        name: {
            key: {field: Blob.of(value) if field == "content" else value for field, value in fields.items()}
            for key, fields in entries.items()
        }
        for name, entries in case.get("facets", {}).items()
    }


def answer(argv: str, result: Sequence[Any]) -> tuple[str, Probe]:
    """Return a command line, with the names of long programs replaced, and its result: status, stdout, stderr."""
    for name, program in PROGRAMS.items():
        argv = argv.replace(f"{{{name}}}", program)
    status, *texts = result
    return argv, Probe(status, *(text.encode() for text in texts))


def name_of(description: Mapping[str, Any]) -> str:
    """Return the name of a node in YAML notation."""
    kind, argument = next(iter(description.items()))
    return str(description.get("provides", f"{kind}:{argument}"))


def project(case: Mapping[str, Any], directory: Path) -> Path:
    """Write the local files of a case. Return the directory of the project."""
    directory.mkdir()
    for name, content in case.get("local", {}).items():
        path = directory / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir(exist_ok=True)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            path.chmod(0o755 if path.read_bytes().startswith(b"#!") else 0o644)
    return directory


def arrange(machine: Machine, case: Mapping[str, Any], base: Path) -> None:
    """Create the initial state of a case on a machine."""
    for path, content in case.get("files", {}).items():
        if content is None:
            machine.mkdir(path, parents=True)
        else:
            machine.mkdir(os.path.dirname(path), parents=True)
            machine.write(path, content)
    for path, target in case.get("links", {}).items():
        machine.symlink(path, target)
    for path, mode in case.get("modes", {}).items():
        machine.chmod(path, int(mode, 8))
    if case.get("before"):
        taken(machine, planned(machine, layers([declared(node) for node in case["before"]], base)))


@pytest.mark.parametrize("file", FILES)
def test_bad_attributes_are_refused(file: str) -> None:
    """The declaration of a node with invalid attributes fails, and the message names the reason."""
    check_each(by_place(case for case in cases_of(file) if "bad" in case.data), refused)


def refused(case: Mapping[str, Any]) -> None:
    with pytest.raises(problems.InvalidInput) as caught:
        declared(case["node"])
    said = " ".join(f"{found.summary} {found.detail} {found.help}" for found in caught.value.problems)
    assert case["bad"] in said


@pytest.mark.parametrize("file", FILES)
def test_cases_are_planned_and_applied_in_memory(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan is as expected and changes nothing. Applying it has the expected result and leaves nothing to do."""
    monkeypatch.setenv("STATECFG_STATE_DIR", f"{ROOT}/state")
    directories = (tmp_path / str(number) for number in itertools.count())
    check_each(
        by_place(case for case in cases_of(file) if "bad" not in case.data and case.meant_for("memory")),
        lambda case: applied_in_memory(case, next(directories)),
    )


def applied_in_memory(case: Mapping[str, Any], directory: Path) -> None:
    probes = dict(answer(*item) for item in case.get("probes", {}).items())
    base = project(case, directory)
    machine = MemoryMachine({ROOT: None}, facets(case), probes)
    machine.turn("test")
    arrange(machine, case, base)
    nodes = layers([declared(node) for node in [case["node"], *case.get("with", [])]], base)
    plan = planned(machine, nodes)
    compare(case, plan)
    if "error" in case or "known_after" in case:
        return
    compare(case, planned(machine, nodes))  # the first plan changed nothing, so a second plan is the same
    machine.turn("test")
    taken(machine, plan)
    for path, wanted in case.get("after", {}).items():
        look(machine, path, wanted)
    again = planned(machine, nodes)
    assert [action.op for action in actions(again)] == case.get("again", [])


def test_every_node_type_has_cases_of_each_kind() -> None:
    """Each node type in Python has cases of four kinds: invalid attributes, errors, changes, and no changes."""
    types = {path.stem for path in Path(resources.__path__[0]).rglob("*.py")}.intersection(resources.available())
    assert len(types) > 80 and set(FILES) >= types
    for name in types:
        mine = [case.data for case in cases_of(name)]
        assert any("bad" in case for case in mine), name
        assert name in PATIENT or any("error" in case for case in mine), name
        assert name in READ_ONLY or any(case.get("ops") for case in mine), name
        assert any(not {"bad", "error", "ops", "known_after"} & set(case) for case in mine), name


def test_password_hash_is_treated_as_a_secret(tmp_path: Path) -> None:
    """A password hash in plain text is a secret too, so reports mask it."""
    graph = resources.user("deploy", password_hash="$6$salt$hash")
    assert compile_graph(graph, WireContext(base=tmp_path)).secrets == {"password-of-deploy": "$6$salt$hash"}
