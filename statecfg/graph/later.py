"""Secrets that are read when something first needs their value."""

from __future__ import annotations

from collections.abc import Callable

from statecfg.graph.opaque import Secret
from statecfg.problems import tokens
from statecfg.problems.masked_logs import mask_logs


class LaterSecret(Secret):
    """A secret whose value is read when it is first needed, so that a run asks only for passwords that it needs.

    :param name: its name in reports
    :param read: returns the secret with the value, the same each time. If the value can't be read, it reports the
        problem each time and returns a placeholder
    """

    __slots__ = ("__read",)

    def __init__(self, name: str, read: Callable[[], Secret]) -> None:
        self.name, self.token = name, tokens.new_token()
        self.__read = read
        tokens.register(self)
        mask_logs()

    @property
    def available(self) -> bool:  # type: ignore[override]  # a property in place of an attribute
        """Whether its value can be read. This reads it."""
        return self.__read().available

    def reveal(self) -> str:
        """Read the value and return it, and record its use for `recording`."""
        return self.__read().reveal()

    def _bare(self) -> str:
        return self.__read()._bare()
