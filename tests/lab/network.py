"""The network that one test process shares with its hosts: a bridge with a /22 of 10.208.0.0/12."""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
from collections.abc import Sequence

from tests.lab import owner

_network: ipaddress.IPv4Network | None = None
_pid = 0
_taken = 0


def bridge() -> str:
    """Return the name of the bridge of this process. The first call creates it."""
    global _network, _pid, _taken
    name = f"scb{os.getpid()}"
    if _network is not None and _pid == os.getpid() and name in owner.links():
        return name
    owner.base()
    with owner.exclusive():
        used = _used()
        candidates = ipaddress.IPv4Network("10.208.0.0/12").subnets(new_prefix=22)
        _network = next(network for network in candidates if not any(network.overlaps(other) for other in used))
        _pid, _taken = os.getpid(), 0
        gateway = f"{_network[1]}/{_network.prefixlen}"
        ip([f"link add {name} type bridge", f"addr add {gateway} dev {name}", f"link set {name} up"])
    return name


def next_address() -> tuple[int, str]:
    """Return the number of the next host and its address with the prefix length. Addresses repeat after 1,000 hosts."""
    global _taken
    bridge()
    assert _network is not None
    _taken += 1
    return _taken, f"{_network[2 + (_taken - 1) % 1000]}/{_network.prefixlen}"


def connect(numbers_and_pids: Sequence[tuple[int, int]]) -> None:
    """Create an `eth0` on the bridge in the network namespaces of hosts, given as numbers and process ids."""
    name = bridge()
    lines = []
    for number, pid in numbers_and_pids:
        end = f"scv{os.getpid()}n{number}"
        lines += [f"link add {end} type veth peer name eth0 netns {pid}", f"link set {end} master {name} up"]
    ip(lines)


def ip(lines: Sequence[str]) -> None:
    """Run several commands in one call of `ip`."""
    done = subprocess.run(["ip", "-batch", "-"], input="\n".join(lines) + "\n", capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"ip: {done.stderr.strip()}")


def _used() -> list[ipaddress.IPv4Network]:
    shown = subprocess.run(["ip", "-4", "-j", "route", "show"], check=True, capture_output=True, text=True).stdout
    destinations = [route["dst"] for route in json.loads(shown)]
    return [ipaddress.IPv4Network(destination) for destination in destinations if destination != "default"]
