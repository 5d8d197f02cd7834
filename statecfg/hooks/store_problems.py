"""Errors of the store during a run. The hosts continue; the run reports the errors at its end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from statecfg.problems import InvalidInput
from statecfg.store import StoreError


class StoreProblems(list[str]):
    """The messages of the errors, each once."""

    @contextlib.contextmanager
    def collecting(self) -> Iterator[None]:
        """Add an error of the store in the block to this list, and end the block."""
        try:
            yield
        except (StoreError, InvalidInput) as error:
            if str(error) not in self:
                self.append(str(error))
