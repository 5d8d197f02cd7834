"""What is shown in place of a secret. Only this module knows its form, and nothing recognizes a secret by it."""

from __future__ import annotations

BEGIN = "<secret "


def mask(name: str) -> str:
    """Return what is shown in place of the secret with this name."""
    return f"{BEGIN}{name}>"
