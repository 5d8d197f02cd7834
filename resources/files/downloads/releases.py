"""Programs from downloads: take one file out of an archive, install it, and link a version of it."""

from __future__ import annotations

import posixpath
from collections.abc import Container, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.model import Action, ActionSpec, Blob, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.ledger.records import SAID
from statecfg.remote.machine.world import Machine, Stat, World
from statecfg.resources.files import links, unpacking
from statecfg.resources.files.downloads import downloads
from statecfg.resources.shared import files, paths, records, restore, snapshot

if TYPE_CHECKING:
    from typing import NotRequired

    class ReleaseMemory(snapshot.Memory):
        """The memory of a `release_binary`.

        :ivar former: what was at the path of its first version: path → record
        :ivar installed: the files of the versions to which it linked
        :ivar ours: the programs that it installed: path → `new` or `replaced`, and the checksum
        """

        path: str
        was: snapshot.PathRecord | None
        former: dict[str, snapshot.PathRecord | None]
        installed: list[str]
        ours: NotRequired[dict[str, str]]


ACCOUNTS = (("user", "owner"), ("group", "group"))  # need → the attribute that names it
NEW, REPLACED = "new", "replaced"  # what an installation did at its path


ARCHIVES = "/var/tmp"  # noqa: S108  # files there have no name; /tmp can be in memory


class Member(downloads.Download):
    """A file in an archive that a URL returns. A plan does not fetch it.

    :param checksum: the digest of the archive
    :param member: the name of the file in the archive
    :param digest: its digest, such as ``sha256:…``
    """

    __slots__ = ("member",)

    def __init__(self, url: str, checksum: str, how: Mapping[str, Any], member: str, digest: str) -> None:
        downloads.Download.__init__(self, url, checksum, how, ARCHIVES)
        self.member, self.sha256 = member, digest.partition(":")[2]
        self.origin = f"{digest} {member} in {url}"

    def chunks(self, size: int = downloads.PIECE) -> Iterator[bytes]:
        """Fetch the archive into a temporary file, and yield the content of its member in pieces.

        :raises LookupError: if it can't be fetched, or has no such member
        """
        import tempfile  # only hosts that fetch an archive need it

        with tempfile.TemporaryFile(dir=ARCHIVES) as stream:
            for piece in downloads.Download.chunks(self, size):
                stream.write(piece)
            stream.seek(0)
            yield from content(unpacking.Archive(lambda: stream, 0), self.member, self.sha256, self.url, size)


def content(archive: unpacking.Archive, member: str, sha256: str, url: str, size: int) -> Iterator[bytes]:
    """Yield the content of a member of an archive in pieces.

    :param url: where the archive comes from, for messages
    :raises LookupError: if there is no such file, or it has another digest
    """
    import hashlib

    try:
        members = archive.members()
    except ValueError as problem:
        raise LookupError(f"{url}: {problem}") from None
    name = posixpath.normpath(member)
    if name not in members:
        raise LookupError(f"{url} contains no file {name}{paths.nearest(name, members)}")
    if archive.file_type(name) != "file":
        raise LookupError(f"{name} in {url} is not a file; member names the file itself")
    digest = hashlib.sha256()
    for piece in archive.chunks(name, size):
        digest.update(piece)
        yield piece
    if digest.hexdigest() != sha256:
        text = "%s in %s has the checksum sha256:%s; member_checksum is sha256:%s"
        raise LookupError(text % (name, url, digest.hexdigest(), sha256))


@op
def install(
    machine: Machine,
    path: str,
    url: str | None,
    checksum: str,
    member: str | None = None,
    member_checksum: str | None = None,
    content: Blob | None = None,
    mode: int | None = None,
    owner: str | None = None,
    group: str | None = None,
    validate: list[str] | None = None,
    headers: Mapping[str, str] | None = None,
    proxy: str | None = None,
    ca: str | None = None,
    timeout: float = 600.0,
    max_size: int | None = None,
) -> Result:
    """Install a program: the content of a URL, one file of an archive, or what the controller has sent."""
    how = {"headers": headers, "proxy": proxy, "ca": ca, "timeout": timeout, "max_size": max_size}
    new = machine.apparent(path) is None
    if content is not None:
        result: Result = files.write(path, content, mode, owner, group, None, validate).perform(machine)
    else:
        blob = downloads.Download(str(url), checksum, how, posixpath.dirname(path))
        if member is not None:
            blob = Member(str(url), checksum, how, member, str(member_checksum))
        result = machine.write(path, blob, mode, owner, group, None, validate)
    if result["status"] == "ok":
        said = {path: f"{NEW if new else REPLACED} {member_checksum or checksum}"}
        return {**result, "said": said}
    return result


def program(attrs: records.Attrs) -> str:
    """Return the path of the program itself: with `version`, the file that the node's path links to."""
    if not attrs.get("version"):
        return str(attrs["path"])
    directory, name = posixpath.split(attrs["path"])
    return posixpath.join(attrs.get("versions_in") or directory, f"{name}-{attrs['version']}")


