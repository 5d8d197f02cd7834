"""Tables of nftables: the facet, the ops that load and delete them, their check, the snapshot, the undo, and the guard.

Each table has a file in /etc/nftables.d, which begins with the removal of the table. So `nft -f` replaces the running
table as a whole: the kernel changes from the old rules to the new ones in one step.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence

from statecfg.remote.graph.model import Action, ActionSpec, Blob, CheckError, HostNode, Unknown
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.real import RealMachine
from statecfg.remote.machine.world import Machine, World
from statecfg.remote.wire.channel import Channel
from statecfg.resources.network import firewall_guard
from statecfg.resources.shared import drop_ins, files, paths, records, restore, sources, whole

DIRECTORY = "/etc/nftables.d"
MAIN = ("/etc/nftables.conf", "/etc/sysconfig/nftables.conf")  # Debian; Red Hat and SUSE
PROGRAM = ("/usr/sbin/nft", "/sbin/nft")
SERVICE = ("nftables", "nftables.service")  # it loads all files
TIMEOUT = 60.0
# Loads a file in a separate network, and prints the table as the kernel has it. So the running rules can be compared
# with the file, however it is written, without a change of the host's own network.
TRIAL = 'nft --file - && exec nft --stateless list table "$1" "$2"'
# The elements of a set that the rules themselves fill.
_FILLED = re.compile(
    r"^(\t\tflags [^\n]*(?:dynamic|timeout)[^\n]*\n(?:\t\t(?!elements = )[^\n]*\n)*)\t\telements = \{[^}]*\}\n", re.M
)


@facet("nftables", volatile=True)
def tables(host: World) -> dict[str, records.Fields]:
    """Load the running tables: family and name → `content`, without counters and elements that the rules add.

    :raises CheckError: if nft does not print them
    """
    if all(host.stat(path) is None for path in PROGRAM):
        return {}
    probe = host.probe(["nft", "--stateless", "list", "ruleset"])
    if probe.status:
        raise CheckError(f"nft does not print the running rules: {first_line(probe.errors)}")
    found = re.finditer(r"^table (\S+ \S+) \{\n.*?^\}\n", probe.text, re.M | re.S)
    return {table[1]: {"content": Blob.of(_listing(table[0]))} for table in found}


def first_line(text: bytes) -> str:
    """Return the first line of what a program printed."""
    return (text.decode("utf-8", "replace").strip().splitlines() or ["no output"])[0]


def require_program(world: World) -> None:
    """Check that nft is installed.

    :raises CheckError: if it is not
    :raises Unknown: if a required node may install it
    """
    if all(world.stat(path) is None for path in PROGRAM):
        raise CheckError("nftables is not installed; declare package: nftables")


def _listing(text: str) -> bytes:
    return _FILLED.sub(r"\1", text).encode()


def running(world: World, family: str, name: str) -> bytes | None:
    """Return a running table as nft prints it; None without one.

    :raises CheckError: if nft does not print the tables
    """
    entry = world.entry("nftables", f"{family} {name}")
    return Blob.of(entry["content"]).read() if entry is not None else None


def tried(world: World, content: bytes, family: str, name: str) -> bytes:
    """Return the table that a content makes, as nft prints it. This loads the content in a separate network.

    :raises CheckError: if nft refuses the content
    """
    argv = ["unshare", "--net", "sh", "-c", TRIAL, "sh", family, name]
    probe = world.probe(argv, inputs=("nftables", []), input=content)
    if probe.status:
        message = probe.errors.decode("utf-8", "replace").strip()
        help = "; name interfaces with iifname and oifname" if "Interface does not exist" in message else ""
        raise CheckError(f"nft refuses the rules: {message.replace('/dev/stdin:', 'line ') or 'no output'}{help}")
    return _listing(probe.text)


@op(mutex="nftables")
def load(machine: Machine, path: str, family: str, name: str, content: Blob) -> Result:
    """Replace the running table by that of its file, in one step.

    :param content: the table as nft will print it
    """
    effect = {"nftables": {f"{family} {name}": {"content": content}}}
    return machine.run(["nft", "--file", path], effect, timeout=TIMEOUT)


@op(mutex="nftables")
def load_former(machine: Machine, family: str, name: str, content: Blob) -> Result:
    """Replace the running table by a former one, in one step.

    :param content: the table as nft prints it
    """
    effect = {"nftables": {f"{family} {name}": {"content": content}}}
    return machine.run(["nft", "--file", "-"], effect, timeout=TIMEOUT, input=_again(family, name, content.read()))


@op(mutex="nftables")
def delete_table(machine: Machine, family: str, name: str) -> Result:
    """Delete the running table with its rules."""
    effect = {"nftables": {f"{family} {name}": None}}
    return machine.run(["nft", "delete", "table", family, name], effect, timeout=TIMEOUT)


def refusal(machine: RealMachine) -> list[str]:
    """Return the errors that nft finds in the files that it loads at boot. nft changes no rules for this."""
    found = [path for path in MAIN if machine.stat(path) is not None]
    return [line for path in found for line in whole.complaints(machine, "nft", "--check", "--file", path)]


write = whole.writer("nft", "nftables", refusal)


@op(name="mkdir")
def make_directory(machine: Machine, path: str) -> Result:
    """Create the directory of the tables' files."""
    return machine.mkdir(path, 0o755, "root", "root")


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the file and the running table with the wanted ones.

    :raises CheckError: if nftables is not installed, does not read the file at boot, or refuses the rules
    """
    attrs, path, family, name = node.attrs, node.attrs["path"], node.attrs["family"], node.attrs["table"]
    require_program(world)
    runs = attrs.get("running", True)
    if attrs.get("absent"):
        here = runs and world.entry("nftables", f"{family} {name}") is not None
        return [*drop_ins.check(node, nodes, world), *([delete_table(family, name)] if here else [])]
    _require_include(world, path)
    wanted = tried(world, Blob.of(attrs["content"]).read(), family, name)
    above = posixpath.dirname(path)
    made = [make_directory(above)] if paths.look(world, above) is None else []
    written = _first(path, attrs) if made else drop_ins.compare(node, nodes, world, write)
    stale = runs and running(world, family, name) != wanted
    return [*made, *written, *([load(path, family, name, Blob.of(wanted))] if stale else [])]


def _first(path: str, attrs: records.Attrs) -> list[Action]:
    """Return what writes the file into a new directory."""
    mode = paths.mode_bits(attrs["mode"])
    return [write(path, Blob.of(attrs["content"]), mode, "root", "root", None, attrs.get("validate"))]


def effect(node: HostNode, world: World) -> str:
    """Return the line that removes the node's table again when the rules are loaded at boot; "" if there is none."""
    attrs = node.attrs
    if attrs.get("absent"):
        return ""
    ours = rf"(?:flush|delete|destroy)\s+table\s+{attrs['family']}\s+{re.escape(attrs.get('table') or attrs['name'])}\b"
    removes = re.compile(rf"\s*(?:flush\s+ruleset(?:\s+{attrs['family']})?\s*(?:[;#].*)?$|{ours})")
    path = f"{DIRECTORY}/{attrs['name']}.nft"
    for main in MAIN:
        lines: list[sources.Place] = []
        for place in sources.places(world, main):
            found = re.match(r'\s*include\s+"([^"]+)"', place.text)
            paths_here = sources.expanded(world, found[1].rstrip("/") + "/*" * found[1].endswith("/")) if found else []
            inside = [each for one in paths_here for each in sources.places(world, one)] if path in paths_here else []
            lines += inside or [place]
        last = max((at for at, place in enumerate(lines) if place.path == path), default=len(lines))
        for place in lines[last + 1 :]:
            if removes.match(place.text):
                return f"the table does not stay at boot: {place} comes later"
    return ""


