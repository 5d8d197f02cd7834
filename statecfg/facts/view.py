"""`host.facts`: the object through which definitions read facts. It records each read, and which facts are missing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, cast, get_args, get_origin

from statecfg.facts.catalogue import OWN, Facts, fields_of, is_record
from statecfg.facts.paths import Path, fact_of, is_item, written
from statecfg.facts.recorded import StoredFacts, age
from statecfg.graph.host_text import told
from statecfg.problems import InvalidInput, SourceLocation, positions, problem, suggest


class MissingFact(InvalidInput):
    """A definition reads a fact that is not known yet. It has no problems: the definition is evaluated again later.

    :param facts: the facts of the host
    :param name: the name of the fact
    """

    def __init__(self, facts: HostFacts, name: str) -> None:
        super().__init__([])
        self.facts, self.name = facts, name

    def at(self, location: SourceLocation) -> None:
        """Record where the definition reads the fact."""
        self.facts.missing[self.name][location] = None


class WrongRead(InvalidInput):
    """A definition reads a fact that it can't have. `detail` and `help` say why, for another location.

    :cvar code: the code of the problem
    """

    code = ""

    def __init__(self, detail: str, help: str) -> None:
        self.detail, self.help = detail, help
        super().__init__([problem(self.code, detail, help, positions.of_frame(sys._getframe(2)))])

    def located(self, *locations: SourceLocation) -> InvalidInput:
        """Return the error at other source locations."""
        return InvalidInput([problem(self.code, self.detail, self.help, *locations)])


class UnknownFact(WrongRead):
    """A definition reads a fact that does not exist."""

    code = "SC0520"


class UnusableFact(WrongRead):
    """A definition reads a fact of another host that is not in the store, or is too old."""

    code = "SC0523"


class HostFacts:
    """The facts of one host during one evaluation of its definition.

    :param values: name of a fact → its value
    :param own: the names of the project's own facts
    :ivar missing: name of a fact that was read and is not in `values` → where it was read
    :ivar read_paths: keys that lead to a value → the value that was read; None if it does not exist, True for an item
        with several values of which only the existence was read
    :cvar final: whether a missing fact is an error, because this run does not ask the host
    """

    final = False

    def __init__(self, values: Mapping[str, Any] | None = None, own: Collection[str] = ()) -> None:
        self.values: Mapping[str, Any] = values or {}
        self.own = own
        self.missing: dict[str, dict[SourceLocation, None]] = {}
        self.read_paths: dict[Path, Any] = {}

    @property
    def used(self) -> Mapping[str, Any]:
        """Path of a value, such as `os.family` or `packages[nginx]` → the value that was read."""
        return {written(path): value for path, value in self.read_paths.items()}

    @property
    def view(self) -> Facts:
        """The object that definitions read."""
        return cast(Facts, FactRecord(self, Facts, ()))

    @property
    def names(self) -> frozenset[str]:
        """The names of the facts whose values were read."""
        return frozenset(map(fact_of, self.read_paths)) & self.values.keys()

    def read(self, path: Path) -> Any:
        """Return a value, and record that it was read.

        :raises MissingFact: the fact is not known
        """
        value = self.peek(path)
        self.read_paths[path] = value
        if is_item(path[:-1]):
            self.read_paths.pop(path[:-1], None)  # this value tells that the item exists
        return value

    def read_again(self, path: Path) -> Any:
        """Return and record what is at a path that the definition of another host has read; see `read_paths`.

        :raises MissingFact: the fact is not known
        """
        try:
            if not is_item(path):
                return self.read(path)
            self.peek(path)
        except (KeyError, TypeError):  # an item of a table that this host does not have
            self.note_existence(path, False)
        else:
            self.note_existence(path, True)
        return self.read_paths[path]

    def peek(self, path: Path) -> Any:
        """Return a value without recording it.

        :raises MissingFact: the fact is not known
        """
        name, rest = fact_of(path), path[2 if path[0] == OWN else 1 :]
        if name not in self.values:
            self.missing.setdefault(name, {})
            raise MissingFact(self, name)
        value = self.values[name]
        for key in rest:
            value = value[key]
        return value

    def note_existence(self, path: Path, exists: bool) -> None:
        """Record whether a name exists, because that decides something, too."""
        self.read_paths[path] = True if exists else None

    def own_names(self) -> Collection[str]:
        """Return the names of the project's own facts."""
        return self.own


class CurrentFacts:
    """The facts of a host in the evaluation that is running. A playbook may keep them and use them in another one.

    :param find: returns these facts
    """

    def __init__(self, find: Callable[[], HostFacts]) -> None:
        self._find = find

    @property
    def view(self) -> Facts:
        """The object that definitions read."""
        return cast(Facts, FactRecord(self, Facts, ()))

    def read(self, path: Path) -> Any:
        """Return a value, and record that it was read."""
        return self._find().read(path)

    def peek(self, path: Path) -> Any:
        """Return a value without recording it."""
        return self._find().peek(path)

    def note_existence(self, path: Path, exists: bool) -> None:
        """Record whether a name exists."""
        self._find().note_existence(path, exists)

    def own_names(self) -> Collection[str]:
        """Return the names of the project's own facts."""
        return self._find().own_names()