def _file(node: HostNode) -> HostNode:
    """Return the node of a `download` that manages the program."""
    attrs = node.attrs
    digest = attrs.get("member_checksum") or attrs.get("checksum")
    return HostNode(node.provides, node.type, node.requires, {**attrs, "path": program(attrs), "checksum": digest})


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the program and the link with the wanted ones.

    :raises CheckError: if something else is at one of the paths
    """
    attrs, path = node.attrs, node.attrs["path"]
    stat = paths.look(world, path)
    if stat is not None and stat.file_type not in ("file", "symlink"):
        paths.refuse(path, stat, "a program")
    if attrs.get("absent"):
        return [paths.remove(path)] if stat is not None else []

    def act(stat: Stat | None, mode: int | None, owner: str | None, group: str | None) -> Action:
        names = ("checksum", "member", "member_checksum", "validate", *downloads.HOW)
        options = {name: attrs.get(name) for name in names}
        content = downloads.sent(attrs, stat)
        return install(
            program(attrs), attrs.get("url"), content=content, mode=mode, owner=owner, group=group, **options
        )

    actions = downloads.check(_file(node), nodes, world, act)
    target = program(attrs)
    if target == path:
        return actions
    if posixpath.dirname(target) == posixpath.dirname(path):
        target = posixpath.basename(target)
    if stat is None:
        paths.require_parent(world, path, node, nodes)
    if stat is None or stat.file_type != "symlink" or stat.target != target:
        actions.append(links.link(path, target, None, None, True))
    return actions


def blobs(node: HostNode, world: World) -> list[Blob]:
    """Return the program that the controller sends, unless the host has it."""
    return files.blobs(_file(node), world)


def remember(node: HostNode, world: World) -> ReleaseMemory:
    """Record what is at the node's path, and at the path of the program."""
    path, program_path, snap = node.attrs["path"], program(node.attrs), snapshot.Snapshot(world)
    former = {program_path: snap.entry(program_path)} if program_path != path else {}
    memory: ReleaseMemory = {"path": path, "was": snap.entry(path), "former": former, "installed": []}
    memory["ours"] = {}
    return snap.with_lost(memory)


def learn(node: HostNode, memory: ReleaseMemory, world: World, said: Mapping[str, str]) -> Mapping[str, Any]:
    """Record each version that the node links to, and each program that it installed."""
    program_path = program(node.attrs)
    new = [program_path] if program_path != node.attrs["path"] else []
    return {"installed": sorted({*memory["installed"], *new}), "ours": _ours(memory, said)}


def _ours(memory: ReleaseMemory, said: Mapping[str, str]) -> dict[str, str]:
    """Return the programs that the node installed: path → whether it was new, and its checksum.

    :param said: what the actions of the last run said
    """
    ours = dict(memory.get("ours") or {})
    for path, text in said.items():
        state = ours[path].partition(" ")[0] if path in ours else text.partition(" ")[0]
        ours[path] = f"{state} {text.partition(' ')[2]}"
    return ours


def undo(node: HostNode, memory: ReleaseMemory, world: World) -> ActionSpec:
    """Restore what was at the path, and remove the versions that the node installed, unless others changed them.

    A failed run is not learned, so the undo reads what it said. Ledgers of earlier versions have no `ours`.
    """
    restoring, path, was = restore.Restore(world, memory), memory["path"], memory["was"]
    plain: Any = memory
    ours = _ours(memory, plain.get(SAID) or {})
    program_path = program(node.attrs)
    made = {name: node.attrs.get(name) for name in ("mode", "owner", "group")}
    if not node.attrs.get("absent"):
        if "ours" not in memory:
            ours.setdefault(program_path, f"{NEW} {node.attrs.get('member_checksum') or node.attrs.get('checksum')}")
        if _still(restoring, path, was, ours, {*memory["installed"], program_path}):
            restoring.back(path, was, ("file", "symlink"), made)
    elif was is not None:
        restoring.back_if_missing(path, was)
    for program_path in sorted({*memory["installed"], *ours} - {path}):
        former = memory["former"].get(program_path)
        if not _still(restoring, program_path, former, ours, ()):
            continue
        if program_path in memory["former"] or ours.get(program_path, NEW).startswith(NEW):
            restoring.back(program_path, former, ("file",), made)
        elif world.stat(program_path) is not None:
            restoring.left.append(f"{program_path} replaced a file that the ledger does not have: it stays")
    return restoring.spec()


def _still(
    restoring: restore.Restore,
    path: str,
    was: snapshot.PathRecord | None,
    ours: Mapping[str, str],
    linked: Container[str],
) -> bool:
    """Tell whether a path is as the node left it, or as it was before. If others changed it, add a message.

    :param ours: path → whether it was new, and its checksum
    :param linked: the programs to which the node's link pointed
    """
    world, now = restoring.world, restoring.world.stat(path)
    if now is None or (was is not None and now.file_type == was["kind"] and not restoring.differs(path, was, now)):
        return True
    if now.file_type == "symlink":
        if posixpath.normpath(posixpath.join(posixpath.dirname(path), now.target)) in linked:
            return True
        restoring.left.append(f"{path} is a link to {now.target}, which this node did not install: it stays")
    elif now.file_type == "file":
        if path not in ours:
            restoring.left.append(f"{path} stays: the ledger has no record that this node installed it")
        elif downloads.matches(world, path, ours[path].partition(" ")[2]):
            return True
        else:
            restoring.left.append(f"{path} is not the program that this node installed: it stays")
    else:
        return True  # it stays anyway
    return False
