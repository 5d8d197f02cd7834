"""Plays: which hosts, which variables, and the function that declares the graph of one host."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import FunctionType, MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from statecfg.graph import opaque
from statecfg.graph.declare import recording
from statecfg.graph.graph import EMPTY, MAX_NODES, Graph, Node, gap, merge_graphs, same
from statecfg.problems import InvalidInput, SourceLocation, going_on, positions, problem, report, suggest
from statecfg.remote.graph.values import kind_of, show

if TYPE_CHECKING:
    from statecfg.playbook.services import Service

__all__ = ["HostContext", "Play", "Vars", "collected", "evaluate", "play", "written_options"]

OPTIONS = ("hosts", "vars", "name", "prune")
NO_VARS: Mapping[str, Any] = MappingProxyType({})
Defined = TypeVar("Defined")

_COLLECTED: ContextVar[list[Any] | None] = ContextVar("plays and relations being defined", default=None)


class UnknownVariable(InvalidInput, AttributeError, KeyError):
    """A variable was asked for that nobody set; also what `getattr` and `get` with a default expect."""


class Vars(Mapping[str, Any]):
    """A host's variables, read as items or attributes. A missing one is an error that lists what there is."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any] = NO_VARS) -> None:
        self._values = dict(values)

    def __getitem__(self, key: object) -> Any:
        name = str(getattr(key, "name", key))
        if name in self._values:
            return self._values[name]
        if name.replace("-", "_") in self._values:
            return self._values[name.replace("-", "_")]
        return self.__missing__(key)

    def __missing__(self, key: object) -> Any:
        name = str(getattr(key, "name", key))
        hint = suggest(name, self._values, "there are") or "set it in the inventory, in the play's vars or with -e"
        place = positions.of_frame(sys._getframe(1))
        raise UnknownVariable([problem("SC0514", f"there is no variable {name}", hint, place)])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Vars({', '.join(self._values)})"  # names only: values may be secrets


@dataclass(frozen=True)
class HostContext:
    """What a play is told about the host it is evaluated for.

    :param name: the host's name in the inventory
    :param vars: the variables: those of its groups, its own, the play's, the command line's; the later one holds
    :param groups: the groups it is in
    :param local: whether it is this machine
    """

    name: str
    vars: Vars = field(default_factory=Vars)
    groups: tuple[str, ...] = ()
    local: bool = False

    def __getitem__(self, key: object) -> Any:
        """Return a field by name or keyword, so that Hy's `(:name host)` works."""
        return getattr(self, str(getattr(key, "name", key)))


@dataclass(frozen=True)
class Play:
    """A play of a playbook.

    :param hosts: pattern of the hosts it is for
    :param build: from a host to its graph, several, or None
    :param position: where it is written
    :param prune: every apply removes what left the definition
    :param complete: what makes of the merged variables those that hold, where some are templates: from the variables,
        the host's name and its groups
    :param service: the service whose units run on these hosts; None for a play that is none
    :param others: plays of another playbook, whose graphs these hosts get as well
    """

    name: str
    hosts: str
    build: Callable[[HostContext], Any]
    vars: Mapping[str, Any] = field(default_factory=lambda: NO_VARS)
    position: SourceLocation = positions.NOWHERE
    file: str = ""
    options: Mapping[str, Any] = field(default_factory=lambda: NO_VARS)
    complete: Callable[[Mapping[str, Any], str, tuple[str, ...]], Mapping[str, Any]] | None = None
    prune: bool = False
    service: Service | None = None
    others: tuple[Play, ...] = ()

    def variables(
        self, inventory: Mapping[str, Any], extra: Mapping[str, Any], host: str, groups: Iterable[str]
    ) -> Mapping[str, Any]:
        """Return what a host's variables are in this play: the inventory's, ours over them, `extra` over all."""
        merged = {**inventory, **self.vars, **extra}
        return merged if self.complete is None else self.complete(merged, host, tuple(groups))

    def __call__(self, host: HostContext) -> Any:
        """Return what the play's function returns for a host."""
        return self.build(host)


