"""Things that are entries of a facet: check, snapshot and undo from a few declarations."""

from __future__ import annotations

from statecfg.remote.graph import undoing
from statecfg.remote.graph.model import ActionSpec, CheckError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, ClassVar, Dict, Iterable, List, Mapping, Optional, Tuple

    from statecfg.remote.graph.model import Action, HostNode

    Fields = Mapping[str, Any]


class FacetEntry:
    """A thing that is an entry of a facet. `NodeType.managed_by` gives a node type its check, remember and undo.

    A subclass says which entry it is, and how an op changes it. The check changes what differs from the node. The
    undo removes what the node created, and restores what it changed; what others have changed since stays.
    An instance is about one node in one world.

    :cvar facet: the name of the facet
    :cvar fields: the attributes that are fields of the entry under the same names
    :cvar noun: what the attribute `name` is the name of, such as "the group", for messages
    :cvar words: field → the word for it in messages, if it is another one
    :cvar kept_as: the name of the entry in the snapshot
    :cvar whole: whether a new thing that others have changed stays, too; otherwise, undo removes it
    :cvar together: whether a change sets all fields: then the undo restores all of them or none
    :cvar lists: the fields that are lists, whose items are compared one by one
    :cvar secret: the attribute that can be set but not recorded, such as `password`
    :cvar single: whether the snapshot contains only the value of the only field; None: there was no such thing
    :cvar permission: the attribute that allows the removal nevertheless, as the error and the undo's message name it
    :ivar memory: the snapshot, during an undo
    """

    facet: ClassVar[str] = ""
    fields: ClassVar[Tuple[str, ...]] = ()
    noun: ClassVar[str] = ""
    words: ClassVar[Mapping[str, str]] = {}
    kept_as: ClassVar[str] = "entry"
    whole: ClassVar[bool] = False
    together: ClassVar[bool] = False
    lists: ClassVar[Tuple[str, ...]] = ()
    secret: ClassVar[str] = ""
    single: ClassVar[bool] = False
    permission: ClassVar[Tuple[str, str]] = ("", "")

    def __init__(self, node: HostNode, world: Any, nodes: Optional[Mapping[str, HostNode]] = None) -> None:
        self.node, self.world, self.nodes = node, world, nodes or {}
        self.memory: Mapping[str, Any] = {}

    @property
    def attrs(self) -> Mapping[str, Any]:
        """The attributes of the node."""
        return self.node.attrs

    @classmethod
    def functions(cls) -> Dict[str, Callable[..., Any]]:
        """Return the functions of a node type that manages such things; see `NodeType.managed_by`."""
        return {
            "check": lambda node, nodes, world: cls(node, world, nodes).check(),
            "remember": lambda node, world: cls(node, world).remember(),
            "undo": lambda node, memory, world: cls(node, world).undo(memory),
        }

    # What most subclasses define.

    def key(self) -> str:
        """Return the key of the entry. Without a definition, it is the attribute `name`."""
        return str(self.attrs["name"])

    def title(self) -> str:
        """Return the words for the thing in messages, such as "the group app"; without `noun`, it is the key."""
        return f"{self.noun} {self.attrs['name']}" if self.noun else self.key()

    def named(self, field: str) -> str:
        """Return the words for a field in messages, such as "the GID of the group app"."""
        return f"the {self.words.get(field, field)} of {self.title()}"

    def change(self, now: Fields, fields: Fields) -> List[Action]:
        """Return the actions that give an entry these fields.

        :param now: its present fields
        """
        raise NotImplementedError(f"{type(self).__name__} must define change")

    def create(self, fields: Fields) -> List[Action]:
        """Return the actions that make an entry with these fields. Without a definition, `change` makes it."""
        return self.change({}, fields)

    def remove(self, now: Fields) -> List[Action]:
        """Return the actions that remove the entry. Without a definition, it can't be removed."""
        return []

    # What some need.

    def ready(self) -> None:
        """Check before a check and a snapshot that the host can have such things; otherwise, raise CheckError."""

    def require(self, now: Optional[Fields]) -> None:
        """Check that the host can have this thing; otherwise, raise CheckError. Not called for `absent`."""

    def present(self) -> Optional[Fields]:
        """Return the present entry; None if there is none."""
        found: Optional[Fields] = self.world.entry(self.facet, self.key())
        return found

    def absent(self) -> bool:
        """Tell whether the node wants no such entry."""
        return bool(self.attrs.get("absent"))

    def own(self, entry: Optional[Fields]) -> Optional[Fields]:
        """Return an entry as the undo counts it: None for one that the host has by default, such as from a policy."""
        return entry

    def wanted(self) -> Fields:
        """Return the fields that the node sets, as the facet shows them."""
        return {field: self.attrs[field] for field in self.fields if self.attrs.get(field) is not None}

    def same(self, field: str, now: Any, value: Any) -> bool:
        """Tell whether a present value is the one that the node sets."""
        return bool(now == value)

    def enough(self, field: str, now: Any, value: Any) -> bool:
        """Tell whether the check accepts a present value. Without a definition, it must be the `same`."""
        return self.same(field, now, value)

    def exact(self, field: str) -> bool:
        """Tell whether a list must not contain other items than those of the node."""
        return True

    def known(self, field: str, item: str) -> bool:
        """Tell whether the host still has what a former item of a list names. Otherwise, the undo does not add it."""
        return True

    def set_secret(self, now: Optional[Fields]) -> List[Action]:
        """Return the actions that set the attribute `secret`, unless the host has this value already.

        :param now: the entry before the actions of the node; None if there was none
        """
        raise NotImplementedError(f"{type(self).__name__} must define set_secret")

    def in_the_way(self, now: Fields) -> str:
        """Return why the thing can't be removed now, such as "shop contains 2 tables"; "" if it can."""
        return ""

    def stays(self, field: str, now: Any) -> str:
        """Return the message about a field that others have changed."""
        return undoing.stays(self.named(field), now)

    def recorded(self, memory: Mapping[str, Any]) -> Optional[Fields]:
        """Return the former entry from a snapshot."""
        found: Optional[Fields] = memory[self.kept_as]
        return {self.fields[0]: found} if self.single and found is not None else found

    def restore(self, was: Fields) -> ActionSpec:
        """Return the actions that make a removed thing again. A thing with a secret stays removed."""
        if self.secret:
            return ActionSpec(left=[f"{self.title()} is not restored: statecfg does not record {self._secrets()}"])
        return ActionSpec(self.create(was))

    def give_back(self, now: Fields, was: Fields) -> ActionSpec:
        """Return what gives an entry its former fields.

        :param was: the fields to restore
        """
        return ActionSpec(self.change(now, was))

    def drop(self, now: Fields) -> ActionSpec:
        """Return what removes a thing that the node created."""
        changed = undoing.compared({}, self.wanted(), now, self.same)[1] if self.whole else []
        if changed:
            return self._left(changed, now)
        reason = self.in_the_way(now)
        if reason:
            return ActionSpec(left=["; ".join(filter(None, (f"{reason}: it stays", self.permission[1])))])
        return ActionSpec(self.remove(now))

    # What a node type calls.

    def check(self) -> ActionSpec:
        """Compare the thing with the node.

        :raises CheckError: if it can't be made or removed
        """
        self.ready()
        now = self.present()
        if self.absent():
            return ActionSpec([] if now is None else self._removal(now))
        self.require(now)
        wanted = dict(self.wanted())
        wanted.update(
            (field, self._complete(field, wanted[field], now or {})) for field in self.lists if field in wanted
        )
        if now is None:
            spec = ActionSpec(self.create(wanted))
        else:
            wrong = {field: value for field, value in wanted.items() if not self._right(field, now.get(field), value)}
            spec = ActionSpec(self.change(now, wanted if self.together else wrong) if wrong else [])
        if self.secret and self.attrs.get(self.secret) is not None:
            spec.actions.extend(self.set_secret(now))
        return spec

    def _complete(self, field: str, items: Iterable[str], now: Fields) -> List[str]:
        return sorted({*items, *(() if self.exact(field) else now.get(field) or ())})

    def _right(self, field: str, now: Any, value: Any) -> bool:
        return sorted(now or ()) == value if field in self.lists else self.enough(field, now, value)

    def _removal(self, now: Fields) -> List[Action]:
        reason = self.in_the_way(now)
        if reason:
            raise CheckError("; ".join(filter(None, (reason, self.permission[0]))))
        return self.remove(now)

    def remember(self) -> Dict[str, Any]:
        """Record the entry."""
        self.ready()
        now = self.present()
        return {self.kept_as: (now or {}).get(self.fields[0]) if self.single else now}

    def undo(self, memory: Mapping[str, Any]) -> ActionSpec:
        """Remove a thing that the node created, or restore what it removed or changed."""
        self.memory = memory
        was, now = self._restorable(self.own(self.recorded(memory))), self.own(self.present())
        if self.absent():
            if was is not None and now is None:
                return self.restore(was)
            fields = self.fields if self.whole else ()
            return self._left([field for field in fields if (was or {}).get(field) != (now or {}).get(field)], now)
        if now is None:
            return ActionSpec(left=[f"{self.title()} no longer exists"] if was is not None else [])
        if was is None:
            return self.drop(now)
        made = dict(self.wanted())
        lists = {field: made.pop(field) for field in self.lists if field in made}
        back, changed = undoing.compared(was, made, now, self.same)
        if back and self.together:
            back = {} if changed else {field: was.get(field) for field in self.fields or made}
        left = self._left(changed, now).left
        for field, items in lists.items():
            value, more = undoing.items(was[field], items, now.get(field), self.exact(field), self.named(field))
            back.update({field: value} if value != sorted(now.get(field) or ()) else {})
            left += more
        if self.secret and self.attrs.get(self.secret) is not None:
            left.append(f"{self.named(self.secret)} stays: statecfg does not record {self._secrets()}")
        spec = self.give_back(now, back) if back else ActionSpec()
        spec.left.extend(left)
        return spec

    def _secrets(self) -> str:
        return self.words.get(self.secret, self.secret) + "s"

    def _restorable(self, was: Optional[Fields]) -> Optional[Fields]:
        if was is None or not self.lists:
            return was
        lists = {field: [item for item in was.get(field) or () if self.known(field, item)] for field in self.lists}
        return {**was, **lists}

    def _left(self, changed: Iterable[str], now: Optional[Fields]) -> ActionSpec:
        return ActionSpec(left=[self.stays(field, (now or {}).get(field)) for field in changed])
