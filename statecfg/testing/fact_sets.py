"""The facts of imagined hosts: built-in sets, and files of recorded facts."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from statecfg.facts import catalogue, recorded
from statecfg.facts.recorded import StoredFacts
from statecfg.problems import InvalidInput, problem
from statecfg.remote.graph.suggestions import did_you_mean

# A small virtual machine; the address is of a network for documentation (RFC 5737).
_MACHINE: Mapping[str, Any] = {
    "hostname": "imagined",
    "architecture": "x86_64",
    "cpus": 2,
    "memory": 3924,
    "swap": 0,
    "disks": [{"name": "vda", "size": 20480, "model": "", "rotational": False}],
    "mounts": [{"path": "/", "device": "/dev/vda1", "type": "ext4", "options": ["rw", "relatime"], "size": 20032}],
    "addresses": [
        {"interface": "eth0", "family": "ipv4", "address": "192.0.2.10", "prefix": 24, "scope": "global"},
        {"interface": "lo", "family": "ipv4", "address": "127.0.0.1", "prefix": 8, "scope": "host"},
        {"interface": "lo", "family": "ipv6", "address": "::1", "prefix": 128, "scope": "host"},
    ],
    "routes": [
        {
            "family": "ipv4", "destination": "default", "gateway": "192.0.2.1", "interface": "eth0", "source": "",
            "metric": 0,
        },
        {
            "family": "ipv4", "destination": "192.0.2.0/24", "gateway": "", "interface": "eth0",
            "source": "192.0.2.10", "metric": 0,
        },
    ],
    "ipv4": "192.0.2.10",
    "ipv6": "",
    "timezone": "Etc/UTC",
    "init": "systemd",
    "virtualization": {"kind": "vm", "name": "kvm"},
    "machine_id": "6f2c1d0e8b7a49538c4d3e2f1a0b9c8d",
    "user": "root",
    "users": {
        "root": {"uid": 0, "gid": 0, "comment": "root", "home": "/root", "shell": "/bin/bash"},
        "daemon": {"uid": 1, "gid": 1, "comment": "daemon", "home": "/usr/sbin", "shell": "/usr/sbin/nologin"},
    },
}  # fmt: skip


def _set(
    family: str, id: str, version: str, codename: str, name: str, kernel: str, python: str, packages: dict[str, str]
) -> Mapping[str, Any]:
    system = {"family": family, "id": id, "version": version, "codename": codename, "name": name}
    return {**_MACHINE, "os": system, "kernel": kernel, "python": python, "packages": packages}


FACT_SETS: Mapping[str, Mapping[str, Any]] = {
    "debian-12": _set(
        "debian", "debian", "12", "bookworm", "Debian GNU/Linux 12 (bookworm)", "6.1.0-37-amd64", "3.11.2",
        {"libc6": "2.36-9+deb12u10", "openssh-server": "1:9.2p1-2+deb12u6", "python3": "3.11.2-1+b1",
         "systemd": "252.38-1~deb12u1"},
    ),
    "ubuntu-24.04": _set(
        "debian", "ubuntu", "24.04", "noble", "Ubuntu 24.04.3 LTS", "6.8.0-71-generic", "3.12.3",
        {"libc6": "2.39-0ubuntu8.5", "openssh-server": "1:9.6p1-3ubuntu13.13", "python3": "3.12.3-0ubuntu2",
         "systemd": "255.4-1ubuntu8.10"},
    ),
    "alma-9": _set(
        "redhat", "almalinux", "9.6", "", "AlmaLinux 9.6 (Sage Margay)", "5.14.0-570.12.1.el9_6.x86_64", "3.9.21",
        {"glibc": "2.34-168.el9_6.20", "openssh-server": "8.7p1-45.el9", "python3": "3.9.21-2.el9",
         "systemd": "252-51.el9"},
    ),
}  # fmt: skip


def fact_set(name: str) -> Mapping[str, Any]:
    """Return a copy of a built-in set of facts: `debian-12`, `ubuntu-24.04` or `alma-9`.

    :raises ValueError: the set does not exist
    """
    if name not in FACT_SETS:
        raise ValueError(f"no set of facts {name!r}; {did_you_mean(name, FACT_SETS)}")
    return copy.deepcopy(dict(FACT_SETS[name]))


def chosen(facts: str | Mapping[str, Any], root: Path) -> Mapping[str, StoredFacts]:
    """Return host → its facts, for any name of a host.

    :param facts: the name of a built-in set, a file that `statecfg facts --record` wrote, or the facts
    :param root: the directory to which the file is relative
    :raises InvalidInput: the file can't be read, or a fact is wrong
    :raises ValueError: it is neither a set nor the name of a file
    """
    if isinstance(facts, str):
        if not facts.endswith(".json"):
            return _EveryHost(StoredFacts(fact_set(facts), {}))
        hosts = recorded.read(root / facts)
        return _EveryHost(next(iter(hosts.values()))) if len(hosts) == 1 else hosts
    known = (*catalogue.NAMES, catalogue.OWN)
    for name, value in facts.items():
        wrong = catalogue.wrong_fact(name, value) if name in known else f"unknown fact `{name}`"
        if wrong:
            raise InvalidInput([problem("SC0522", f"the imagined host: {wrong}", did_you_mean(name, known))])
    own = {f"{catalogue.OWN}.{name}": value for name, value in facts.get(catalogue.OWN, {}).items()}
    return _EveryHost(StoredFacts({**{name: facts[name] for name in facts if name != catalogue.OWN}, **own}, {}))


class _EveryHost(Mapping[str, StoredFacts]):
    """The same facts for every host."""

    def __init__(self, facts: StoredFacts) -> None:
        self.facts = facts

    def __getitem__(self, host: str) -> StoredFacts:
        return self.facts

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0
