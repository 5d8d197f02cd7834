"""Plays: their hosts, their variables, and the function that declares the graph of a host."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import field
from types import FunctionType, MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from statecfg.facts import others
from statecfg.facts.catalogue import Facts
from statecfg.facts.variables import NO_VARS, Vars
from statecfg.facts.view import HostFacts, MissingFact
from statecfg.graph import opaque
from statecfg.graph.graph import EMPTY, Graph, gap, merge_graphs
from statecfg.graph.merging import Contained
from statecfg.graph.nodes import MAX_NODES, Node
from statecfg.graph.outputs import output
from statecfg.graph.recording import recording
from statecfg.playbook.inventory import RESERVED, RESERVED_DETAIL
from statecfg.problems import InvalidInput, SourceLocation, positions, problem, report, reporting, suggest
from statecfg.problems.frozen import dataclass
from statecfg.remote.graph.wrong_values import show, type_words

if TYPE_CHECKING:
    from statecfg.playbook.service import Service

__all__ = ["HostContext", "Play", "Vars", "collected", "evaluate", "play", "written_options"]

OPTIONS = ("hosts", "vars", "name", "prune")
NOTED = ("name", "groups", "local")  # the fields of a host that a definition's reading records
_IN_TEMPLATES = ("name", "groups", "facts")
Defined = TypeVar("Defined")

_COLLECTED: ContextVar[list[Any] | None] = ContextVar("plays and relations being defined", default=None)
_HOST: ContextVar[HostContext | None] = ContextVar("host for which a play is evaluated", default=None)


@dataclass(frozen=True)
class HostContext:
    """The host for which a play is evaluated.

    :param name: its name in the inventory
    :param vars: its variables: those of its groups, its own, the play's, the command line's; later ones override
    :param groups: the groups that contain it
    :param local: whether it is this machine
    :param facts: what statecfg reads on the host itself, such as `host.facts.os.family`
    :param noted: called with the name of each field in `NOTED` that is read; None records nothing
    """

    name: str
    vars: Vars = field(default_factory=Vars)
    groups: tuple[str, ...] = ()
    local: bool = False
    facts: Facts = field(default_factory=lambda: HostFacts().view)
    noted: Callable[[str], None] | None = field(default=None, repr=False, compare=False)

    def peek(self, name: str) -> Any:
        """Return a field in `NOTED`, and do not record this: it does not influence the definition."""
        return self.__dict__[f"_{name}"]

    def with_vars(self, vars: Vars) -> HostContext:
        """Return the same host with other variables."""
        name, groups, local = (self.peek(name) for name in NOTED)
        return HostContext(name, vars, groups, local, self.facts, self.noted)

    def __getitem__(self, key: object) -> Any:
        """Return a field by its name or keyword, as in Hy's `(:name host)`."""
        return getattr(self, str(key)) if key in self else self.__missing__(key)

    def __contains__(self, key: object) -> bool:
        return key in self.__dataclass_fields__

    def __missing__(self, key: object) -> Any:
        raise others.unknown_field(key, self.__dataclass_fields__)

    @property
    def in_templates(self) -> Mapping[str, Any]:
        """The names that templates have besides variables, which override all of them but `host`."""
        return {"host": TemplateHost(self), "hosts": others.hosts, "groups": others.groups, "output": output}


class _Noted:
    """A field of a host that records each time it is read."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, host: HostContext | None, owner: type[HostContext]) -> Any:
        if host is None:
            return self
        if host.noted is not None:
            host.noted(self.name)
        return host.peek(self.name)

    def __set__(self, host: HostContext, value: Any) -> None:
        host.__dict__[f"_{self.name}"] = value


for _name in NOTED:
    setattr(HostContext, _name, _Noted(_name))


class TemplateHost(Mapping[str, Any]):
    """The host as templates see it: its name, groups and facts."""

    __slots__ = ("_context",)

    def __init__(self, context: HostContext) -> None:
        self._context = context

    def __getitem__(self, key: str) -> Any:
        if key not in _IN_TEMPLATES:
            raise KeyError(key)
        value = getattr(self._context, key)
        return list(value) if key == "groups" else value

    def __iter__(self) -> Iterator[str]:
        return iter(_IN_TEMPLATES)

    def __len__(self) -> int:
        return len(_IN_TEMPLATES)

    def __repr__(self) -> str:
        return repr(dict(self))


@dataclass(frozen=True)
class Play:
    """A play of a playbook.

    :param hosts: the pattern that selects its hosts
    :param build: returns the graph of a host, a list of graphs, or None
    :param vars: its variables
    :param position: its source location
    :param file: the file that defines it
    :param prune: every apply removes orphans
    :param complete: evaluates the templates in merged variables; receives the variables and the host
    :param service: the service whose units run on these hosts; None for a plain play
    :param others: plays of another playbook, whose graphs are added for these hosts
    """

    name: str
    hosts: str
    build: Callable[[HostContext], Any]
    vars: Mapping[str, Any] = field(default_factory=lambda: NO_VARS)
    position: SourceLocation = positions.NOWHERE
    file: str = ""
    options: Mapping[str, Any] = field(default_factory=lambda: NO_VARS)
    complete: Callable[[Mapping[str, Any], HostContext], Mapping[str, Any]] | None = None
    prune: bool = False
    service: Service | None = None
    others: tuple[Play, ...] = ()

    def variables(self, inventory: Mapping[str, Any], extra: Mapping[str, Any], host: HostContext) -> Mapping[str, Any]:
        """Return a host's variables in this play.

        :param inventory: the host's variables in the inventory; the play's variables override them
        :param extra: variables of the command line, which override all others
        :param host: the host; its variables are not read
        """
        merged = {**inventory, **self.vars, **extra}
        return merged if self.complete is None else self.complete(merged, host)

    def __call__(self, host: HostContext) -> Any:
        """Call the play's function for a host and return its result."""
        return self.build(host)


