"""Ops: named steps that change a machine. Calling one makes an action; performing the action takes the step."""

from __future__ import annotations

from statecfg.remote.graph.model import Action

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, overload


class Op:
    """A function that makes actions (`defop` of the Borg document).

    Calling it with the op's own arguments returns an `Action`; `node(node)` takes each argument from the node's
    attributes, as the document's second function (`node-NAME`) does.

    :param function: the body; its first parameter is the machine to act on
    :param name: what reports call it; the function's name where not given
    :param turn: ops of the same turn never run side by side on a host (two `apt-get`, say)
    :param batch: the parameter, a list, over which actions of one layer are joined into one
    :param body: the body as a list, for the action's `body`
    :param parameters: the arguments' names where they are no Python identifiers (`block?`), in order
    """

    def __init__(
        self,
        function: Callable[..., Any],
        name: Optional[str] = None,
        turn: Optional[str] = None,
        batch: Optional[str] = None,
        body: Optional[Sequence[Any]] = None,
        parameters: Optional[Sequence[str]] = None,
    ) -> None:
        code = function.__code__
        identifiers = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
        self.function = function
        self.name = name or function.__name__
        self.turn, self.batch = turn, batch
        self.parameters: List[str] = list(parameters if parameters is not None else identifiers)
        self.identifiers: Dict[str, str] = dict(zip(self.parameters, identifiers))
        self.positional = self.parameters[: code.co_argcount - 1]
        self.public = public = {identifier: name for name, identifier in self.identifiers.items()}
        self.defaults: Dict[str, Any] = {public[key]: value for key, value in (function.__kwdefaults__ or {}).items()}
        given = function.__defaults__ or ()
        self.defaults.update(zip(self.positional[len(self.positional) - len(given) :], given))
        self.body = list(body) if body is not None else [self.name, *self.parameters]
        self.__doc__ = function.__doc__
        self.__name__ = self.name
        if batch is not None and batch not in self.parameters:
            raise TypeError("op %s has no parameter %s to batch over" % (self.name, batch))

    def __call__(self, *values: Any, **named: Any) -> Action:
        """Return the action of doing this op with these arguments. Raises TypeError on a wrong argument."""
        if len(values) > len(self.positional):
            raise TypeError("op %s takes %d arguments, got %d" % (self.name, len(self.positional), len(values)))
        args = dict(self.defaults)
        args.update(zip(self.positional, values))
        for name, value in named.items():
            name = self.public.get(name, name)
            if name not in self.identifiers:
                raise TypeError("op %s has no argument %s; it has: %s" % (self.name, name, ", ".join(self.parameters)))
            args[name] = value
        missing = [name for name in self.parameters if name not in args]
        if missing:
            raise TypeError("op %s needs %s" % (self.name, ", ".join(missing)))
        args = {name: args[name] for name in self.parameters}
        call = {self.identifiers[name]: value for name, value in args.items()}
        return Action(self.name, args, lambda machine: self.function(machine, **call), self.body, self)

    def node(self, node: Mapping[str, Any]) -> Action:
        """Return the action whose arguments are the node's attributes of the same names; a missing one is None."""
        attrs = node["attrs"]
        return self(**{name: attrs.get(name, self.defaults.get(name)) for name in self.parameters})

    def joined(self, actions: Sequence[Action]) -> Action:
        """Return one action that does what all of `actions` do, their batch lists one after another."""
        assert self.batch is not None
        args = dict(actions[0].args)
        args[self.batch] = [item for action in actions for item in action.args[self.batch]]
        return self(**args)


if TYPE_CHECKING:

    @overload
    def op(function: Callable[..., Any]) -> Op: ...
    @overload
    def op(
        *, name: Optional[str] = None, turn: Optional[str] = None, batch: Optional[str] = None
    ) -> Callable[[Callable[..., Any]], Op]: ...
    def op(function: Any = None, **options: Any) -> Any:
        """Make a function an op."""

else:

    def op(function: Any = None, *, name: Any = None, turn: Any = None, batch: Any = None) -> Any:
        """Make a function an op: `@op`, or `@op(turn="apt", batch="packages")`.

        The function's first parameter is the machine; it returns an action result, as every writing method of a
        machine does, so most ops are one `return machine.…` line. Source: "Defining actions" of the Borg document.
        """
        if function is not None:
            return Op(function)
        return lambda body: Op(body, name, turn, batch)
