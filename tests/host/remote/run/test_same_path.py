"""Nodes of one layer that touch the same path run one at a time, in the planned order, and are undone likewise."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from statecfg.remote.run.node_run import NodeRun
from statecfg.remote.run.plan import Touches
from statecfg.remote.run.touching import chains
from statecfg.resources import command, file, line_in_file, symlink
from tests.host.remote.managed import Machine, fine
from tests.host.resources.undo import different, snapshot


def test_a_file_and_its_lines_can_change_in_one_layer(machine: Machine, host: Path) -> None:
    path = host / "sshd_config"
    for turn in range(6):
        path.write_text("#Port 22\nUsePAM yes\n")
        path.chmod(0o644)
        before = snapshot(host)
        nodes = [
            file(str(path), mode="0600"),
            line_in_file(str(path), line="Port 2222", match="^#?Port"),
            line_in_file(str(path), line="PermitRootLogin no", provides="root"),
        ]
        assert set(fine(machine.run(*nodes)).outcomes().values()) == {"changed"}, turn
        assert path.read_text() == "Port 2222\nUsePAM yes\nPermitRootLogin no\n"
        assert path.stat().st_mode & 0o7777 == 0o600
        assert set(fine(machine.run(*nodes)).outcomes().values()) <= {"unchanged"}
        fine(machine.run(mode="destroy", yes=True))
        assert different(before, snapshot(host)) == {}


def test_nodes_of_one_path_run_in_the_planned_order(machine: Machine, host: Path) -> None:
    for turn in range(4):
        path = host / f"f{turn}"
        path.write_text("")
        nodes = [line_in_file(str(path), line=name, provides=f"line:{name}") for name in "hgfedcba"]
        said = fine(machine.run(*nodes))
        planned = [node["name"].removeprefix("line:") for node in said.part("layers") if node["type"] == "line_in_file"]
        assert path.read_text().split() == planned[-8:] and sorted(planned[-8:]) == list("abcdefgh")


def test_nodes_that_reach_one_file_by_different_paths_do_not_collide(machine: Machine, host: Path) -> None:
    """A link to its directory and a hard link lead to the same file, so all count as the same path."""
    (host / "real").mkdir()
    (host / "real/f").write_text("a\n")
    (host / "way").symlink_to("real")
    (host / "hard").hardlink_to(host / "real/f")
    for turn in range(6):
        nodes = [
            *(line_in_file(str(host / "way/f"), line=f"{turn} {n}", provides=f"line{n}") for n in range(4)),
            file(str(host / "real/f"), mode="0600" if turn % 2 else "0640"),
        ]
        assert set(fine(machine.run(*nodes)).outcomes().values()) == {"changed"}, turn
        linked = [file(str(host / "hard"), mode=f"06{turn}4"), line_in_file(str(host / "way/f"), line=f"linked {turn}")]
        (host / "hard").unlink()
        (host / "hard").hardlink_to(host / "real/f")
        assert set(fine(machine.run(*linked, playbook="linked")).outcomes().values()) == {"changed"}, turn


def test_destroy_undoes_nodes_of_one_path_in_reverse_order(machine: Machine, host: Path) -> None:
    """Each node remembers what it found. Undone in reverse order, they restore the original file."""
    path = host / "f"
    path.write_text("a\n")
    path.chmod(0o644)
    before = snapshot(host)
    fine(machine.run(file(str(path), mode="0600")))
    fine(machine.run(file(str(path), mode="0640"), symlink(str(host / "other"), target="f")))
    shared = [file(str(path), mode="0640"), line_in_file(str(path), line="b", mode="0640", provides="a line")]
    fine(machine.run(*shared))
    fine(machine.run(mode="destroy", yes=True))
    assert different(before, snapshot(host)) == {}


# Nodes that were planned as unchanged and then had to change


def test_a_failure_names_the_node_that_changed_the_resource(machine: Machine, host: Path) -> None:
    path = str(host / "f")
    nodes = [file(path, content="ours\n"), file(str(host / "other"), content="x\n")]
    fine(machine.run(*nodes))
    (host / "other").unlink()
    said = machine.run(command("spoil", shell=f"rm {path}"), *nodes)
    failed = {node["name"]: node for node in said.part("layers", "layer")}
    assert failed[f"file:{path}"]["outcome"] == "failed"
    reason = "it was planned as unchanged, but command:spoil, which it does not require, changed what it manages"
    assert reason in failed[f"file:{path}"]["reason"]
    assert "add command:spoil to its `requires`" in failed[f"file:{path}"]["reason"]
    assert failed[f"file:{host}/other"]["outcome"] == failed["command:spoil"]["outcome"] == "changed"


def test_declared_effects_identify_the_node_that_made_the_change(machine: Machine, host: Path) -> None:
    path = str(host / "d" / "f")
    (host / "d").mkdir()
    fine(machine.run(file(path, content="ours\n")))
    idle = [command(f"idle{n}", argv=["true"], effects={"files": [f"{host}/e{n}"]}) for n in range(3)]
    spoil = command("spoil", shell=f"rm {path}", effects={"files": [f"{host}/d"]})
    said = machine.run(*idle, spoil, file(path, content="ours\n"))
    (reason,) = [node["reason"] for node in said.part("layers", "layer") if node["outcome"] == "failed"]
    assert "command:spoil, which it does not require," in reason and "idle" not in reason


def test_a_failure_names_all_nodes_that_could_have_made_the_change(machine: Machine, host: Path) -> None:
    path = str(host / "f")
    fine(machine.run(file(path, content="ours\n")))
    said = machine.run(command("a", argv=["true"]), command("b", shell=f"rm {path}"), file(path, content="ours\n"))
    (reason,) = [node["reason"] for node in said.part("layers", "layer") if node["outcome"] == "failed"]
    assert "one of command:a, command:b, none of which it requires," in reason


def test_nodes_that_change_the_same_unit_run_one_at_a_time() -> None:
    """Effects on a whole facet or on everything don't make nodes wait for each other."""

    def doing(*effects: tuple[str, str]) -> NodeRun:
        touches = Touches(effects=effects)
        step: Any = SimpleNamespace(touches=touches, spec=None, outcome="changed", reason="")
        return NodeRun(step)

    service, socket = ("units", "ssh.service"), ("units", "ssh.socket")
    nodes = [doing(service), doing(("units", "*"), ("*", "*")), doing(socket, service), doing(("*", "*"))]
    assert chains(nodes) == [[nodes[0], nodes[2]], [nodes[1]], [nodes[3]]]


def test_destroy_says_that_a_resource_stays_for_another_playbook(machine: Machine, host: Path) -> None:
    path = str(host / "f")
    fine(machine.run(file(path, content="x\n"), playbook="one"))
    fine(machine.run(file(path, content="x\n"), playbook="two"))
    said = fine(machine.run(mode="destroy", yes=True, playbook="two"))
    for kind in ("planned", "layer"):
        (node,) = said.part("removals", kind)
        assert node["reason"] == f"it stays: file:{path} of one manages the same object"
    fine(machine.run(mode="destroy", yes=True, playbook="one"))
    assert not (host / "f").exists()
