"""`dataclass` for frozen classes, with methods that all classes share.

For each frozen class, Python's own generates the source of six methods and compiles it, at every start. An ordinary run
defines more than 100 such classes, which took an eighth of the processor time of an apply that changes nothing. Only
`__init__` needs a separate source.

Creating an object, comparing it and hashing it take longer than with Python's own. So a class with very many objects,
such as `positions.SourceLocation`, uses that one.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen: bool, slots: bool = False) -> Callable[[type], type]:
        """Return a decorator that does the same as `dataclasses.dataclass(frozen=True, slots=slots)`."""
        assert frozen

        def define(cls: type) -> type:
            own = {"__repr__": _repr, "__eq__": _equals, "__hash__": _hash}
            own = {name: method for name, method in own.items() if name not in cls.__dict__}
            made = dataclasses.dataclass(repr=False, eq=False, slots=slots)(cls)
            own.update(__setattr__=_set_slot if slots else _set, __delattr__=_delete)
            for name, method in own.items():
                setattr(made, name, method)
            return made

        return define


def _compared(instance: Any) -> tuple[Any, ...]:
    return tuple(getattr(instance, field.name) for field in dataclasses.fields(instance) if field.compare)


def _equals(self: Any, other: object) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    return _compared(self) == _compared(other)


def _hash(self: Any) -> int:
    return hash(_compared(self))


def _repr(self: Any) -> str:
    shown = (field.name for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _set(self: Any, name: str, value: object) -> None:
    """Set an attribute once, for `__init__`."""
    if name in self.__dict__ or name not in self.__dataclass_fields__:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _set_slot(self: Any, name: str, value: object) -> None:
    """Set an attribute with a slot once, for `__init__`."""
    if hasattr(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