class RecordedFacts(HostFacts):
    """Facts of a host that were collected earlier.

    :param host: the name of the host
    :param recorded: the facts, with the times when they were collected
    :param own: the names of the project's own facts
    :param oldest: the maximum age in seconds; None for any age
    :param final: a missing fact is an error, because this run does not ask the host
    :ivar times: name of a fact that was read → when it was collected, in seconds since 1970
    """

    def __init__(
        self, host: str, recorded: StoredFacts, own: Collection[str], oldest: float | None, final: bool = False
    ) -> None:
        super().__init__(recorded.values, own)
        self.host, self.at, self.oldest, self.final = host, recorded.at, oldest, final
        self.times: dict[str, float] = {}

    def peek(self, path: Path) -> Any:
        """Return a value without recording it.

        :raises MissingFact: the fact is not known
        :raises UnusableFact: the fact is not known and the run does not ask the host, or the fact is too old
        """
        name = fact_of(path)
        if name not in self.values and self.final:
            detail = f"the fact `{name}` of {self.host} is not known, and this run does not visit {self.host}"
            raise UnusableFact(detail, f"collect it first: statecfg facts {self.host} --record last")
        value = super().peek(path)
        if name in self.at:
            self.times[name] = self.at[name]
            old = time.time() - self.at[name]
            if self.oldest is not None and old > self.oldest:
                allowed = age(self.oldest)
                detail = f"the fact `{name}` of {self.host} is {age(old)} old, and --max-fact-age allows {allowed}"
                raise UnusableFact(detail, f"collect it again: statecfg facts {self.host} --record last")
        return value


class _Item:
    """The values of one item of a list, which was recorded as a whole."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def read(self, path: Path) -> Any:
        """Return a value of the item."""
        value = self.value
        for key in path:
            value = value[key]
        return value

    peek = read

    def note_existence(self, path: Path, exists: bool) -> None:
        """Record nothing: the list was recorded as a whole."""

    def own_names(self) -> Collection[str]:
        """Return no names: items have none of the project's own facts."""
        return ()


Source = HostFacts | CurrentFacts | _Item


class View(Mapping[str, Any]):
    """A part of a host's facts: a map whose keys are also attributes.

    :param source: reads the values
    :param path: the path of this part
    """

    __slots__ = ("_path", "_source")

    def __init__(self, source: Source, path: Path) -> None:
        self._source, self._path = source, path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __repr__(self) -> str:
        return f"<facts {written(self._path)}>"

    def __deepcopy__(self, memo: object) -> View:
        return self  # a copy of the source would not record what is read

    def plain(self) -> Mapping[str, Any]:
        """Return this part as data.

        :raises MissingFact: a fact in it is not known
        """
        return {key: plain(value) for key, value in self.items()}


class FactRecord(View):
    """Facts with fixed names.

    :param cls: the class in the catalogue that defines the names
    """

    __slots__ = ("_cls",)

    def __init__(self, source: Source, cls: Any, path: Path) -> None:
        super().__init__(source, path)
        self._cls = cls

    def __getitem__(self, key: object) -> Any:
        name = str(getattr(key, "name", key)).replace("-", "_")
        fields = fields_of(self._cls)
        if name not in fields:
            owner = f"`{written(self._path)}`" if self._path else "a host"
            raise UnknownFact(f"{owner} has no fact `{name}`", suggest(name, [*fields], "available"))
        return _value(self._source, fields[name], (*self._path, name))

    def __missing__(self, key: object) -> Any:
        return self[key]  # which raises an error with suggestions

    def __contains__(self, key: object) -> bool:
        return key in fields_of(self._cls)

    def __iter__(self) -> Iterator[str]:
        return iter(fields_of(self._cls))

    def __len__(self) -> int:
        return len(fields_of(self._cls))


class FactTable(View):
    """Facts by names that the host decides, such as those of packages.

    :param hint: the type of the values
    """

    __slots__ = ("_hint",)

    def __init__(self, source: Source, hint: Any, path: Path) -> None:
        super().__init__(source, path)
        self._hint = hint

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except KeyError:
            raise AttributeError(name) from None

    def __getitem__(self, key: object) -> Any:
        name = str(getattr(key, "name", key))
        path = (*self._path, name)
        exists = name in self._source.peek(self._path)
        if not exists or is_item(path):
            self._source.note_existence(path, exists)
        if not exists:
            raise KeyError(name)
        return _value(self._source, self._hint, path)

    def __iter__(self) -> Iterator[str]:
        return map(told, self._source.read(self._path))

    def __len__(self) -> int:
        return len(self._source.read(self._path))


class Own(View):
    """The project's own facts."""

    __slots__ = ()

    def __getitem__(self, key: object) -> Any:
        name = str(getattr(key, "name", key)).replace("-", "_")
        known = self._source.own_names()
        if name not in known:
            hint = suggest(name, sorted(known), "available")
            raise UnknownFact(f"the project has no fact `{name}`", hint or f"define it in facts/{name}.py")
        return told(self._source.read((*self._path, name)))

    def __iter__(self) -> Iterator[str]:
        return iter(self._source.own_names())

    def __len__(self) -> int:
        return len(list(iter(self)))


def _value(source: Source, hint: Any, path: Path) -> Any:
    """Return the value at a path, or the view of a part that contains values."""
    if path == (OWN,):
        return Own(source, path)
    if is_record(hint):
        return FactRecord(source, hint, path)
    if get_origin(hint) is not tuple and get_args(hint):
        return FactTable(source, get_args(hint)[1], path)
    value = source.read(path)
    if get_origin(hint) is not tuple:
        return told(value)
    item = get_args(hint)[0]
    return tuple(FactRecord(_Item(one), item, ()) if is_record(item) else told(one) for one in value)


def plain(value: Any) -> Any:
    """Return a value that a definition computed from facts as data: views become maps.

    :raises MissingFact: a fact in it is not known
    """
    if isinstance(value, View):
        return value.plain()
    if isinstance(value, tuple) or (isinstance(value, list) and value and isinstance(value[0], View)):
        return [item.plain() if isinstance(item, View) else item for item in value]
    return value
