"""Files of logrotate's configuration: their check, and the op that lets logrotate check the whole configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from statecfg.remote.graph.model import Action, Blob, CheckError, HostNode, Unknown
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import World
from statecfg.resources.shared import drop_ins, sources, whole

DIRECTORY = "/etc/logrotate.d"
# Ends of names that logrotate ignores. Source: tabooext in logrotate(8).
IGNORED = (
    ",v", ".cfsaved", ".disabled", ".dpkg-bak", ".dpkg-del", ".dpkg-dist", ".dpkg-new", ".dpkg-old", ".rhn-cfg-tmp",
    ".rpmnew", ".rpmorig", ".rpmsave", ".swp", ".ucf-dist", ".ucf-new", ".ucf-old", "~",
)  # fmt: skip
SCRIPTS = ("postrotate", "prerotate", "firstaction", "lastaction", "preremove")
READER = ("logrotate", "--debug", "/etc/logrotate.conf")
MARK = "error:"


def refusal(machine: RealMachine) -> list[str]:
    """Return the errors that logrotate finds in the whole configuration, such as a log file with two rules."""
    return whole.complaints(machine, *READER, mark=MARK)


write = whole.writer("logrotate", "logrotate", refusal, READER, MARK)


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the file with the node's content, mode, owner and group.

    :raises CheckError: if it would change, and another file has rules for one of its log files
    """
    actions = drop_ins.compare(node, nodes, world, write)
    if actions and not node.attrs.get("absent"):
        _refuse_second(world, node.attrs["path"], Blob.of(node.attrs["content"]).read().decode("utf-8", "replace"))
    return actions


def _refuse_second(world: World, path: str, text: str) -> None:
    """Check that no other file has rules for the log files of the content: logrotate refuses the second ones.

    :raises CheckError: if one has
    """
    lines = [sources.Place(path, number, line) for number, line in enumerate(text.splitlines(), 1)]
    if any(line.text.strip() == "ignoreduplicates" for line in lines):
        return
    mine = {log for _, log in _logs(lines)}
    try:
        names = [name for name in sources.names(world, DIRECTORY) if not name.endswith(IGNORED)]
    except Unknown:  # a package of the run may bring files: the node's turn shows them
        return
    for other in [READER[-1], *(f"{DIRECTORY}/{name}" for name in names)]:
        if other == path:
            continue
        try:
            found = list(_logs(sources.places(world, other)))
        except Unknown:
            continue
        for place, log in found:
            if log in mine:
                help = "logrotate refuses a second rule. Remove one of them; if a node removes it, require that node"
                raise CheckError(f"{place} has rules for {log}, too; {help}")


def _logs(lines: Iterable[sources.Place]) -> Iterator[tuple[sources.Place, str]]:
    """Yield the log files, or patterns of them, for which a file has rules."""
    inside = script = False
    for line in lines:
        text = line.text.strip()
        if script or text.split(" ")[0] in SCRIPTS:
            script = text != "endscript"
        elif inside:
            inside = not text.startswith("}")
        elif text[:1] in ("/", '"', "'"):
            for found in re.finditer(r"\"([^\"]+)\"|'([^']+)'|(/[^\s{]+)", text.partition("{")[0]):
                yield line, found[1] or found[2] or found[3]
            inside = "{" in text and "}" not in text.partition("{")[2]
        elif text.startswith("{"):
            inside = "}" not in text
