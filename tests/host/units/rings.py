"""Services with peer relations. Hooks, executors and clients are killed at random, and the data must stay correct."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests import ROOT
from tests.host.run import rig
from tests.host.units.fabric import Fabric
from tests.lab import Host, processes

# Publishes the setting under two keys, with a pause in between. Other units must never see different values.
PUBLISH = """#!/bin/bash
tick=$(config-get tick)
for id in $(relation-ids ring); do
    relation-set -r "$id" first="$tick.$$"
    sleep 0.0$((RANDOM % 8))
    relation-set -r "$id" second="$tick.$$" pad="$(printf '%01000d' "$tick")"
done
"""
# Checks that the settings of the remote unit are consistent, and that they do not change while this hook runs.
# A tool fails if its executor was killed. Then the hook stops. Otherwise it would take the empty output for a setting.
READ = """#!/bin/bash
set -e
first=$(relation-get first)
second=$(relation-get second)
sleep 0.0$((RANDOM % 8))
first_again=$(relation-get first)
second_again=$(relation-get second)
one="$first $second" two="$first_again $second_again"
[ "$first" = "$second" ] && [ "$one" = "$two" ] || echo "$JUJU_REMOTE_UNIT: $one, then $two" >> /srv/torn
"""
HOOKS = {"config-changed": PUBLISH, "ring-relation-changed": READ}


class Rings:
    """Several services, each with one unit on every host. The units of a service are peers.

    :param base: a directory for this test
    :param count: the number of services
    """

    def __init__(self, base: Path, hosts: Sequence[Host], count: int, seed: int) -> None:
        self.fabric, self.hosts, self.choose = Fabric(base, hosts), hosts, random.Random(seed)
        self.names = [f"ring{chr(97 + number)}" for number in range(count)]
        folder = self.fabric.root / "charms/ring/hooks"
        folder.mkdir(parents=True)
        for name, text in HOOKS.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        self.seen = Counter[str]()
        self.numbers: dict[str, set[int]] = {name: set() for name in self.names}
        self.tick = 0

    def play(self) -> None:
        """Write the playbook of the next round. It changes a setting, which every unit then publishes."""
        self.tick += 1
        items = [
            f"- service: {name}\n  hosts: all\n  charm: charms/ring\n  schema: {{tick: {{type: int}}}}\n"
            f"  settings: {{tick: {self.tick}}}\n"
            for name in self.names
        ]
        relations = "".join(f"    - [{name}:ring]\n" for name in self.names)
        self.fabric.play("".join(items) + f"- relations:\n{relations}")

    def hooks(self) -> list[int]:
        """Return the process ids of the hooks that run on any host.

        Omit subshells, which look like their hook until they start a tool. A hook goes on without its subshell.
        """
        above = processes.parents()
        hosts = {host.pid for host in self.hosts}
        found = []
        for pid in above:
            ancestor = pid
            while ancestor in above and ancestor not in hosts:
                ancestor = above[ancestor]
            if ancestor not in hosts:
                continue
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if any(b"/charm/hooks/" in word for word in words[:3]):
                found.append(pid)
        return [pid for pid in found if above.get(pid) not in found]

    def round(self, kills: int, also: str = "") -> int:
        """Apply once, and kill up to `kills` hooks. Return the number of killed hooks.

        :param also: "client" or "executor" is killed too, after half of the hooks
        """
        self.play()
        environment = {
            **os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "STATECFG_STORE": str(self.fabric.store),
            "STATECFG_LOCK_TIMEOUT": "60",
        }  # fmt: skip
        argv = [sys.executable, "-m", "statecfg", "apply", "site.yml", "--yes", "--json"]
        pipe = subprocess.PIPE
        killed = 0
        with subprocess.Popen(argv, cwd=self.fabric.root, env=environment, stdout=pipe, stderr=pipe, text=True) as run:
            said: list[str] = []
            reader = threading.Thread(target=lambda: said.extend(run.communicate()))
            reader.start()
            met: set[int] = set()
            while reader.is_alive():
                for pid in self.hooks():
                    if pid not in met and killed < kills and self.choose.random() < 0.7:
                        time.sleep(self.choose.uniform(0, 0.08))
                        killed += _kill(pid)
                        if also and killed >= kills // 2:
                            for victim in [run.pid] if also == "client" else rig.executors(self.hosts[0]):
                                _kill(victim)
                            self.seen[f"{also} killed"] += 1
                            also = ""
                    met.add(pid)
                time.sleep(0.01)
            reader.join()
        out, err = said
        assert "Traceback" not in out + err, out + err
        for host in self.hosts:
            processes.wait_until(lambda host=host: not rig.everything_ours(host), 30, "our processes to end")
        self.seen["hooks killed"] += killed
        self.check(json.loads(out) if out.strip() else {"hosts": {}})
        return killed

    def check(self, report: dict) -> None:
        """Check that all published settings are consistent, and that no acknowledged setting is lost."""
        for host in self.hosts:
            torn = host.path("/srv/torn")
            assert not torn.exists(), torn.read_text()
        settings = self.settings()
        for unit, found in settings.items():
            assert found.get("first") == found.get("second"), f"{unit} has inconsistent settings: {found}"
            assert ("pad" in found) == ("first" in found), f"{unit} has inconsistent settings: {found}"
        acknowledged = 0
        for host in report["hosts"].values():
            for unit in host.get("units") or ():
                for hook in unit.get("hooks") or ():
                    if hook["hook"] == "config-changed" and hook["status"] == "ok" and unit["unit"] in settings:
                        first = settings[unit["unit"]].get("first")
                        # A unit that has not yet joined its relation has published nothing.
                        assert first is None or first.split(".")[0] == str(self.tick), (unit["unit"], first, self.tick)
                        acknowledged += 1
        self.seen["settings acknowledged"] += acknowledged

    def settings(self) -> dict[str, dict[str, str]]:
        """Return the published settings of each unit."""
        units = self.fabric.units().items()
        return {name: settings for name, unit in units for settings in unit["relations"].values()}

    def renew(self) -> None:
        """Remove one unit of each service, and add a new unit on the same host."""
        now = self.fabric.units()
        for name in self.names:
            mine = [unit for unit in now if unit.startswith(f"{name}/")]
            self.numbers[name].update(int(unit.partition("/")[2]) for unit in mine)
            gone = self.choose.choice([unit for unit in mine if not now[unit]["dying"]])
            self.fabric("service", "remove-unit", gone)
            self.fabric("service", "add-unit", name, "--host", now[gone]["host"])

    def renewed(self) -> None:
        """Check that new units have numbers that no earlier unit had."""
        for name in self.names:
            fresh = {int(unit.partition("/")[2]) for unit in self.fabric.units() if unit.startswith(f"{name}/")}
            new = fresh - self.numbers[name]
            assert not new or min(new) > max(self.numbers[name], default=-1), (name, new, self.numbers[name])
            self.numbers[name] |= fresh


def _kill(pid: int) -> int:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:  # the process has just ended by itself
        return 0
    return 1


def at_random(hosts: Sequence[Host], base: Path, kills: int, seed: int, services: int = 5) -> Counter[str]:
    """Kill `kills` hooks in total, and sometimes a client or an executor. Return counts of what happened."""
    rings = Rings(base, hosts, services, seed)
    rings.play()
    rings.fabric.apply()
    number = done = 0
    while done < kills:
        number += 1
        also = {0: "client", 5: "executor"}.get(number % 10, "")
        try:
            done += rings.round(min(services * len(hosts), kills - done), also)
            if number % 4 == 0:
                rings.renew()
            rings.renewed()
        except BaseException as problem:
            problem.add_note(f"seed {seed}, round {number}")
            raise
    rings.play()
    rings.fabric.apply(code=None)
    last = rings.fabric.apply()
    assert all(not unit.get("error") for host in last.values() for unit in host.get("units", ())), last
    rings.check({"hosts": last})
    return rings.seen
