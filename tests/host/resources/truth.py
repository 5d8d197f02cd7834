"""Cases for every node type, which tests run on hosts in four states to compare each plan with its apply.

A case declares nodes, prepares a bare host for them, and changes the host by hand so that the nodes drift.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from statecfg.graph.graph import Graph, merge_graphs
from statecfg.playbook.compile import WireContext, compile_graph
from statecfg.playbook.inventory import Host as Target
from statecfg.playbook.inventory import Login
from statecfg.resources import (
    block_in_file,
    command,
    directory,
    file,
    group,
    line_in_file,
    package,
    process,
    replace,
    service,
    symlink,
    user,
)
from statecfg.run import fleet
from statecfg.transport import SshSettings
from tests.lab import Host

STATES = ("bare", "converged", "drifted", "half-failed")


@dataclass(frozen=True)
class Case:
    """A case of one node type.

    `declare(root, requires)` returns its graphs; `bare(host, root)` prepares a bare host; `drift(host, root)` changes
    the host by hand.
    """

    type: str
    declare: Callable[[str, list[Graph]], list[Graph]]
    drift: Callable[[Host, str], None]
    bare: Callable[[Host, str], None] = lambda host, root: None
    known_after: Sequence[str] = field(default=())


def fleet_run(
    host: Host, graphs: Sequence[Graph], mode: str, playbook: str = "truth", **options: Any
) -> dict[str, Any]:
    """Run the graphs on a test host over SSH; return the host's part of the report."""
    target = Target(host.name, host.address, host.port, login=Login(host.user, (str(host.identity),)))
    settings = SshSettings(ssh_config="none", known_hosts=(str(host.known_hosts),), use_agent=False, default_keys=False)
    definition = compile_graph(merge_graphs(*graphs), WireContext(host.name, {}, (), Path.cwd()))
    job = fleet.Job(target, definition, playbook)
    report = fleet.run([job], fleet.Options(mode=mode, access=fleet.Access(settings), **options), lambda event: None)
    found: dict[str, Any] = report["hosts"][host.name]
    return found