def play(
    function: object = None,
    /,
    *,
    hosts: str | Sequence[str] = (),
    vars: Mapping[str, Any] | None = None,
    name: str | None = None,
    prune: bool = False,
) -> Callable[[Callable[..., Any]], Play]:
    """Turn a function into a play: `@play(hosts="web", vars={"port": 8080})`.

    The function takes the host (`HostContext`) or no argument, and returns a graph or a list of graphs.

    :param function: the function of a `@play` without parentheses, which is refused
    :param hosts: a host pattern, or a list of them
    :param vars: variables of this play
    :param name: the play's name; default: the name of the function
    :param prune: every apply removes orphans, as with `--prune`
    :raises InvalidInput: `@play` has no parentheses
    """
    if function is not None:
        location = positions.of_frame(sys._getframe(1))
        raise InvalidInput([problem("SC0512", "the play has no hosts", 'write @play(hosts="web")', location)])
    define = defining(hosts, vars, name, prune)
    return lambda function: add_definition(define(function))


def defining(
    hosts: str | Sequence[str], vars: Mapping[str, Any] | None, name: str | None, prune: bool
) -> Callable[[Callable[..., Any]], Play]:
    """Return a decorator that turns a function into a play; see `play`. Report invalid options."""
    names = [hosts] if isinstance(hosts, str) else list(hosts) if isinstance(hosts, Iterable) else [hosts]
    if not names or not all(isinstance(item, str) and item for item in names):
        detail = f"the hosts of a play are {type_words(hosts)}: {show(hosts)}"
        report(problem("SC0512", detail, 'write a pattern: hosts="web"', positions.of_frame(sys._getframe(1))))
    pattern = ",".join(map(str, names))
    for option, option_value in (("hosts", names), ("name", name)):
        if opaque.would_show_secret(option_value):
            detail = f"`{option}` of a play contains a secret"
            location = positions.of_frame(sys._getframe(1))
            help = "use a value that is not secret: names and hosts appear in all output"
            raise InvalidInput([problem("SC0425", detail, help, location)])
    flag: Any = prune
    if not isinstance(flag, bool):
        detail = f"`prune` of a play is {type_words(flag)}: {show(flag)}"
        report(problem("SC0512", detail, "write true or false", positions.of_frame(sys._getframe(1))))

    for option, value, expected, example in (
        ("vars", vars, Mapping, 'vars={"port": 80}'),
        ("name", name, str, 'name="web"'),
    ):
        if value is not None and not isinstance(value, expected):
            detail = f"`{option}` of a play is {type_words(value)}: {show(value)}"
            report(problem("SC0512", detail, f"write {example}", positions.of_frame(sys._getframe(1))))
    variables = MappingProxyType(dict(vars) if isinstance(vars, Mapping) else {})
    if RESERVED in variables:
        report(problem("SC0512", RESERVED_DETAIL, "choose another name", positions.of_frame(sys._getframe(1))))

    def make(function: Callable[..., Any]) -> Play:
        title = name if name and isinstance(name, str) else getattr(function, "__name__", "play").replace("_", "-")
        if not isinstance(function, FunctionType):
            location = positions.of_frame(sys._getframe(1))
            hint = "write it above a function: def web(host): …"
            report(problem("SC0512", f"{title} is {type_words(function)}, not a function", hint, location))
            return Play(title, pattern, _nothing, variables, location, location.file)
        code = function.__code__
        location = SourceLocation(code.co_filename, code.co_firstlineno)
        build = function if code.co_argcount or code.co_flags & 0x04 else lambda host: function()
        if wrong := _wrong_parameters(function):
            detail = f"{function.__name__} {wrong}; statecfg passes only the host to a play"
            report(problem("SC0512", detail, "read other values from host.vars", location))
            build = _nothing
        return Play(title, pattern, build, variables, location, code.co_filename, prune=prune is True)

    return make


def _wrong_parameters(function: FunctionType) -> str:
    """Return why a function can't be called with only a host; "" if it can."""
    code = function.__code__
    if code.co_argcount - len(function.__defaults__ or ()) > 1:
        return f"takes {code.co_argcount} arguments"
    by_name = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    needed = [name for name in by_name if name not in (function.__kwdefaults__ or {})]
    return f"requires the keyword argument {', '.join(needed)}" if needed else ""


