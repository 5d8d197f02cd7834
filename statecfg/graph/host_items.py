"""Items that a host lists at a node's turn (`for_each_host`): the lists, and the references to their items.

While a definition is compiled, a sample replaces each field of an item. So node types check, convert and claim
attributes as they do with plain text, and the host puts the items in place of the samples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from pyrsistent import PVector, pvector

from statecfg.graph import host_conditions, registry, schema
from statecfg.graph.on_host import OnHost
from statecfg.graph.opaque import Composed
from statecfg.graph.types import MAX_DEPTH
from statecfg.problems import suggest, tokens
from statecfg.problems.positions import NOWHERE
from statecfg.problems.tokens import SecretError
from statecfg.remote.graph.model import Blob
from statecfg.remote.graph.nodetype import OPTIONS
from statecfg.remote.graph.wrong_values import Wrong, show, type_words

OPTION = "for_each_host"
CODE = "SC0123"
REASON = "its list of items"
# Kind of list → the fields of its items. The first one is the value of `host_item` itself.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "glob": ("match",),
    "users": ("name", "uid", "gid", "home", "shell"),
    "mounts": ("path", "device", "type"),
    "command": ("line",),
}
KEYS: Mapping[str, tuple[str, ...]] = {
    "glob": ("is",),
    "users": (),
    "mounts": (),
    "command": ("read_only", "reads"),
}
LIMITS: Mapping[str, Mapping[str, type]] = {
    "users": {"min_uid": int, "max_uid": int, "group": str},
    "mounts": {"type": list},
}
PATHS = frozenset(("match", "path", "home"))  # the fields that are absolute paths
NAMES = ("name", "uid", "gid", "home", "shell", "path", "device", "type", "line", "match")
_LETTERS = "abcdefghim"
# Two sets of samples: what depends on more than their text differs between the two.
_SAMPLES = ("hi0x7q{}kz", "jn1y8w{}vm")
_WHOLE = "hi0x7qwkz"  # the sample of the item itself, until the kind of list is known
_SAMPLE = re.compile("(/(?=hi0x7q[dfm]))?hi0x7q([a-im])kz")
EXAMPLE = "write a list such as {glob: /etc/app/*.conf}, {users: {min_uid: 1000}} or {mounts: {}}"


def sample(field: str, other: bool = False) -> str:
    """Return the text in place of a field of an item.

    :param other: the text of the second set
    """
    text = _SAMPLES[other].format(_LETTERS[NAMES.index(field)])
    return f"/{text}" if field in PATHS else text


class HostItem(OnHost):
    """A field of the item for which a host repeats a node; "" for the item itself."""

    __slots__ = ("field",)
    is_secret = False

    def __init__(self, field: str = "") -> None:
        self.field = field
        super().__init__(self.label, f"statecfgHostItem{field}")

    @property
    def name(self) -> Any:
        """The name of a user."""
        return self.label if self.field else item("name")

    @name.setter
    def name(self, value: str) -> None:
        """Ignore the name: it follows from the field."""

    @property
    def label(self) -> str:
        """The name in messages."""
        return f"host_item.{self.field}" if self.field else "host_item"

    def __getattr__(self, name: str) -> Any:
        if self.field == "" and name in NAMES:
            return item(name)
        raise AttributeError(f"host_item has no field {name}; its fields are {', '.join(NAMES)}")

    def __getitem__(self, at: Any) -> Any:
        if self.field or at not in NAMES:
            raise SecretError(f"host_item has no {show(at)}", f"its fields are {', '.join(NAMES)}", "SC0426")
        return item(at)

    def reveal(self) -> str:
        """Return the sample. It is not secret, so its use is not recorded."""
        return sample(self.field) if self.field else _WHOLE

    def __repr__(self) -> str:
        return "{{ " + ("host_item" + (f".{self.field}" if self.field else "")) + " }}"

    def refuse(self) -> NoReturn:
        """Refuse to compute with the item.

        :raises SecretError: always
        """
        raise SecretError(
            f"{self!r} exists only on the host, during the run",
            "insert it as it is: without a filter, a condition, a loop or a function",
            "SC0426",
        )


_ITEMS: dict[str, HostItem] = {}


def item(field: str = "") -> HostItem:
    """Return the reference to an item, or to a field of it."""
    if field not in _ITEMS:
        _ITEMS[field] = HostItem(field)
    tokens.register(_ITEMS[field])  # again, as the first playbook of a process may be over
    return _ITEMS[field]


def scope(options: Mapping[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
    """Return the variables of templates of a node: with `host_item` if it has `for_each_host`.

    :param options: the options of the node, possibly with its attributes
    """
    return {**variables, "host_item": item()} if OPTION in options else variables


def found(value: Any, depth: int = 0) -> Iterator[HostItem]:
    """Yield the references in an attribute, also in lists and maps. Values nested too deep are refused later."""
    if depth > MAX_DEPTH:
        return
    if isinstance(value, HostItem):
        yield value
    elif isinstance(value, Composed):
        yield from (piece for piece in value.pieces if isinstance(piece, HostItem))
    elif isinstance(value, (Mapping, list, tuple, PVector)):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from found(inner, depth + 1)


def sampled(value: Any, kind: str) -> Any:
    """Return an attribute with samples in place of references.

    :param kind: the kind of list
    :raises Wrong: if an item of this kind has no such field
    """
    if isinstance(value, HostItem):
        field = value.field or FIELDS[kind][0]
        if field not in FIELDS[kind]:
            raise Wrong(f"{value!r}, but an item of `{kind}` has no such field", _fields_of(kind))
        return sample(field)
    if isinstance(value, Composed):
        pieces = [sampled(piece, kind) for piece in value.pieces]
        return "".join(pieces) if all(isinstance(piece, str) for piece in pieces) else Composed(pieces)
    if isinstance(value, str):
        return value.replace(_WHOLE, sample(FIELDS[kind][0])) if _WHOLE in value else value
    if isinstance(value, Blob) and value.data is not None and _WHOLE.encode() in value.data:
        return Blob.of(value.data.replace(_WHOLE.encode(), sample(FIELDS[kind][0]).encode()))
    if isinstance(value, Mapping):
        return {key: sampled(inner, kind) for key, inner in value.items()}
    if isinstance(value, (list, tuple, PVector)):
        return [sampled(inner, kind) for inner in value]
    return value


def sampled_in(name: str, value: Any, options: Mapping[str, Any]) -> Any:
    """Return an attribute or an option of a node with samples in place of references.

    :param name: its name
    :param options: the options of the node, as they are written
    :raises Wrong: if it must not contain these references
    """
    if name in OPTIONS and name not in ("provides", "when_host"):
        raise Wrong(f"{show(value)}", "write it without host_item")
    kind = kind_of(options.get(OPTION))
    if not kind:
        raise Wrong(f"{show(value)}", "only a node with `for_each_host` has host_item")
    return sampled(value, kind)


def _fields_of(kind: str) -> str:
    names = FIELDS[kind]
    return "write {{ host_item }}" if len(names) == 1 else f"its fields are {', '.join(names)}"


def kind_of(value: Any) -> str:
    """Return the kind of a list as it is written, "" if it has none."""
    keys = [schema.plain(key) for key in value] if isinstance(value, Mapping) else []
    return next((key for key in keys if key in FIELDS), "")


def checked(value: Any) -> Mapping[str, Any]:
    """Return the list of `for_each_host` in the form that hosts get.

    :raises Wrong: if it is invalid
    """
    if not isinstance(value, Mapping):
        text = isinstance(value, str) and value.startswith("/")
        raise Wrong(f"{type_words(value)}: {show(value)}", f"write {{glob: {value}}}" if text else EXAMPLE)
    written = {schema.plain(key): inner for key, inner in value.items()}
    kinds = [key for key in written if key in FIELDS]
    if len(kinds) != 1:
        unknown = next((key for key in written if key not in FIELDS), "")
        what = f"{' and '.join(f'`{kind}`' for kind in kinds)} in one list" if kinds else "a list without a kind"
        raise Wrong(what, (not kinds and unknown and suggest(unknown, FIELDS, "there are")) or EXAMPLE)
    (kind,) = kinds
    if kind == "mounts":
        registry.find("mount", NOWHERE)  # its code reads the mounts
    for key in written:
        if key != kind and key not in KEYS[kind]:
            hint = suggest(key, KEYS[kind], f"`{kind}` takes") if KEYS[kind] else f"`{kind}` takes no other keys"
            raise Wrong(f"`{kind}` with the key `{key}`", hint)
    if next(found(written), None) is not None:
        raise Wrong("a reference to its own items", "name the list with text that the playbook knows")
    if kind == "glob":
        return _glob(written)
    if kind == "command":
        (condition,) = host_conditions.checked(written)
        return MappingProxyType({key: condition[key] for key in ("command", "reads")})
    return MappingProxyType({kind: _limits(kind, written[kind])})


def _glob(written: Mapping[str, Any]) -> Mapping[str, Any]:
    pattern = host_conditions.typed("path", written["glob"], "glob")
    if not re.search(r"[*?\[]", pattern):
        raise Wrong(f"`glob` without a pattern: {show(pattern)}", "write a pattern such as /etc/app/*.conf")
    if "**" in pattern:
        raise Wrong(f"`glob` with `**`: {show(pattern)}", "name the directories, with one `*` for each level")
    kind = written.get("is")
    if kind is not None and kind not in host_conditions.PATHS:
        raise Wrong(f"`is` with the value {show(kind)}", f"it is one of {', '.join(host_conditions.PATHS)}")
    return MappingProxyType({"glob": pattern, **({"is": kind} if kind is not None else {})})


def _limits(kind: str, value: Any) -> Mapping[str, Any]:
    valid = LIMITS[kind]
    if value is None or value is True or value == "all":
        value = {}
    if not isinstance(value, Mapping):
        raise Wrong(f"`{kind}` with {type_words(value)}: {show(value)}", f"write {kind}: {{}} for all of them")
    limits: dict[str, Any] = {}
    for key, limit in ((schema.plain(key), limit) for key, limit in value.items()):
        if key not in valid:
            raise Wrong(f"`{kind}` with the key `{key}`", suggest(key, valid, f"`{kind}` takes"))
        if valid[key] is list:
            names = [limit] if isinstance(limit, str) else limit
            if not isinstance(names, (list, tuple, PVector)) or not all(isinstance(name, str) for name in names):
                raise Wrong(f"`{key}` with the value {show(limit)}", "write names, such as [ext4, xfs]")
            limits[key] = pvector(names)
        elif valid[key] is int:
            if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
                raise Wrong(f"`{key}` with the value {show(limit)}", "write a number, such as 1000")
            limits[key] = limit
        else:
            limits[key] = host_conditions.typed("group", limit, key)
    return MappingProxyType(limits)


def statement(spec: Mapping[str, Any]) -> str:
    """Return a list in words."""
    if "glob" in spec:
        kind = f", each a {spec['is']}" if "is" in spec else ""
        return f"paths that match {spec['glob']}{kind}"
    if "command" in spec:
        argv = list(spec["command"])
        return f"lines that {' '.join(argv[2:] if argv[:2] == ['/bin/sh', '-c'] else argv)} prints"
    kind = "users" if "users" in spec else "mounts"
    limits = [f"{key} {', '.join(one) if isinstance(one, PVector) else one}" for key, one in sorted(spec[kind].items())]
    return kind + (f" with {', '.join(limits)}" if limits else "")


def needs(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the kind and the name of what a list looks at; see `NodeType.needs`."""
    if "glob" in spec:
        yield "path", re.split(r"/[^/]*[*?\[]", spec["glob"])[0] or "/"
    elif "command" in spec:
        yield from host_conditions.needs([spec])
    elif spec.get("users", {}).get("group"):
        yield "group", spec["users"]["group"]


