"""Plans and applies nodes in directories whose owners exchange them all the time; a host's own Python runs this file.

Each owner has loops that exchange the directory of each node with one of his own, by renaming and with links. His
directories name a program wherever a program can be named. It writes the number of the user who runs it into a file.
root must never be one of them, and must never write outside the directories.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import sys
import time
from importlib import import_module

sys.path.insert(0, sys.argv[1])
from statecfg.remote.graph.model import HostNode
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.graph.results import error
from statecfg.remote.machine.planned import Planned
from statecfg.remote.machine.real import Facets, RealMachine
from statecfg.remote.run.planning import Planner
from statecfg.remote.wire.frames import decode_node, decode_value
from statecfg.resources.index.modules import module_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2)
AT_FDCWD = -100


def exchange(one: str, other: str) -> None:
    """Exchange two names in one step. If one is missing, nothing happens."""
    libc = ctypes.CDLL(None)
    libc.renameat2(AT_FDCWD, one.encode(), AT_FDCWD, other.encode(), EXCHANGE)


def attack(uid: int, home: str, kinds: list[str], places: dict[str, str], seed: int) -> None:
    """Exchange the directories of a user until the process is killed.

    :param places: kind → the place in the home directory, for those that have a place of their own
    """
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    choose = random.Random(seed)
    while True:
        kind = choose.choice(kinds)
        place = os.path.join(home, kind)
        exchange(
            os.path.join(home, places[kind]) if kind in places else os.path.join(place, "x"),
            os.path.join(
                place, choose.choice(("evil", "evil", "good", "good", "good", choose.choice(("link", "out"))))
            ),
        )
        time.sleep(choose.choice((0, 0.0001, 0.0005, 0.002)))


def round_of(layers: list[list[HostNode]]) -> str:
    """Plan a node and take its actions. Return how it ended."""
    facets = Facets()
    plan = Planner(REGISTRY, Planned(RealMachine(facets), root=True)).plan(layers)
    steps = [step for layer in plan.layers for step in layer]
    outcome = "planned " + steps[-1].outcome
    for action in steps[-1].spec.actions:
        try:
            result = action.perform(RealMachine(facets))
        except OSError as problem:  # as in a run, the node fails
            result = error(str(problem))
        outcome = "applied " + str(result["status"])
        if result["status"] != "ok":
            break
    return outcome


def main(given: dict[str, Any]) -> None:
    """Run the rounds and print the number of each outcome, and which users ran the program."""
    seed, nodes = given["seed"], {}
    for name, each in given["nodes"].items():
        blobs = {blob.sha256: blob for blob in map(decode_value, each["blobs"])}
        for node_type in {wire["type"] for layer in each["layers"] for wire in layer}:
            import_module(module_of(node_type))
        nodes[name] = [[decode_node(wire, blobs) for wire in layer] for layer in each["layers"]]
    attackers = []
    for number, (uid, home) in enumerate(given["users"]):
        child = os.fork()
        if child == 0:
            os.nice(5)
            attack(uid, home, given["kinds"], given["places"], seed + number)
        attackers.append(child)
    seen: dict[str, int] = {}
    choose = random.Random(seed)
    try:
        for _ in range(given["rounds"]):
            name = choose.choice(sorted(nodes))
            outcome = f"{name.split()[1]} {round_of(nodes[name])}"
            seen[outcome] = seen.get(outcome, 0) + 1
    finally:
        for child in attackers:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    with open(given["ran"]) as stream:
        ran = stream.read().split()
    print(json.dumps({"seen": seen, "ran": {user: ran.count(user) for user in sorted(set(ran))}}))


if __name__ == "__main__":
    main(json.load(sys.stdin))