def play(
    *, hosts: str | Sequence[str], vars: Mapping[str, Any] | None = None, name: str | None = None, prune: bool = False
) -> Callable[[Callable[..., Any]], Play]:
    """Make a function a play: `@play(hosts="web", vars={"port": 8080})`.

    The function takes the host (`HostContext`), or nothing, and returns a graph, or several in a list.

    :param hosts: pattern, or several; see the inventory's patterns
    :param vars: variables of this play
    :param name: the play's name; the function's where not given
    :param prune: every apply removes what left the definition, as if `--prune` were given
    """
    define = defining(hosts, vars, name, prune)
    return lambda function: gathered(define(function))


def defining(
    hosts: str | Sequence[str], vars: Mapping[str, Any] | None, name: str | None, prune: bool
) -> Callable[[Callable[..., Any]], Play]:
    """Return what makes a play of a function; see `play`. Reports options that are wrong."""
    names = [hosts] if isinstance(hosts, str) else list(hosts) if isinstance(hosts, Iterable) else [hosts]
    if not names or not all(isinstance(each, str) and each for each in names):
        detail = f"the hosts of a play are {kind_of(hosts)}: {show(hosts)}"
        report(problem("SC0512", detail, 'write a pattern: hosts="web"', positions.of_frame(sys._getframe(1))))
    pattern = ",".join(map(str, names))
    for option, shown in (("hosts", names), ("name", name)):
        if opaque.shows(shown):
            detail = f"`{option}` of a play holds a secret"
            place = positions.of_frame(sys._getframe(1))
            raise InvalidInput([problem("SC0425", detail, "names and hosts are shown everywhere", place)])
    given: Any = prune
    if not isinstance(given, bool):
        detail = f"`prune` of a play is {kind_of(given)}: {show(given)}"
        report(problem("SC0512", detail, "write true or false", positions.of_frame(sys._getframe(1))))

    for option, value, kind, example in (
        ("vars", vars, Mapping, 'vars={"port": 80}'),
        ("name", name, str, 'name="web"'),
    ):
        if value is not None and not isinstance(value, kind):
            detail = f"`{option}` of a play is {kind_of(value)}: {show(value)}"
            report(problem("SC0512", detail, f"write {example}", positions.of_frame(sys._getframe(1))))
    variables = MappingProxyType(dict(vars) if isinstance(vars, Mapping) else {})

    def make(function: Callable[..., Any]) -> Play:
        title = name if name and isinstance(name, str) else getattr(function, "__name__", "play").replace("_", "-")
        if not isinstance(function, FunctionType):
            place = positions.of_frame(sys._getframe(1))
            hint = "write it above a function: def web(host): …"
            report(problem("SC0512", f"{title} is {kind_of(function)}, and no function", hint, place))
            return Play(title, pattern, _nothing, variables, place, place.file)
        code = function.__code__
        place = SourceLocation(code.co_filename, code.co_firstlineno)
        build = function if code.co_argcount or code.co_flags & 0x04 else lambda host: function()
        if wrong := _wrong_parameters(function):
            detail = f"{function.__name__} {wrong}; a play is called with the host"
            report(problem("SC0512", detail, "take values from host.vars", place))
            build = _nothing
        return Play(title, pattern, build, variables, place, code.co_filename, prune=prune is True)

    return make


def _wrong_parameters(function: FunctionType) -> str:
    """Return why a function can't be called with a host alone; "" where it can."""
    code = function.__code__
    if code.co_argcount - len(function.__defaults__ or ()) > 1:
        return f"takes {code.co_argcount} arguments"
    by_name = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    needed = [each for each in by_name if each not in (function.__kwdefaults__ or {})]
    return f"takes {', '.join(needed)} by name only" if needed else ""


def _nothing(_host: HostContext) -> None:
    """Build nothing: for a play that can't be called, which was reported."""


def gathered(item: Defined) -> Defined:
    """Return what a playbook defines, having added it to what is being collected."""
    found = _COLLECTED.get()
    if found is not None:
        found.append(item)
    return item


