"""Compare statecfg with Ansible, Ansible with Mitogen, and pyinfra: 101 resources, 1 and 20 hosts, nothing to change.

    python bench/peers.py [--runs N] [--hosts 1,20]

Needs root and PyPI. It installs the other tools into a temporary virtual environment. Each run measures all tools one
after the other, so a slow machine affects all of them. The bars are for 1 host.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from bench import figures
from bench.commands import ENVIRONMENT, ROOT
from bench.project import FOLDER, Project
from tests import lab

PACKAGES = ("ansible-core", "mitogen", "pyinfra")
FORKS = 32
BARS = {"ansible": 90.0, "mitogen": 10.0, "pyinfra": 20.0}  # how many times as long as statecfg a tool takes on 1 host
ANSIBLE = f"""\
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.file: {{path: {FOLDER}, state: directory}}
    - ansible.builtin.copy:
        dest: "{FOLDER}/f{{{{ item }}}}"
        content: "hello {{{{ item }}}}\\n"
        mode: "0644"
      loop: "{{{{ range(100) | list }}}}"
"""
PYINFRA = f"""\
from io import StringIO
from pyinfra.operations import files

files.directory(path="{FOLDER}")
for n in range(100):
    files.put(src=StringIO(f"hello {{n}}\\n"), dest=f"{FOLDER}/f{{n}}", mode="644")
"""


@dataclass(frozen=True)
class Tool:
    """A tool's command for the same work.

    :param argv: the command
    :param unchanged: text that the output contains `times` times if nothing had to change
    :param environment: more environment variables
    """

    argv: Sequence[str]
    unchanged: str
    times: int
    environment: Mapping[str, str] = field(default_factory=dict)


class Peers:
    """The work, defined for each tool in a scratch directory.

    :param directory: the scratch directory
    :param hosts: the hosts, with SSH servers
    """

    def __init__(self, directory: Path, hosts: list[lab.Host]) -> None:
        self.directory, self.key, self.known = directory, str(hosts[0].identity), directory / "known_hosts"
        lab.write_known_hosts(self.known, hosts)
        (directory / "ansible.yml").write_text(ANSIBLE)
        (directory / "deploy.py").write_text(PYINFRA)
        self.programs = directory / "venv"
        venv.create(self.programs, with_pip=True)
        self.call([self.program("pip"), "install", "--quiet", "--disable-pip-version-check", *PACKAGES], {})
        site = next(self.programs.glob("lib/python3*/site-packages"))
        self.strategies = str(site / "ansible_mitogen/plugins/strategy")
        found = importlib.metadata.distributions(path=[str(site)])
        self.versions = {each.metadata["Name"].lower(): each.version for each in found}

    def program(self, name: str) -> str:
        return str(self.programs / "bin" / name)

    def call(self, argv: Sequence[str], environment: Mapping[str, str]) -> str:
        """Run a command and return its output.

        :raises SystemExit: the command failed; the message contains the end of its output
        """
        done = subprocess.run(
            argv, cwd=self.directory, capture_output=True, text=True,
            env={**ENVIRONMENT, "HOME": str(self.directory), "PYTHONPATH": str(ROOT), **environment},
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(f"{argv}: exit code {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done.stdout + done.stderr

    def tools(self, hosts: list[lab.Host]) -> dict[str, Tool]:
        """Return the tools by name, with commands for these hosts."""
        project = Project.of(self.directory / f"statecfg-{len(hosts)}", hosts)
        ansible, settings = self.ansible(hosts), {"ANSIBLE_PIPELINING": "True", "ANSIBLE_FORKS": str(FORKS)}
        mitogen = {"ANSIBLE_STRATEGY_PLUGINS": self.strategies, "ANSIBLE_STRATEGY": "mitogen_linear"}
        return {
            "statecfg": Tool(project.command(), f"{101 * len(hosts):,} unchanged", 1, project.environment),
            "ansible": Tool(ansible, "changed=0", len(hosts), settings),
            "mitogen": Tool(ansible, "changed=0", len(hosts), {**settings, **mitogen}),
            "pyinfra": Tool(self.pyinfra(hosts), "No change", 101 * len(hosts)),
        }

    def ansible(self, hosts: list[lab.Host]) -> list[str]:
        inventory = self.directory / f"ansible-{len(hosts)}.ini"
        lines = "".join(f"{each.name} ansible_host={each.address}\n" for each in hosts)
        inventory.write_text(
            f"{lines}[all:vars]\nansible_user=root\nansible_ssh_private_key_file={self.key}\n"
            "ansible_python_interpreter=/usr/bin/python3\n"
            f"ansible_ssh_common_args=-o UserKnownHostsFile={self.known} -F none\n"
        )
        return [self.program("ansible-playbook"), "-i", str(inventory), "ansible.yml"]

    def pyinfra(self, hosts: list[lab.Host]) -> list[str]:
        inventory = self.directory / f"inventory_{len(hosts)}.py"
        data = {"ssh_user": "root", "ssh_key": self.key, "ssh_known_hosts_file": str(self.known)}
        inventory.write_text(f"hosts = {[(each.address, data) for each in hosts]!r}\n")
        return [self.program("pyinfra"), "-y", "--parallel", str(FORKS), str(inventory), "deploy.py"]


def main() -> int:
    """Measure all tools on each number of hosts. Return 1 if a bar is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=3, help="measured runs of each tool, after caches are filled")
    parser.add_argument("--hosts", default="1,20", help="numbers of hosts")
    options = parser.parse_args()
    sizes = [int(size) for size in options.hosts.split(",")]
    with tempfile.TemporaryDirectory() as scratch:
        hosts = lab.light_hosts(max(sizes))
        try:
            peers = Peers(Path(scratch), hosts)
            print(", ".join(f"{name} {peers.versions[name]}" for name in PACKAGES))
            tools = {size: peers.tools(hosts[:size]) for size in sizes}
            for tool in (tools[max(sizes)]["statecfg"], *tools[min(sizes)].values()):
                peers.call(tool.argv, tool.environment)  # creates the files; fills the caches of the controller
            bars = figures.Bars()
            for size in sizes:
                measure(peers, tools[size], size, options.runs, bars)
        finally:
            lab.close_all()
    return bars.status


def measure(peers: Peers, tools: Mapping[str, Tool], hosts: int, runs: int, bars: figures.Bars) -> None:
    """Print the median time of each tool, and its ratio to that of statecfg."""
    times: dict[str, list[float]] = {name: [] for name in tools}
    for _ in range(runs):
        for name, tool in tools.items():
            started = time.perf_counter()
            output = peers.call(tool.argv, tool.environment)
            times[name].append(time.perf_counter() - started)
            if output.count(tool.unchanged) != tool.times:
                raise SystemExit(f"{name}: expected {tool.times} times {tool.unchanged!r}:\n{output[-3000:]}")
    for name, values in times.items():
        ratio = statistics.median(theirs / ours for theirs, ours in zip(values, times["statecfg"], strict=True))
        verdict = f"   ({bars.at_least(ratio, BARS[name], 'x')})" if hosts == 1 and name in BARS else ""
        print(f"{hosts:4} hosts  {name:10} {statistics.median(values):8.2f} s   {ratio:6.1f} x{verdict}", flush=True)


if __name__ == "__main__":
    if os.geteuid() != 0:
        raise SystemExit("bench/peers.py creates hosts, which only root can do")
    sys.exit(main())
