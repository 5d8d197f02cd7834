"""What is shown in place of a secret. Only this module knows its form, and nothing recognizes a secret by it."""

from __future__ import annotations

BEGIN = "<secret "


def mask(name: str) -> str:
    """Return the text that is shown in place of the secret with this name."""
    return f"{BEGIN}{name}>"
