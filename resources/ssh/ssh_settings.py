"""Drop-in files of ssh and sshd: their check, and the op that lets sshd validate its whole configuration."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from statecfg.remote.graph.model import Action, Blob, CheckError, HostNode, Unknown
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result, error
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.services import sshd
from statecfg.resources.shared import drop_ins, whole

SERVER = "/etc/ssh/sshd_config"
CLIENT = "/etc/ssh/ssh_config"


@op(name="write", mutex="sshd")
def write(
    machine: Machine,
    path: str,
    content: Blob,
    mode: int | None = None,
    owner: str | None = None,
    group: str | None = None,
    backup: str | None = None,
    validate: list[str] | None = None,
) -> Result:
    """Write a file of sshd's configuration. If sshd refuses the whole configuration then, restore the former file."""
    # In a plan, nothing has to be restored.
    stat = machine.stat(path) if isinstance(machine, RealMachine) else None
    former = machine.read(path) if stat is not None else b""
    result = machine.write(path, content, mode, owner, group)
    if result["status"] != "ok":
        return result
    refusal = sshd.refusal(machine)
    if not refusal:
        return result
    if not isinstance(machine, RealMachine):
        return error(f"sshd refuses the new configuration: {refusal}")
    return whole.taken_back(machine, path, stat, former, "sshd", refusal)


def check_server(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare a drop-in file of sshd.

    :raises CheckError: if sshd does not read such files on this host
    """
    if not node.attrs.get("absent"):
        require_include(world, SERVER)
    return drop_ins.compare(node, nodes, world, write)


def check_client(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare a drop-in file of ssh.

    :raises CheckError: if ssh does not read such files on this host
    """
    if not node.attrs.get("absent"):
        require_include(world, CLIENT)
    return drop_ins.check(node, nodes, world)


def require_include(world: World, main: str) -> None:
    """Check that a configuration includes its directory of drop-in files, as far as this is known now.

    :param main: the path of the configuration
    :raises CheckError: if it does not
    """
    try:
        text = world.read(main).decode("utf-8", "replace") if world.stat(main) is not None else None
    except Unknown:
        return
    if text is None:
        raise CheckError(f"{main} does not exist; require the package of OpenSSH")
    folder, name = map(re.escape, posixpath.split(main))  # a relative path is one in the folder
    if not re.search(rf'^\s*include[\s=]+(.*\s)?"?({folder}/)?{name}\.d/\*', text, re.M | re.I):
        help = 'add the line "Include %s.d/*.conf" at its beginning with line_in_file, and require that node'
        raise CheckError(("%s does not include %s.d, so the file would have no effect; " + help) % (main, main, main))
