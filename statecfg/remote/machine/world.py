"""The interfaces of a host: checks read it through `World`, and ops also change it through `Machine`."""

from __future__ import annotations

import io
from typing import IO, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from statecfg.remote.graph.above import above
from statecfg.remote.graph.model import Blob, HostNode
from statecfg.remote.graph.results import Result

# An entry of an access list: type ("user", "group", "owning group"; the first two may begin with "default "), name,
# and permission bits.
AclEntry = Tuple[str, str, int]
Fields = Mapping[str, Any]  # an entry of a facet: its loader lists the fields
Entries = Mapping[str, Fields]  # of a facet: key → entry
Effect = Mapping[str, Any]  # what a program changes, for the plan: facet → key → fields (see `Machine.run`)
Inputs = Tuple[str, Sequence[str]]

# The effect of a command that declares none: after it, the whole state of the host is unknown.
ANYTHING: Effect = {"unknown": ["*"]}


class Stat:
    """The file, directory or link at a path. Links are not followed.

    :param file_type: "file", "directory", "symlink" or "other"
    :param mode: permission bits, as an integer
    :param owner: user name, or the UID as text if the host has no name for it
    :param group: group name, or the GID as text
    :param size: bytes
    :param target: the target of a link, as written; otherwise ""
    :param identity: device, inode and modification time (ns) on a real host; None for a planned path
    :param acl: what an access list grants in addition to the mode (see `access.read`); empty without a list
    """

    __slots__ = ("acl", "file_type", "group", "identity", "mode", "owner", "size", "target")

    def __init__(
        self,
        file_type: str,
        mode: int,
        owner: str,
        group: str,
        size: int = 0,
        target: str = "",
        identity: Any = None,
        acl: Tuple[AclEntry, ...] = (),
    ) -> None:
        self.file_type, self.mode, self.owner, self.group = file_type, mode, owner, group
        self.size, self.target, self.identity, self.acl = size, target, identity, acl

    @property
    def kind(self) -> str:
        """`file_type`. Node types written for 0.3 read this name, which will be removed in 1.0."""
        above.renamed("Stat.kind", "Stat.file_type")
        return self.file_type

    def copy(self) -> Stat:
        """Return a copy for a plan to change. It has no identity."""
        return Stat(self.file_type, self.mode, self.owner, self.group, self.size, self.target, acl=self.acl)

    def __repr__(self) -> str:
        return f"Stat({self.file_type} {self.mode:04o} {self.owner}:{self.group} {self.size})"


def called(file_type: str) -> str:
    """Return the words for a file type in messages."""
    return "a device, pipe or socket" if file_type == "other" else "a " + file_type


class Probe:
    """The result of a read-only command: its exit status, stdout (`output`) and stderr (`errors`)."""

    __slots__ = ("errors", "output", "status")

    def __init__(self, status: int, output: bytes, errors: bytes = b"") -> None:
        self.status, self.output, self.errors = status, output, errors

    @property
    def text(self) -> str:
        """The output as text. Invalid UTF-8 is replaced."""
        return self.output.decode("utf-8", "replace")


class World:
    """The reading side of a host, as it will be when the node is processed.

    Every method may raise `Unknown` if the answer depends on an action whose outcome cannot be known in advance. If a
    check does not catch it, its node is reported as `known after` the cause, and checked again at its turn.
    """

    triggered_by: Sequence[str] = ()
    """Names of the required nodes whose change triggers the node being checked (`restart_on`). May raise Unknown."""

    beside: Sequence[HostNode] = ()
    """The nodes of the layer being checked, including this one; their actions run concurrently."""

    elsewhere: Mapping[str, Tuple[str, str]] = {}
    """Identities of nodes of other playbooks on this host: identity → playbook and name of the node."""

    removed: Mapping[str, HostNode] = {}
    """The removed nodes in `triggered_by`, by name."""

    claims: Any = None
    """What nodes own that are not part of this run (`statecfg.remote.run.claims.Claims`); None if there are none."""

    memo: Dict[str, Any]
    """Results that the checks of one layer share; empty when the next layer begins."""

    acted: bool = False
    """Whether this run has already taken the node's actions. The check then confirms that no action remains."""

    due: bool = False
    """Whether the node's turn has come in an apply, so that nothing becomes known by waiting."""

    def stat(self, path: str) -> Optional[Stat]:
        """Return the Stat of the absolute `path`, or None if nothing is there.

        :raises Unknown: if it is not known yet
        """
        raise NotImplementedError

    def canonical(self, path: str) -> str:
        """Return the path with the links of its directories followed.

        :raises OSError: if the links form a loop
        """
        raise NotImplementedError

    def is_known(self, path: str) -> bool:
        """Return False if an action of a required node may still change `stat(path)`."""
        raise NotImplementedError

    def settled(self, path: str) -> bool:
        """Return `is_known(path)`. Node types written for 0.3 call this name, which will be removed in 1.0."""
        above.renamed("World.settled", "World.is_known")
        return self.is_known(path)

    def apparent(self, path: str) -> Optional[Stat]:
        """Return `stat(path)` as far as it is known now. It never raises Unknown (see `is_known`)."""
        raise NotImplementedError

    def read(self, path: str) -> bytes:
        """Return a file's content. A link is followed.

        :raises OSError: if the file cannot be read
        :raises Unknown: if the content is not known yet
        """
        raise NotImplementedError

    def open(self, path: str) -> IO[bytes]:
        """Return a file's content as a stream, so that a large file is not in memory as a whole. A link is followed.

        :raises OSError: if the file cannot be read
        :raises Unknown: if the content is not known yet
        """
        return io.BytesIO(self.read(path))

    def digest(self, path: str) -> str:
        """Return the SHA-256 of a file's content in hex, without loading the content into memory.

        :raises OSError: if the file cannot be read
        :raises Unknown: if the content is not known yet
        """
        raise NotImplementedError

    def listdir(self, path: str) -> List[str]:
        """Return the sorted names in a directory.

        :raises OSError: if the directory cannot be read
        :raises Unknown: if the names are not known yet
        """
        raise NotImplementedError

    def entry(self, facet: str, key: str) -> Optional[Fields]:
        """Return the fields of `key` in a facet (`users`, `groups`, `packages`, `units`, …), or None.

        :raises Unknown: if they are not known yet
        """
        raise NotImplementedError

    def facet(self, name: str) -> Entries:
        """Return a whole facet: key → fields.

        :raises Unknown: if it is not known yet
        """
        raise NotImplementedError

    def table(self, name: str) -> Entries:
        """Return `facet(name)`. Node types written for 0.3 call this name, which will be removed in 1.0."""
        above.renamed("World.table", "World.facet")
        return self.facet(name)

    def probe(
        self, argv: Sequence[str], timeout: float = 60.0, inputs: Optional[Inputs] = None, **options: Any
    ) -> Probe:
        """Run a read-only command on the real host and return its result.

        :param timeout: seconds
        :param inputs: everything that the answer depends on: a facet, and paths. Then only changes of these make the
            answer unknown. The answer is based on the present facet; the caller accounts for its planned changes
        :param options: `cwd`, `env`, `user`
        :raises Unknown: if a required node will change the host first
        """
        raise NotImplementedError