def nodes(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the report's nodes by name."""
    return {node["name"]: node for layer in report["layers"] for node in layer}


def steps(node: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the op and the arguments of each action of a node, in order."""
    first = [node["shutdown_first"]] if node.get("shutdown_first") else []
    return [(action["op"], action["args"]) for action in [*first, *node["actions"]]]


def _file(root: str, requires: list[Graph]) -> list[Graph]:
    above = directory(root, requires=requires)
    return [
        file(f"{root}/plain", content="one\ntwo\n", mode="0640", owner="daemon", group="daemon", requires=[above]),
        file(f"{root}/large", content="x" * 20_000, requires=[above]),
        file(f"{root}/gone", absent=True, requires=[above]),
    ]


def _file_drift(host: Host, root: str) -> None:
    host.write(f"{root}/plain", "one\n")
    host.path(f"{root}/large").chmod(0o600)
    host.write(f"{root}/gone", "back again\n")


def _directory(root: str, requires: list[Graph]) -> list[Graph]:
    above = directory(root, mode="0750", purge=True, requires=requires)
    return [
        directory(f"{root}/in", owner="daemon", requires=[above]),
        file(f"{root}/kept", content="k", requires=[above]),
    ]


def _directory_drift(host: Host, root: str) -> None:
    host.write(f"{root}/stray/deep", "nobody asked for this\n")
    host.path(root).chmod(0o700)
    host.path(f"{root}/in").rmdir()


def _symlink(root: str, requires: list[Graph]) -> list[Graph]:
    above = directory(root, requires=requires)
    return [
        symlink(f"{root}/current", target=f"{root}/v1", requires=[above]),
        symlink(f"{root}/old", absent=True, requires=[above]),
    ]


def _symlink_drift(host: Host, root: str) -> None:
    host.run(["ln", "-sfn", "/elsewhere", f"{root}/current"])
    host.run(["ln", "-s", "/elsewhere", f"{root}/old"])


def _package(root: str, requires: list[Graph]) -> list[Graph]:
    return [package("tool-b", requires=requires), package("tool-a", version="1.0", requires=requires)]


def _package_drift(host: Host, root: str) -> None:
    host.run(["apt-get", "-qy", "remove", "tool-b"])
    host.run(["apt-get", "-qy", "install", "tool-a=2.0"])


def _service(root: str, requires: list[Graph]) -> list[Graph]:
    webd = package("webd", version="1.0", requires=requires)
    text = "port = 8080\nmessage = planned\n"
    config = file("/etc/webd/webd.conf", content=text, mode="0644", requires=[webd])
    return [service("webd", running=True, enabled=True, restart_on=[config])]


def _service_drift(host: Host, root: str) -> None:
    host.write("/etc/webd/webd.conf", "port = 8080\nmessage = by hand\n")
    host.run(["systemctl", "disable", "webd"])


def _user(root: str, requires: list[Graph]) -> list[Graph]:
    team = group("team", gid=4321, requires=requires)
    return [
        user("deploy", uid=4322, group="team", groups=["daemon"], shell="/bin/sh", comment="Deploys", requires=[team])
    ]


def _user_drift(host: Host, root: str) -> None:
    host.run(["usermod", "-s", "/usr/sbin/nologin", "-c", "somebody else", "deploy"])


def _group(root: str, requires: list[Graph]) -> list[Graph]:
    return [group("crew", gid=4400, requires=requires), group("nocrew", absent=True, requires=requires)]


def _group_drift(host: Host, root: str) -> None:
    host.run(["groupmod", "-g", "4401", "crew"])
    host.run(["groupadd", "nocrew"])


def _command(root: str, requires: list[Graph]) -> list[Graph]:
    made = directory(root, requires=requires)
    build = command(
        "build", argv=["cp", "/etc/hostname", f"{root}/built"], creates=f"{root}/built", effects={}, requires=[made]
    )
    script = f"echo told >> {root}/log"
    told = command("tell", shell=script, unless=f"grep -q told {root}/log 2>/dev/null", requires=[build])
    return [told, file(f"{root}/after", content="after\n", requires=[build])]


def _command_drift(host: Host, root: str) -> None:
    host.path(f"{root}/built").unlink()


def _line(root: str, requires: list[Graph]) -> list[Graph]:
    above = directory(root, requires=requires)
    path = f"{root}/conf"
    return [
        line_in_file(
            path, line="color = blue", match="^color", create=True, mode="0644", requires=[above], provides="color"
        ),
        line_in_file(path, line="size = 3", match="^size", requires=["color"], provides="size"),
    ]


def _line_drift(host: Host, root: str) -> None:
    host.write(f"{root}/conf", "color = red\nshape = round\n")


def _block(root: str, requires: list[Graph]) -> list[Graph]:
    above = directory(root, requires=requires)
    path = f"{root}/conf"
    return [
        block_in_file(
            path, block="color = blue\nsize = 3\n", name="a", create=True, mode="0644", requires=[above], provides="a"
        ),
        block_in_file(path, block="shape = round", before="^# BEGIN", requires=["a"], provides="b"),
    ]


def _block_drift(host: Host, root: str) -> None:
    text = "# BEGIN managed by statecfg: a\ncolor = red\n# END managed by statecfg: a\nby hand\n"
    host.write(f"{root}/conf", text)


def _replace_bare(host: Host, root: str) -> None:
    host.write(f"{root}/conf", "color = red\n#size = 1\n")


def _replace(root: str, requires: list[Graph]) -> list[Graph]:
    above = directory(root, requires=requires)
    path = f"{root}/conf"
    color = replace(path, pattern="^color = .*", replacement="color = blue", requires=[above], provides="color")
    return [
        color,
        replace(path, pattern=r"^#(\w+) = \d+", replacement=r"\1 = 3", requires=["color"], provides="size"),
    ]


def _replace_drift(host: Host, root: str) -> None:
    host.write(f"{root}/conf", "color = green\nby hand\n#size = 2\n")


def _process(root: str, requires: list[Graph]) -> list[Graph]:
    attrs = {"user": "root", "group": "root", "env": {"A": "1"}, "args": ["7301"], "requires": requires}
    return [process("/usr/bin/sleep", attrs)]


def _process_drift(host: Host, root: str) -> None:
    host.run(["pkill", "-f", "sleep 7301"])


CASES = [
    Case("file", _file, _file_drift),
    Case("directory", _directory, _directory_drift),
    Case("symlink", _symlink, _symlink_drift),
    Case("package", _package, _package_drift),
    Case("service", _service, _service_drift),
    Case("user", _user, _user_drift),
    Case("group", _group, _group_drift),
    Case("command", _command, _command_drift),
    Case("line_in_file", _line, _line_drift),
    Case("block_in_file", _block, _block_drift),
    Case("replace", _replace, _replace_drift, _replace_bare),
    Case("process", _process, _process_drift),
]
