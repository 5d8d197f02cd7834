"""Takes secrets out of what will be shown or stored, in every spelling that output gives them."""

from __future__ import annotations

from typing import Any

from statecfg.remote import redact


class Redactor(redact.Redactor):
    """Replaces known secrets by their names, as the host does.

    Parameters: `secrets` their values by name; an empty mapping redacts nothing.
    """

    def data(self, value: Any) -> Any:
        """Return a copy of JSON data with the secrets taken out of every string in it, keys as well."""
        return self.value(value)