class Machine(World):
    """The reading and the writing side of a host.

    Each writing method returns an action result: `{"status": "ok"}` or an error.
    """

    def write(
        self,
        path: str,
        content: Union[str, bytes, Blob],
        mode: Optional[int] = None,
        owner: Optional[str] = None,
        group: Optional[str] = None,
        backup: Optional[str] = None,
        validate: Optional[Sequence[str]] = None,
    ) -> Result:
        """Replace `path` by a file with this content, atomically and durably.

        Mode, owner and group stay if they are not given. A new file gets 0644, with a secret 0600, and the running
        user. An access list is removed if it grants more than the given mode, or if an untrusted former owner (not
        root, the running user or the new owner) may have made it.

        :param backup: suffix of the copy of the old file that is kept next to the new one
        :param validate: a command; `{}` in it is replaced by the path of the temporary file with the new content; if it
            fails, nothing changes. A plan runs it, too: it sees the files as planned, and what it writes is lost
        """
        raise NotImplementedError

    def mkdir(
        self,
        path: str,
        mode: Optional[int] = None,
        owner: Optional[str] = None,
        group: Optional[str] = None,
        parents: bool = False,
    ) -> Result:
        """Create a directory, or give an existing one the given mode, owner and group.

        :param parents: also create missing parent directories
        """
        raise NotImplementedError

    def symlink(self, path: str, target: str, owner: Optional[str] = None, group: Optional[str] = None) -> Result:
        """Create a link to `target`. A link or file at `path` is replaced atomically."""
        raise NotImplementedError

    def chmod(self, path: str, mode: int) -> Result:
        """Set the permission bits of a file or directory, not of a link. An access list that grants more is removed."""
        raise NotImplementedError

    def chown(self, path: str, owner: Optional[str] = None, group: Optional[str] = None) -> Result:
        """Set owner and group; a link is not followed. An access list of an untrusted former owner is removed."""
        raise NotImplementedError

    def remove(self, path: str, recursive: bool = False) -> Result:
        """Remove a file, a link or an empty directory; with `recursive`, a whole tree. A missing path is not an
        error."""
        raise NotImplementedError

    def run(
        self,
        argv: Sequence[str],
        effect: Effect = ANYTHING,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        user: Optional[str] = None,
        input: Optional[bytes] = None,
        timeout: float = 600.0,
        codes: Tuple[int, ...] = (0,),
        interruptible: bool = True,
        first: Optional[Callable[[], Optional[Result]]] = None,
        reads: bool = False,
    ) -> Result:
        """Run a program to its end and stream its output to the report.

        :param effect: what the program changes, for the plan: facet → key → fields (None: removed), as far as known.
            `{"packages": {"nginx": {"version": "1.22"}}, "unknown": ["files", "units"]}` means that a package is
            installed, and that files and units may change in an unknown way. Existing entries stay known, except with
            `"every units"`. `"files"` is a list of paths whose content is unknown afterwards. `{}` means:
            nothing that a node reads
        :param input: bytes for stdin
        :param timeout: seconds
        :param codes: exit statuses that mean success
        :param interruptible: False for a program that must finish even if the connection to the controller breaks
        :param first: a function that is called on the real host just before the program starts; if it returns an error,
            the program does not start
        :param reads: True for a program that checks something and changes nothing. A plan runs it, too: it sees the
            files as planned, and what it writes is lost
        """
        raise NotImplementedError

    def shows(self, thing: str, field: str, before: Any, after: Any) -> None:
        """Show a change in the plan that follows from no other call, such as the commit of a checkout.

        :param thing: what changes, such as a path
        :param before: the present value, None if there is none
        """

    def outside(self, function: Callable[[], Any]) -> Any:
        """Call a function that changes the host itself (the Borg document's plain `fn`) and return its result.

        A plan does not call it, because its effects are unknown.
        """
        raise NotImplementedError

    # Names that the Borg document's own examples use.
    def spit(self, path: str, content: Union[str, bytes]) -> Result:
        """Write `content` to `path`."""
        return self.write(path, content)

    def slurp(self, path: str) -> str:
        """Return the content of `path` as text."""
        return self.read(path).decode("utf-8")
