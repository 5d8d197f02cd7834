"""Ops: named steps that change a machine. Calling an op returns an action, which changes the machine when it runs."""

from __future__ import annotations

from statecfg.remote.graph.above import above
from statecfg.remote.graph.model import Action, Maker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, overload


class Op(Maker):
    """A function that returns actions (`defop` of the Borg document).

    A call with the op's arguments returns an `Action`. `node(node)` takes each argument from the node's attributes,
    like the document's second function (`node-NAME`).

    :param function: the body; its first parameter is the machine to act on
    :param name: the name in reports; default: the function's name
    :param mutex: ops with the same one never run concurrently on a host (such as two `apt-get`)
    :param batch: the parameter, a list, whose values are joined to make one action of several in a layer
    :param quick: tells from the arguments whether the op only writes one small file: `machine.write` is its only call
        that changes anything, and it runs no program. Then several nodes of a layer share their records and syncs
    :param body: the body as a list, for the action's `body`
    :param parameters: the names of the arguments, in order, if they are not Python identifiers (`block?`)
    :raises TypeError: if `batch` does not name a parameter
    """

    def __init__(
        self,
        function: Callable[..., Any],
        name: Optional[str] = None,
        mutex: Optional[str] = None,
        batch: Optional[str] = None,
        body: Optional[Sequence[Any]] = None,
        parameters: Optional[Sequence[str]] = None,
        quick: Optional[Callable[[Mapping[str, Any]], bool]] = None,
    ) -> None:
        code = function.__code__
        identifiers = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
        self.function = function
        self.name = name or function.__name__
        self.mutex, self.batch, self.quick = mutex, batch, quick
        self.parameters: List[str] = list(parameters if parameters is not None else identifiers)
        self.positional = self.parameters[: code.co_argcount - 1]
        self.public: Dict[str, str] = dict(zip(identifiers, self.parameters))
        public = self.public
        self.defaults: Dict[str, Any] = {public[key]: value for key, value in (function.__kwdefaults__ or {}).items()}
        defaults = function.__defaults__ or ()
        self.defaults.update(zip(self.positional[len(self.positional) - len(defaults) :], defaults))
        self.body = list(body) if body is not None else [self.name, *self.parameters]
        self.__doc__ = function.__doc__
        self.__name__ = self.name
        if batch is not None and batch not in self.parameters:
            raise TypeError(f"op {self.name} has no parameter {batch} to batch over")

    def __call__(self, *values: Any, **named: Any) -> Action:
        """Return the action of this op with these arguments.

        :raises TypeError: if an argument is unknown or missing
        """
        if len(values) > len(self.positional):
            raise TypeError(f"op {self.name} takes {len(self.positional)} arguments, got {len(values)}")
        args = dict(self.defaults)
        args.update(zip(self.positional, values))
        for name, value in named.items():
            name = self.public.get(name, name)
            if name not in self.parameters:
                raise TypeError(f"op {self.name} has no argument {name}; its arguments: {', '.join(self.parameters)}")
            args[name] = value
        missing = [name for name in self.parameters if name not in args]
        if missing:
            raise TypeError(f"op {self.name} needs {', '.join(missing)}")
        args = {name: args[name] for name in self.parameters}
        call = {identifier: args[name] for identifier, name in self.public.items()}
        return Action(self.name, args, lambda machine: self.function(machine, **call), self.body, self)

    def node(self, node: Mapping[str, Any]) -> Action:
        """Return the action with the node's attributes as arguments; a missing attribute gets its default or None."""
        attrs = node["attrs"]
        return self(**{name: attrs.get(name, self.defaults.get(name)) for name in self.parameters})

    def joined(self, actions: Sequence[Action]) -> Action:
        """Return one action that replaces all of `actions`, with their batch lists joined."""
        assert self.batch is not None
        args = dict(actions[0].args)
        args[self.batch] = [item for action in actions for item in action.args[self.batch]]
        return self(**args)


if TYPE_CHECKING:

    @overload
    def op(function: Callable[..., Any]) -> Op: ...
    @overload
    def op(
        *,
        name: Optional[str] = None,
        mutex: Optional[str] = None,
        batch: Optional[str] = None,
        quick: Optional[Callable[[Mapping[str, Any]], bool]] = None,
        turn: Optional[str] = None,
    ) -> Callable[[Callable[..., Any]], Op]: ...
    def op(function: Any = None, **options: Any) -> Any:
        """Make a function an op."""

else:

    def op(
        function: Any = None,
        *,
        name: Any = None,
        mutex: Any = None,
        batch: Any = None,
        quick: Any = None,
        turn: Any = None,
    ) -> Any:
        """Make a function an op: `@op`, or `@op(mutex="apt", batch="packages")`.

        The function's first parameter is the machine. It returns an action result. All writing methods of a machine
        return one, so most ops are a single line `return machine.…`. Source: "Defining actions" of the Borg document.
        `turn` is the name of `mutex` until 0.3.
        """
        if turn is not None:
            above.renamed("op(turn=…)", "op(mutex=…)")
        if function is not None:
            return Op(function)
        return lambda body: Op(body, name, mutex or turn, batch, quick=quick)
