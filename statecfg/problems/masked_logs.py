"""Mask secrets in log records."""

from __future__ import annotations

from statecfg.problems import tokens


def mask_logs() -> None:
    """Make log records show masks in place of tokens. Repeated calls change nothing."""
    import logging

    factory = logging.getLogRecordFactory()
    if not isinstance(factory, type) or hasattr(factory, "shows_masks"):
        return

    class MaskedRecord(factory):  # type: ignore[valid-type, misc]  # the current class of log records
        shows_masks = True

        def getMessage(self) -> str:
            return tokens.masked(super().getMessage())

    logging.setLogRecordFactory(MaskedRecord)
