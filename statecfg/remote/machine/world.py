"""What checks may look at (`World`, reading only) and what ops act on (`Machine`, which also writes)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

    from statecfg.remote.graph.model import Blob, Node, Result
    from statecfg.remote.machine.access import Entry as AclEntry

    Effect = Mapping[str, Any]
    Inputs = Tuple[str, Sequence[str]]

# The effect of a command that declares none: nothing about the host can be taken for known after it.
ANYTHING: Effect = {"unknown": ["*"]}


class Stat:
    """What stands at a path (links are not followed).

    :param kind: "file", "directory", "symlink" or "other"
    :param mode: permission bits, as an integer
    :param owner: user name, or the number as text where the host has no name for it
    :param group: likewise
    :param size: bytes
    :param target: what a link points to, as written; "" otherwise
    :param acl: whom an access list names beside the mode (see `access.read`); empty where there is none
    """

    __slots__ = ("acl", "group", "identity", "kind", "mode", "owner", "size", "target")

    def __init__(
        self,
        kind: str,
        mode: int,
        owner: str,
        group: str,
        size: int = 0,
        target: str = "",
        identity: Any = None,
        acl: Tuple[AclEntry, ...] = (),
    ) -> None:
        self.kind, self.mode, self.owner, self.group = kind, mode, owner, group
        self.size, self.target, self.identity, self.acl = size, target, identity, acl

    def __repr__(self) -> str:
        return "Stat(%s %04o %s:%s %d)" % (self.kind, self.mode, self.owner, self.group, self.size)


def called(kind: str) -> str:
    """Return what a message calls something of this kind."""
    return "a device, pipe or socket" if kind == "other" else "a " + kind


class Probe:
    """What a read-only command said: its exit status and its output (stdout, then stderr)."""

    __slots__ = ("errors", "output", "status")

    def __init__(self, status: int, output: bytes, errors: bytes = b"") -> None:
        self.status, self.output, self.errors = status, output, errors

    @property
    def text(self) -> str:
        """The output as text; bytes that are no UTF-8 are replaced."""
        return self.output.decode("utf-8", "replace")


class World:
    """The reading side of a host: as it will be when the node's turn comes.

    Every method may raise `Unknown` where the answer depends on an action whose outcome can't be known before it
    is done; a check that lets it through is reported as `known after` that node and made again at its turn.
    """

    triggered_by: Sequence[str] = ()
    """Names of the required nodes whose change triggers the node being checked (`restart_on`). May raise Unknown."""

    beside: Sequence[Node] = ()
    """The nodes of the layer being checked, this one among them: what they do is done side by side."""

    claimed: Mapping[str, Tuple[str, str]] = {}
    """What nodes of other playbooks are about on this host: claim → playbook and name."""

    memo: Dict[str, Any]
    """What checks of one layer have worked out about it together; empty when the next layer begins."""

    acted: bool = False
    """Whether this run has taken the node's actions: the check is made to see that nothing is left to do."""

    def stat(self, path: str) -> Optional[Stat]:
        """Return what stands at the absolute `path`, or None where nothing does. Raises Unknown."""
        raise NotImplementedError

    def settled(self, path: str) -> bool:
        """Return False where `stat(path)` may still change by an action that a required node is going to take."""
        raise NotImplementedError

    def apparent(self, path: str) -> Optional[Stat]:
        """Return `stat(path)` as far as is known now, never raising Unknown (see `settled`)."""
        raise NotImplementedError

    def read(self, path: str) -> bytes:
        """Return a file's content, following a link. Raises OSError, Unknown."""
        raise NotImplementedError

    def digest(self, path: str) -> str:
        """Return the SHA-256 of a file's content in hex, without holding the content. Raises OSError, Unknown."""
        raise NotImplementedError

    def listdir(self, path: str) -> List[str]:
        """Return the sorted names in a directory. Raises OSError, Unknown."""
        raise NotImplementedError

    def entry(self, table: str, key: str) -> Optional[Dict[str, Any]]:
        """Return the fields of `key` in a facet (`users`, `groups`, `packages`, `units`, …) or None. Raises Unknown."""
        raise NotImplementedError

    def table(self, name: str) -> Dict[str, Dict[str, Any]]:
        """Return a whole facet, key → fields. Raises Unknown."""
        raise NotImplementedError

    def probe(
        self, argv: Sequence[str], timeout: float = 60.0, inputs: Optional[Inputs] = None, **options: Any
    ) -> Probe:
        """Run a read-only command on the real host and return what it said.

        Options: `cwd`, `env`, `user`. Raises Unknown if a required node is going to change the host first.

        :param inputs: all that the answer depends on: a facet, and paths. Then only changes of these make it unknown.
            The caller accounts for planned changes of the facet itself; the answer is about the facet as it is now.
        """
        raise NotImplementedError


class Machine(World):
    """Both sides of a host. Each writing method returns an action result (`{"status": "ok"}` or an error)."""

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
        """Make `path` a file of this content, atomically and durably: at any instant it is the old one or the new.

        Mode, owner and group stay as they are where not given (0644 and the running user for a new file). An access
        list goes if it grants more than the mode that is given, or if the former owner is neither trusted (root, or
        the running user) nor the new one.
        `backup` is a suffix: the old file is kept beside the new one. `validate` is a command in which `{}` stands
        for the new content's temporary file: where it fails, nothing changes.
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
        """Make `path` a directory; one that is there already gets what is given of mode, owner and group."""
        raise NotImplementedError

    def symlink(self, path: str, target: str, owner: Optional[str] = None, group: Optional[str] = None) -> Result:
        """Make `path` a link to `target`, replacing a link or a file that stands there, atomically."""
        raise NotImplementedError

    def chmod(self, path: str, mode: int) -> Result:
        """Set the permission bits of a file or directory, not through a link. An access list that grants more goes."""
        raise NotImplementedError

    def chown(self, path: str, owner: Optional[str] = None, group: Optional[str] = None) -> Result:
        """Set owner and group (of the link itself where `path` is one). An access list of a former owner goes."""
        raise NotImplementedError

    def remove(self, path: str, recursive: bool = False) -> Result:
        """Remove a file, link or empty directory; a whole tree with `recursive`. What is not there is no error."""
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
    ) -> Result:
        """Run a program to its end, its output streamed to the report; an exit status not in `codes` is an error.

        :param effect: what it does, for the plan: facet → key → fields (None: gone), as far as it is known.
            `{"packages": {"nginx": {"version": "1.22"}}, "unknown": ["files", "units"]}` says that a package
            appears and that files and units may, in a way that only doing it shows. `{}`: nothing that is looked at.
            `"files"`: a list of paths whose content is unknown after it.
        :param interruptible: False for what must run to its end even when the controller is lost
        :param first: called on the real host only, just before the program starts; an error it returns prevents that
        """
        raise NotImplementedError

    def outside(self, function: Callable[[], Any]) -> Any:
        """Call what changes the host by itself (the Borg document's plain `fn`) and return what it returns.

        A plan calls nothing: nobody can foresee what it does.
        """
        raise NotImplementedError

    # The words of the Borg document's own examples.
    def spit(self, path: str, content: Union[str, bytes]) -> Result:
        """Write `content` to `path`."""
        return self.write(path, content)

    def slurp(self, path: str) -> str:
        """Return the content of `path` as text."""
        return self.read(path).decode("utf-8")
