"""Items that a host lists at a node's turn (`for_each_host`): the lists, and the references to their items.

While a definition is compiled, a sample replaces each field of an item. So node types check and convert
attributes and find identities as they do with plain text, and the host puts the items in place of the samples.
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
# Name of a list → the fields of its items. The first one is the value of `host_item` itself.
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
_WHOLE = "hi0x7qwkz"  # the sample of the item itself, until the list is known
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


def sampled(value: Any, list_name: str) -> Any:
    """Return an attribute with samples in place of references.

    :param list_name: the name of the list: `glob`, `users`, `mounts` or `command`
    :raises Wrong: if an item of this kind has no such field
    """
    if isinstance(value, HostItem):
        field = value.field or FIELDS[list_name][0]
        if field not in FIELDS[list_name]:
            raise Wrong(f"{value!r}, but an item of `{list_name}` has no such field", _fields_of(list_name))
        return sample(field)
    if isinstance(value, Composed):
        pieces = [sampled(piece, list_name) for piece in value.pieces]
        return "".join(pieces) if all(isinstance(piece, str) for piece in pieces) else Composed(pieces)
    if isinstance(value, str):
        return value.replace(_WHOLE, sample(FIELDS[list_name][0])) if _WHOLE in value else value
    if isinstance(value, Blob) and value.data is not None and _WHOLE.encode() in value.data:
        return Blob.of(value.data.replace(_WHOLE.encode(), sample(FIELDS[list_name][0]).encode()))
    if isinstance(value, Mapping):
        return {key: sampled(inner, list_name) for key, inner in value.items()}
    if isinstance(value, (list, tuple, PVector)):
        return [sampled(inner, list_name) for inner in value]
    return value


def sampled_in(name: str, value: Any, options: Mapping[str, Any]) -> Any:
    """Return an attribute or an option of a node with samples in place of references.

    :param name: its name
    :param options: the options of the node, as they are written
    :raises Wrong: if it must not contain these references
    """
    if name in OPTIONS and name not in ("provides", "when_host"):
        raise Wrong(f"{show(value)}", "write it without host_item")
    list_name = list_name_of(options.get(OPTION))
    if not list_name:
        raise Wrong(f"{show(value)}", "only a node with `for_each_host` has host_item")
    return sampled(value, list_name)


def _fields_of(list_name: str) -> str:
    names = FIELDS[list_name]
    return "write {{ host_item }}" if len(names) == 1 else f"its fields are {', '.join(names)}"


def list_name_of(value: Any) -> str:
    """Return the name of a list as it is written, "" if it has none."""
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
    list_names = [key for key in written if key in FIELDS]
    if len(list_names) != 1:
        unknown = next((key for key in written if key not in FIELDS), "")
        what = (
            f"{' and '.join(f'`{list_name}`' for list_name in list_names)} in one list"
            if list_names
            else "a list without a kind"
        )
        raise Wrong(what, (not list_names and unknown and suggest(unknown, FIELDS, "available")) or EXAMPLE)
    (list_name,) = list_names
    if list_name == "mounts":
        registry.find("mount", NOWHERE)  # its code reads the mounts
    for key in written:
        if key != list_name and key not in KEYS[list_name]:
            hint = (
                suggest(key, KEYS[list_name], f"`{list_name}` takes")
                if KEYS[list_name]
                else f"`{list_name}` takes no other keys"
            )
            raise Wrong(f"`{list_name}` with the key `{key}`", hint)
    if next(found(written), None) is not None:
        raise Wrong("a reference to its own items", "name the list with text that the playbook knows")
    if list_name == "glob":
        return _glob(written)
    if list_name == "command":
        (condition,) = host_conditions.checked(written)
        return MappingProxyType({key: condition[key] for key in ("command", "reads")})
    return MappingProxyType({list_name: _limits(list_name, written[list_name])})


def _glob(written: Mapping[str, Any]) -> Mapping[str, Any]:
    pattern = host_conditions.typed("path", written["glob"], "glob")
    if not re.search(r"[*?\[]", pattern):
        raise Wrong(f"`glob` without a pattern: {show(pattern)}", "write a pattern such as /etc/app/*.conf")
    if "**" in pattern:
        raise Wrong(f"`glob` with `**`: {show(pattern)}", "name the directories, with one `*` for each level")
    file_type = written.get("is")
    if file_type is not None and file_type not in host_conditions.PATHS:
        raise Wrong(f"`is` with the value {show(file_type)}", f"it is one of {', '.join(host_conditions.PATHS)}")
    return MappingProxyType({"glob": pattern, **({"is": file_type} if file_type is not None else {})})


def _limits(list_name: str, value: Any) -> Mapping[str, Any]:
    valid = LIMITS[list_name]
    if value is None or value is True or value == "all":
        value = {}
    if not isinstance(value, Mapping):
        raise Wrong(
            f"`{list_name}` with {type_words(value)}: {show(value)}", f"write {list_name}: {{}} for all of them"
        )
    limits: dict[str, Any] = {}
    for key, limit in ((schema.plain(key), limit) for key, limit in value.items()):
        if key not in valid:
            raise Wrong(f"`{list_name}` with the key `{key}`", suggest(key, valid, f"`{list_name}` takes"))
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
        each = f", each a {spec['is']}" if "is" in spec else ""
        return f"paths that match {spec['glob']}{each}"
    if "command" in spec:
        argv = list(spec["command"])
        return f"lines that {' '.join(argv[2:] if argv[:2] == ['/bin/sh', '-c'] else argv)} prints"
    list_name = "users" if "users" in spec else "mounts"
    limits = [
        f"{key} {', '.join(one) if isinstance(one, PVector) else one}" for key, one in sorted(spec[list_name].items())
    ]
    return list_name + (f" with {', '.join(limits)}" if limits else "")


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
