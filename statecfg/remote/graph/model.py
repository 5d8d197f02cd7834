"""The plain values that travel between controller and host: keywords, content, nodes, actions, results."""

from __future__ import annotations

import hashlib

from statecfg.remote.graph.errors import StatecfgError
from statecfg.remote.graph.names import ActionStatus, named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

    from statecfg.remote.graph.ops import Op

    Json = Any
    Result = Dict[str, Any]


class Keyword(str):
    """A keyword of the Borg document: equal to its name, and a function that looks itself up in a map."""

    __slots__ = ()

    def __call__(self, mapping: Mapping[str, Any], default: Any = None) -> Any:
        """Return `mapping[self]`, or `default` where the key is missing; `:restart-on` also finds `restart_on`."""
        for key in (self, self.replace("-", "_")):
            if key in mapping:
                return mapping[key]
        missing = getattr(type(mapping), "__missing__", None)
        return default if missing is None or default is not None else missing(mapping, self)


class Record:
    """A frozen value with named fields that can be read as attributes, as a map, and by keyword."""

    __slots__: Tuple[str, ...] = ()
    fields: Tuple[str, ...] = ()

    def __getitem__(self, key: object) -> Any:
        name = str(getattr(key, "name", key)).replace("-", "_")
        if name not in self.fields:
            raise KeyError(key)
        return getattr(self, name)

    def get(self, key: object, default: Any = None) -> Any:
        """Return the field, or `default` where there is none of that name or it is None."""
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

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]  # equal by value, and values may hold maps

    def __repr__(self) -> str:
        return "%s(%s)" % (type(self).__name__, ", ".join("%s=%r" % (f, getattr(self, f)) for f in self.fields))


class Blob:
    """File content, known by its SHA-256: `data` is None while only the digest has crossed the wire.

    `secret` says that it is known to hold one. Where `hides` says so, reports tell neither its digest, from which the
    secret could be guessed, nor what it replaces.
    """

    __slots__ = ("data", "path", "secret", "sha256", "size")
    secrets: Tuple[bytes, ...] = ()  # the values of this run, on a host

    def __init__(self, sha256: str, size: int, data: Optional[bytes] = None, path: Optional[str] = None) -> None:
        self.sha256, self.size, self.data, self.path = sha256, size, data, path
        self.secret: Optional[bool] = None  # nobody has looked yet

    @classmethod
    def of(cls, content: Union[str, bytes, Blob]) -> Blob:
        """Return the blob of a text (as UTF-8) or of bytes; a blob is returned as it is."""
        if isinstance(content, Blob):
            return content
        data = content.encode("utf-8") if isinstance(content, str) else bytes(content)
        return cls(hashlib.sha256(data).hexdigest(), len(data), data)

    def read(self) -> bytes:
        """Return the content. Raises LookupError where it has not arrived."""
        if self.data is not None:
            return self.data
        if self.path is not None:
            with open(self.path, "rb") as stream:
                return stream.read()
        raise LookupError("content %s (%d bytes) has not arrived" % (self.sha256[:12], self.size))

    def chunks(self, size: int = 1 << 18) -> Iterator[bytes]:
        """Yield the content in pieces of `size` bytes, so that a large file never stands in memory."""
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

    def hides(self) -> bool:
        """Tell whether a secret of this run is in the content, as far as it has arrived."""
        if self.secret is None:
            found = bool(self.secrets) and self.holds(self.secrets)
            if not found and self.data is None and self.path is None:
                return False  # it may arrive yet
            self.secret = found
        return self.secret

    def holds(self, values: Iterable[bytes]) -> bool:
        """Tell whether any of these stands in the content, as far as it has arrived."""
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
        return "<%d bytes, sha256 %s>" % (self.size, self.sha256[:12])


class Unknown(StatecfgError):
    """What a check asked for can't be known yet; `cause` names the node whose action decides it."""

    def __init__(self, cause: str, what: str = "") -> None:
        Exception.__init__(self, "%sknown after %s" % (what + " " if what else "", cause))
        self.cause, self.what = cause, what


class Stays(StatecfgError):
    """What left the definition can't be undone in this run: it stays on the host, and so does its record."""


class CheckError(StatecfgError):
    """The node can't be brought about on this host: the user's mistake or the host's state, not our bug."""


class Conflict(CheckError):
    """Nodes of a run exclude each other: none of it is begun, because it can't come to its end."""


class Node(Record):
    """A vertex of the graph as it stands on the host.

    :param provides: its name, such as ``file:/etc/motd``
    :param type: the name of its node type
    :param requires: the names it depends on
    :param triggers: those of `requires` whose change triggers this node as well
    :param attrs: arguments and attributes by name; content is a `Blob`
    :param position: where it was written, ``file:line`` or ``file:line:column``
    :param hides: names of the attributes that hold secrets
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


HostNode = Node  # its public name: in `statecfg`, Node is the node of a graph


class Action(Record):
    """One step that changes a machine, as data, with the function that takes it.

    `fn` takes no argument and acts on the real machine, as the Borg document says; `perform(machine)` acts on
    whichever machine it is given, which is how a plan takes the same step on an imagined one.
    """

    __slots__ = ("args", "body", "function", "maker", "op")
    fields = ("op", "args", "body", "fn")

    def __init__(
        self,
        op: str,
        args: Dict[str, Any],
        function: Callable[[Any], Any],
        body: Sequence[Any] = (),
        maker: Optional[Op] = None,
    ) -> None:
        self.op, self.args, self.body, self.function, self.maker = op, args, list(body), function, maker

    def perform(self, machine: Any) -> Any:
        """Take the step on `machine`; return whatever the op's body returned."""
        return self.function(machine)

    @property
    def fn(self) -> Callable[[], Any]:
        """Return the document's function of no arguments, which acts on this very machine."""

        def act() -> Any:
            return self.function(named("RealMachine")())

        return act

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Action) and (self.op, self.args) == (other.op, other.args)

    __hash__ = None


class ActionSpec(Record):
    """What a check returns: the actions, in order, and at most one action to take before the graph is walked.

    :param left: for a removal: what stays as it is although the node came to it, and why, a text each
    :param known_after: the node after which the rest of what the actions do is known; the check is then made again
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
        """All its actions in the order in which they are taken."""
        return ([] if self.shutdown_first is None else [self.shutdown_first]) + self.actions


OK: Result = {"status": ActionStatus.OK}


def ok(log: Optional[str] = None) -> Result:
    """Return the result of an action that succeeded, with its output where there is any."""
    return {"status": ActionStatus.OK, "log": log} if log else {"status": ActionStatus.OK}


def error(reason: str, log: Optional[str] = None) -> Result:
    """Return the result of an action that failed, with the reason and its output where there is any."""
    result: Result = {"status": ActionStatus.ERROR, "reason": reason}
    if log:
        result["log"] = log
    return result