def _nothing(_host: HostContext) -> None:
    """Build nothing. This replaces the function of a play that can't be called, which was already reported."""


def add_definition(item: Defined) -> Defined:
    """Add a definition of a playbook to those being collected, and return it."""
    definitions = _COLLECTED.get()
    if definitions is not None:
        definitions.append(item)
    return item


def written_options(
    written: Mapping[Any, Any], valid: Sequence[str] = OPTIONS, what: str = "play"
) -> Mapping[str, Any]:
    """Convert the options of a play in Hy, `{:hosts "web" :vars {…}}`, to arguments of `play`.

    :param written: the options by keyword
    :param valid: the names of the valid options
    :param what: what the options belong to, for messages
    """
    location = positions.of_frame(sys._getframe(1))
    options = {str(getattr(key, "name", key)): value for key, value in written.items()}
    for key in options:
        if key not in valid:
            report(problem("SC0512", f"a {what} has no option {key}", suggest(key, valid, "it has"), location))
    if "hosts" not in options:
        raise InvalidInput([problem("SC0512", f"the {what} has no :hosts", 'write {:hosts "web"}', location)])
    if isinstance(options.get("vars"), Mapping):
        options["vars"] = {str(getattr(key, "name", key)): value for key, value in options["vars"].items()}
    return {key: options[key] for key in valid if key in options}


@contextlib.contextmanager
def collected() -> Iterator[list[Any]]:
    """Collect the plays and relations that the block defines, in order."""
    definitions: list[Any] = []
    token = _COLLECTED.set(definitions)
    try:
        yield definitions
    finally:
        _COLLECTED.reset(token)


def of_file(path: str, definitions: Iterable[Any]) -> list[Play]:
    """Return the plays that a file itself defines. Report duplicate names.

    :param definitions: everything that was defined while the file was loaded
    :raises InvalidInput: the file defines no play
    """
    plays = [item for item in definitions if isinstance(item, Play) and item.file == path]
    if not plays:
        raise InvalidInput(
            [problem("SC0510", f"{path} defines no play", "define a play with a host pattern", SourceLocation(path, 1))]
        )
    first: dict[str, Play] = {}
    for item in plays:
        before = first.setdefault(item.name, item)
        if before is not item and item.service is not None and before.service is not None:
            detail = f"two services are called {item.service.name}"
            report(problem("SC0702", detail, "rename one of them", item.service.position, before.service.position))
        elif before is not item:
            detail = f"two plays are called {item.name}"
            report(problem("SC0513", detail, "rename one of them", item.position, before.position))
    return plays


def evaluate(play_: Play, host: HostContext) -> Graph:
    """Return the graph of a play for a host.

    Report if the play's function fails, takes too long, returns something other than graphs, or declares a node that
    it does not return. If problems are being collected, the returned graph contains everything that is valid.
    """
    from statecfg.playbook.user_code import guarded, innermost

    activity = f"building {play_.name} for {host.peek('name')}"
    graphs: list[Graph] | None = None
    what = f"the play {play_.name}"
    with (
        recording(play_.name) as nodes,
        reporting(),
        guarded(activity, state=lambda: activity + _after(nodes)),
        on_host(host),
    ):
        try:
            graphs = list(graphs_of(play_.build(host), what, play_.position))
        except MissingFact as missing:
            missing.at(innermost(missing) or play_.position)
            raise
    if graphs is None:
        return merge_graphs(*map(Graph, nodes if len(nodes) <= MAX_NODES else ()), gap())
    graph = merge_graphs(*graphs) if graphs else EMPTY
    if nodes.labels:
        graph = Graph(None, [graph], nodes.labels)
    _refuse_lost(play_, graph, nodes)
    return graph


def _after(nodes: Sequence[Node]) -> str:
    return f", after {nodes[-1].provides}" if nodes else ""


@contextlib.contextmanager
def on_host(host: HostContext) -> Iterator[None]:
    """Make `host` the current host of the block."""
    token = _HOST.set(host)
    try:
        yield
    finally:
        _HOST.reset(token)


def current_host() -> HostContext | None:
    """Return the host for which a play is being evaluated; None if there is none."""
    return _HOST.get()


def graphs_of(result: Any, what: str, location: SourceLocation) -> Iterator[Graph]:
    """Yield the graphs in what a function returned, and report anything else.

    :param what: the name of the function in messages, such as ``the play web``
    :param location: its source location
    """
    if isinstance(result, Graph):
        yield result
    elif isinstance(result, Iterable) and not isinstance(result, str | bytes | Mapping):
        for item in result:
            yield from graphs_of(item, what, location)
    elif result is not None:
        hint = "return a node, a list of nodes, or merge_graphs(…)"
        report(problem("SC0109", f"{what} returned {type(result).__name__}", hint, location))


def _refuse_lost(play_: Play, graph: Graph, nodes: Sequence[Node]) -> None:
    kept = Contained(graph.nodes())
    hint = "add it to the list that the play returns, or to `requires` of a node that the play returns"
    for node in nodes:
        if not node.broken and node not in kept:
            detail = f"{node.provides} is declared, but the play {play_.name} does not return it"
            report(problem("SC0511", detail, hint, node.position))
