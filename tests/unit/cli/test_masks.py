"""Masking while further secrets become known."""

from __future__ import annotations

from collections import UserDict
from collections.abc import ItemsView

from statecfg.cli.masks import Masks


def test_secrets_stay_masked_while_others_become_known() -> None:
    masks = Masks({"old": "old-secret"})
    seen: list[str] = []

    class Secrets(UserDict[str, str]):
        """Secrets that another thread masks while they are read."""

        def items(self) -> ItemsView[str, str]:
            """Mask a text with the secrets that are known so far."""
            seen.append(masks.report("has old-secret"))
            return super().items()

    masks.learn(Secrets(old="old-secret", new="new-secret"))
    assert seen == ["has <secret old>"]
    assert masks.report("old-secret new-secret") == "<secret old> <secret new>"
