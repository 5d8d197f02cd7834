"""Masks secrets during a run, in which further secrets may become known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from statecfg.remote.machine.redact import Redactor


class Masks:
    """Masks the secrets that are known so far. Several threads may use it, also during `learn`.

    :param secrets: name → value
    """

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._redactor = Redactor(secrets)

    def learn(self, secrets: Mapping[str, str]) -> None:
        """Mask these secrets from now on.

        :param secrets: all secrets: name → value
        """
        self._redactor = Redactor(secrets)  # a thread that masks now continues with the former one

    def report(self, value: Any) -> Any:
        """Return a copy of an event or a report with the secrets masked. See `Redactor.report`."""
        return self._redactor.report(value)