def written_options(given: Mapping[Any, Any], valid: Sequence[str] = OPTIONS, what: str = "play") -> dict[str, Any]:
    """Return the options of a play in Hy, `{:hosts "web" :vars {…}}`, as `play` takes them.

    :param valid: the options that there are
    :param what: what has them, for messages
    """
    place = positions.of_frame(sys._getframe(1))
    options = {str(getattr(key, "name", key)): value for key, value in given.items()}
    for key in options:
        if key not in valid:
            report(problem("SC0512", f"a {what} has no option {key}", suggest(key, valid, "it has"), place))
    if "hosts" not in options:
        raise InvalidInput([problem("SC0512", f"the {what} has no :hosts", 'such as {:hosts "web"}', place)])
    if isinstance(options.get("vars"), Mapping):
        options["vars"] = {str(getattr(key, "name", key)): value for key, value in options["vars"].items()}
    return {key: options[key] for key in valid if key in options}


@contextlib.contextmanager
def collected() -> Iterator[list[Any]]:
    """Gather the plays and relations that are defined inside, in the order they are written."""
    found: list[Any] = []
    token = _COLLECTED.set(found)
    try:
        yield found
    finally:
        _COLLECTED.reset(token)


def of_file(path: str, found: Iterable[Any]) -> list[Play]:
    """Return the plays that stand in the file itself. Reports a name twice; raises InvalidInput for none."""
    plays = [each for each in found if isinstance(each, Play) and each.file == path]
    if not plays:
        raise InvalidInput(
            [
                problem(
                    "SC0510", f"{path} defines no play", "define one with a pattern of hosts", SourceLocation(path, 1)
                )
            ]
        )
    first: dict[str, Play] = {}
    for each in plays:
        before = first.setdefault(each.name, each)
        if before is not each and each.service is not None and before.service is not None:
            detail = f"two services are called {each.service.name}"
            report(problem("SC0702", detail, "rename one", each.service.position, before.service.position))
        elif before is not each:
            detail = f"two plays are called {each.name}"
            report(problem("SC0513", detail, "rename one", each.position, before.position))
    return plays


def evaluate(each: Play, host: HostContext) -> Graph:
    """Return the graph of a play for a host.

    Reports where the play's function fails or takes too long, where it returns something that is no graph, and where
    it declares a node that is not part of what it returns. Where problems are being collected, the graph that comes
    back holds what there is.
    """
    from statecfg.playbook.user_code import guarded

    doing = f"building {each.name} for {host.name}"
    graphs: list[Graph] | None = None
    with recording() as nodes, going_on(), guarded(doing, state=lambda: doing + _after(nodes)):
        graphs = list(_graphs(each.build(host), each))
    if graphs is None:
        return merge_graphs(*map(Graph, nodes if len(nodes) <= MAX_NODES else ()), gap())
    graph = merge_graphs(*graphs) if graphs else EMPTY
    _refuse_lost(each, graph, nodes)
    return graph


def _after(nodes: Sequence[Node]) -> str:
    return f", after {nodes[-1].provides}" if nodes else ""


def _graphs(answer: Any, each: Play) -> Iterator[Graph]:
    if isinstance(answer, Graph):
        yield answer
    elif isinstance(answer, Iterable) and not isinstance(answer, str | bytes | Mapping):
        for item in answer:
            yield from _graphs(item, each)
    elif answer is not None:
        hint = "return a node, a list of nodes, or merge_graphs(…)"
        report(problem("SC0109", f"the play {each.name} returned {type(answer).__name__}", hint, each.position))


def _refuse_lost(each: Play, graph: Graph, nodes: Sequence[Node]) -> None:
    kept: dict[str, list[Node]] = {}
    for node in graph.nodes():
        kept.setdefault(node.provides, []).append(node)
    hint = "return it in the play's list, or let a node that is returned require it"
    for node in nodes:
        if not node.broken and not any(other.broken or same(other, node) for other in kept.get(node.provides, ())):
            detail = f"{node.provides} is declared, but it is no part of what the play {each.name} returns"
            report(problem("SC0511", detail, hint, node.position))
