"""The plain values that controller and host exchange: keywords, content, nodes, actions, results."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Union

from statecfg.remote.graph.above import above
from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.graph.sha256 import sha256

JsonMap = Mapping[str, Any]
Attrs = Mapping[str, Any]  # attributes of a node: JSON types and content


class Keyword(str):
    """A keyword of the Borg document: a string that equals its name and, when called, looks itself up in a map."""

    __slots__ = ()

    def __call__(self, mapping: Mapping[str, Any], default: Any = None) -> Any:
        """Return `mapping[self]`, or `default` if the key is missing; `:restart-on` also finds `restart_on`."""
        for key in (self, self.replace("-", "_")):
            if key in mapping:
                return mapping[key]
        missing = getattr(type(mapping), "__missing__", None)
        return default if missing is None or default is not None else missing(mapping, self)


class Record:
    """A value whose named fields can be read as attributes, as in a map, and by keyword."""

    __slots__: Tuple[str, ...] = ()
    fields: Tuple[str, ...] = ()

    def __getitem__(self, key: object) -> Any:
        name = str(getattr(key, "name", key)).replace("-", "_")
        if name not in self.fields:
            raise KeyError(key)
        return getattr(self, name)

    def get(self, key: object, default: Any = None) -> Any:
        """Return the field, or `default` if it does not exist or is None."""
        try:
            value = self[key]
        except KeyError:
            return default
        return default if value is None else value

    def keys(self) -> Tuple[str, ...]:
        """Return the names of the fields."""
        return self.fields

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __contains__(self, key: object) -> bool:
        return str(getattr(key, "name", key)).replace("-", "_") in self.fields

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(getattr(self, f) == getattr(other, f) for f in self.fields)

    __hash__ = None  # type: ignore[assignment]  # equal by value, and values may hold maps

    def __repr__(self) -> str:
        return "%s(%s)" % (type(self).__name__, ", ".join("%s=%r" % (f, getattr(self, f)) for f in self.fields))


SECRETS: Dict[str, str] = {}  # name → value of the secrets that the controller sent for this run
LEARNED: Dict[str, str] = {}  # value → name of the secrets that became known during this run, see `Redactor`
CONCEALED: Set[str] = set()  # lines of files with secrets that only this host knows: no diff shows them


class Blob:
    """File content, identified by its SHA-256.

    If `hides` returns true, reports show neither the digest, from which the secret could be guessed, nor the content
    that it replaces.

    :param sha256: the digest, as hexadecimal digits
    :param size: in bytes
    :param data: the content; None if it is in the file `path` or has not arrived
    :param path: a file with the content
    :ivar origin: what reports say about content that only a real machine makes, while it writes it; "" for other
        content
    :ivar secret: whether the content contains a secret; None if that is unknown
    """

    __slots__ = ("data", "path", "secret", "sha256", "size")
    secrets: Tuple[bytes, ...] = ()  # the values of this run, on a host
    origin = ""

    def __init__(self, sha256: str, size: int, data: Optional[bytes] = None, path: Optional[str] = None) -> None:
        self.sha256, self.size, self.data, self.path = sha256, size, data, path
        self.secret: Optional[bool] = None  # not searched yet

    @classmethod
    def of(cls, content: Union[str, bytes, Blob]) -> Blob:
        """Return the blob of a string (as UTF-8) or of bytes; a blob is returned as it is."""
        if isinstance(content, Blob):
            return content
        data = content.encode("utf-8") if isinstance(content, str) else bytes(content)
        return cls(sha256(data).hexdigest(), len(data), data)

    def read(self) -> bytes:
        """Return the content.

        :raises LookupError: if it has not arrived
        """
        if self.data is not None:
            return self.data
        if self.path is not None:
            with open(self.path, "rb") as stream:
                return stream.read()
        raise LookupError(f"content {self.sha256[:12]} ({self.size} bytes) has not arrived")

    def chunks(self, size: int = 1 << 18) -> Iterator[bytes]:
        """Yield the content in pieces of at most `size` bytes, so that a large file is never in memory as a whole."""
        if self.data is None and self.path is not None:
            with open(self.path, "rb") as stream:
                piece = stream.read(size)
                while piece:
                    yield piece
                    piece = stream.read(size)
        else:
            data = self.read()
            for start in range(0, len(data), size):
                yield data[start : start + size]

    def require(self) -> None:
        """Check that a file with former content is as it was written.

        :raises CheckError: if it is not
        """
        if self.path is None:
            return
        try:
            found = sha256(size=self.size)
            for piece in self.chunks():
                found.update(piece)
            why = "" if found.hexdigest() == self.sha256 else "is damaged"
        except OSError as problem:
            why = f"can't be read ({problem.strerror})"
        if why:
            raise CheckError(f"the former content {self.path} {why}: restore this file from a backup")

    def hides(self) -> bool:
        """Tell whether the content contains a secret of this run; False if it has not arrived."""
        if self.secret is None:
            has_secret = bool(self.secrets) and self.holds(self.secrets)
            if not has_secret and self.data is None and self.path is None:
                return False  # it may still arrive
            self.secret = has_secret
        return self.secret

    def holds(self, values: Iterable[bytes]) -> bool:
        """Tell whether the content contains any of these values; False if it has not arrived."""
        wanted = list(values)
        overlap = max(map(len, wanted), default=1) - 1
        rest = b""
        for piece in self.chunks() if self.data is not None or self.path is not None else ():
            rest += piece
            if any(value in rest for value in wanted):
                return True
            rest = rest[len(rest) - overlap :] if overlap else b""
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Blob) and other.sha256 == self.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        return f"<{self.size} bytes, sha256 {self.sha256[:12]}>"


class Unknown(StatecfgError):
    """A value that a check needs can't be known yet.

    :param cause: the name of the node whose action decides the value
    :param what: the value, for the message
    """

    def __init__(self, cause: str, what: str = "") -> None:
        Exception.__init__(self, f"{what + ' ' if what else ''}known after {cause}")
        self.cause, self.what = cause, what


class Stays(StatecfgError):
    """An orphan can't be undone in this run: it stays on the host and in the ledger."""