def _require_include(world: World, path: str) -> None:
    """Check that nftables reads the file at boot, as far as this is known now.

    :raises CheckError: if it does not
    """
    try:
        texts = {main: world.read(main).decode("utf-8", "replace") for main in MAIN if world.stat(main) is not None}
    except Unknown:
        return
    included = rf'^\s*include\s+"{re.escape(DIRECTORY)}/(\*|\*\.nft|{re.escape(posixpath.basename(path))})?"'
    if not any(re.search(included, text, re.M) for text in texts.values()):
        help = 'add the line include "%s/*.nft" at its end with line_in_file, and require that node'
        main = next(iter(texts), MAIN[0])
        raise CheckError(
            ("%s does not include %s, so no rules would apply after a boot; " + help) % (main, path, DIRECTORY)
        )


def remember(node: HostNode, world: World) -> records.Fields:
    """Record the file, whether its directory exists, and the running table."""
    require_program(world)
    former = running(world, node.attrs["family"], node.attrs["table"]) if node.attrs.get("running", True) else None
    return {
        "file": files.remember(node, world),
        "made": world.stat(posixpath.dirname(node.attrs["path"])) is None,
        "former": Blob.of(former) if former is not None else None,
    }


def learn(node: HostNode, memory: records.Fields, world: World) -> records.Fields:
    """Record the digest of the table as nft prints it now, so that the undo notices changes of others."""
    attrs = node.attrs
    if attrs.get("absent") or not attrs.get("running", True):
        return {}
    now = running(world, attrs["family"], attrs["table"])
    return {"ours": Blob.of(now).sha256 if now is not None else None}