def has_sample(value: Any) -> bool:
    """Return whether an attribute, also a list, map or content, contains a sample."""
    return any(True for _ in samples(value))


def samples(value: Any) -> Iterator[str]:
    """Yield the fields whose samples an attribute contains."""
    if isinstance(value, str):
        yield from map(_field, _SAMPLE.finditer(value))
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from samples(inner)
    elif isinstance(value, (list, tuple, PVector)):
        for inner in value:
            yield from samples(inner)
    elif isinstance(value, (Blob, bytes)):
        content = Blob.of(value)
        if content.data is not None:
            yield from samples(content.data.decode("utf-8", "ignore"))
    elif isinstance(value, Composed):
        yield from samples([piece for piece in value.pieces if isinstance(piece, str)])


def shown(text: str) -> str:
    """Return text for names and messages, with `{host_item}` in place of samples."""
    return _SAMPLE.sub(lambda match: f"{{host_item{_suffix(_field(match))}}}", text) if "hi0x7q" in text else text


def _field(match: re.Match[str]) -> str:
    return NAMES[_LETTERS.index(match[2])]


def _suffix(field: str) -> str:
    return "" if field in ("match", "line") else f".{field}"


def replaced(value: Any, texts: Mapping[str, str]) -> Any:
    """Return an attribute with other texts in place of samples.

    :param texts: field → text
    """
    if isinstance(value, str):
        return _SAMPLE.sub(lambda match: texts[_field(match)], value) if "hi0x7q" in value else value
    if isinstance(value, Mapping):
        return MappingProxyType({key: replaced(inner, texts) for key, inner in value.items()})
    if isinstance(value, (list, tuple, PVector)):
        return pvector([replaced(inner, texts) for inner in value])
    if isinstance(value, Blob) and value.data is not None:
        text = value.data.decode("utf-8", "surrogateescape")
        return Blob.of(replaced(text, texts).encode("utf-8", "surrogateescape"))
    if isinstance(value, Composed):
        return Composed([replaced(piece, texts) if isinstance(piece, str) else piece for piece in value.pieces])
    return value


if TYPE_CHECKING:
    host_item: Any
else:

    def __getattr__(name: str) -> Any:
        """Return the reference for playbooks in Python and Hy, which is made on first use."""
        if name == "host_item":
            return item()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