class Excluded(StatecfgError):
    """A condition of a node is false on this host: the node does nothing, and is not managed. The message says why."""


class CheckError(StatecfgError):
    """The node can't be applied on this host because of the definition or the host's state. This is not a bug."""


class Conflict(CheckError):
    """Nodes exclude each other, or a condition does not hold: the run can't succeed, and does not start."""


class HostNode(Record):
    """A node of the graph as the host receives it.

    :param provides: its name, such as ``file:/etc/motd``
    :param type: the name of its node type
    :param requires: the names of the nodes that it requires
    :param attrs: arguments and attributes by name; content is a `Blob`
    :param triggers: those of `requires` whose change triggers this node
    :param produces_ops: the names of the ops that it may use
    :param position: its source location, ``file:line`` or ``file:line:column``
    :param options: the other options, such as `tags` and `protect`
    :param hides: the names of the attributes that contain secrets
    """

    fields = ("provides", "type", "requires", "triggers", "produces_ops", "attrs", "position", "options")
    __slots__ = (*fields, "hides")

    def __init__(
        self,
        provides: str,
        type: str,
        requires: Sequence[str] = (),
        attrs: Optional[Dict[str, Any]] = None,
        triggers: Sequence[str] = (),
        produces_ops: Sequence[str] = (),
        position: str = "",
        options: Optional[Dict[str, Any]] = None,
        hides: Sequence[str] = (),
    ) -> None:
        self.provides, self.type, self.hides = provides, type, tuple(hides)
        self.requires, self.triggers, self.produces_ops = tuple(requires), tuple(triggers), tuple(produces_ops)
        self.attrs: Dict[str, Any] = attrs if attrs is not None else {}
        self.position = position
        self.options: Dict[str, Any] = options if options is not None else {}


def required(node: HostNode, nodes: Mapping[str, HostNode]) -> Set[str]:
    """Return the names of the nodes that a node requires, directly or indirectly."""
    names: Set[str] = set()
    waiting = list(node.requires)
    while waiting:
        name = waiting.pop()
        if name not in names and name in nodes:
            names.add(name)
            waiting.extend(nodes[name].requires)
    return names


class Maker:
    """What makes actions: an op.

    :ivar mutex: actions with the same one never run concurrently on a host
    :ivar batch: the parameter, a list, whose values are joined to make one action of several in a layer
    :ivar quick: tells from the arguments whether the action only writes one small file; None: never
    """

    mutex: Optional[str] = None
    batch: Optional[str] = None
    quick: Optional[Callable[[JsonMap], bool]] = None

    def joined(self, actions: Sequence[Action]) -> Action:
        """Return one action that does the work of several."""
        raise NotImplementedError


class Action(Record):
    """One step that changes a machine, as data, with the function that performs it.

    `fn` takes no argument and acts on the real machine (source: the Borg document). `perform(machine)` acts on the
    given machine, so a plan can perform the same step on a simulated one.

    :param op: the name of the op
    :param args: its arguments by name
    :param function: performs the step on a machine
    :param body: the op's body as a list
    :param maker: the op
    """

    __slots__ = ("args", "body", "function", "maker", "op")
    fields = ("op", "args", "body", "fn")

    def __init__(
        self,
        op: str,
        args: Attrs,
        function: Callable[[Any], Any],
        body: Sequence[Any] = (),
        maker: Optional[Maker] = None,
    ) -> None:
        self.op, self.args, self.body, self.function, self.maker = op, args, list(body), function, maker

    def perform(self, machine: Any) -> Any:
        """Perform the step on `machine`; return the result of the op's body."""
        return self.function(machine)

    @property
    def fn(self) -> Callable[[], Any]:
        """The Borg document's function without arguments, which acts on the machine that it runs on."""
        return lambda: self.function(above.this_machine())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Action) and (self.op, self.args) == (other.op, other.args)

    __hash__ = None


class ActionSpec(Record):
    """The result of a check: the actions, in order, and at most one shutdown-first action.

    :param actions: the actions, in order
    :param shutdown_first: an action to perform before the first layer
    :param left: for a removal: one text for each thing that the undo leaves unchanged, with the reason
    :param known_after: the node that decides the unknown part of the actions; the check is repeated after it. Without
        actions, all of them are unknown. It is the node itself if only its own actions show what they change
    """

    __slots__ = ("actions", "known_after", "left", "shutdown_first")
    fields = ("actions", "shutdown_first")

    def __init__(
        self,
        actions: Sequence[Action] = (),
        shutdown_first: Optional[Action] = None,
        left: Sequence[str] = (),
        known_after: Optional[str] = None,
    ) -> None:
        self.actions: List[Action] = list(actions)
        self.known_after = known_after
        self.shutdown_first = shutdown_first
        self.left: List[str] = list(left)

    @property
    def steps(self) -> List[Action]:
        """All actions in the order in which they run."""
        return ([] if self.shutdown_first is None else [self.shutdown_first]) + self.actions