def undo(node: HostNode, memory: records.Fields, world: World) -> ActionSpec:
    """Restore the former file and the former running table. A table that others have changed stays."""
    attrs = node.attrs
    spec = files.undo(node, memory["file"], world)
    gone = any(action.op == "remove" for action in spec.actions) or world.stat(attrs["path"]) is None
    if memory["made"] and gone and not attrs.get("absent"):
        restoring = restore.Restore(world, memory["file"])
        restoring.removed.add(attrs["path"])
        restoring.remove_above(attrs["path"], [posixpath.dirname(attrs["path"])])
        spec.actions += restoring.actions
    if not attrs.get("running", True) or all(world.stat(path) is None for path in PROGRAM):
        return spec
    family, name, was = attrs["family"], attrs["table"], memory["former"]
    former = Blob.of(was).read() if was is not None else None
    now = running(world, family, name)
    if now == former:
        return spec
    if (Blob.of(now).sha256 if now is not None else None) != memory.get("ours"):
        spec.left.append(f"others changed the table {family} {name}: it stays")
    elif former is None:
        spec.actions.append(delete_table(family, name))
    else:
        spec.actions.append(load_former(family, name, Blob.of(former)))
    return spec


def _again(family: str, name: str, former: bytes | None) -> bytes:
    """Return what replaces a table by a former one, or deletes it."""
    key = f"{family} {name}".encode()
    return b"table %s\ndelete table %s\n%s" % (key, key, former or b"")


def guard(
    machine: RealMachine, channel: Channel, remote: bool, warnings: list[str], nodes: Sequence[HostNode]
) -> firewall_guard.ChangeGuard:
    """Return the guard of the nodes' tables (see `NodeType.guard`)."""
    mine = [node.attrs for node in nodes if node.type == "nftables"]
    tables = sorted({(attrs["family"], attrs["table"]) for attrs in mine})

    def record() -> Callable[[], list[str]]:
        installed = any(machine.stat(path) is not None for path in PROGRAM)
        former = [(*each, running(machine, *each) if installed else None) for each in tables]
        put_back = firewall_guard.files(machine, [attrs["path"] for attrs in mine])

        def restore() -> list[str]:
            text = b"".join(_again(*each) for each in former)
            return (firewall_guard.run(machine, "nft", "--file", "-", text=text) if former else []) + put_back()

        return restore

    def concerns(node: HostNode) -> bool:
        return node.type == "nftables" or (node.type == "service" and node.attrs.get("name") in SERVICE)

    watched = firewall_guard.Watched((), record, concerns=concerns, quiet=_only_file)
    return firewall_guard.ChangeGuard(channel, remote, warnings, watched)


def _only_file(node: HostNode) -> bool:
    """Return whether a node changes no running rules: a start of the service, or a boot, loads its file."""
    return node.type == "nftables" and not node.attrs.get("running", True)
