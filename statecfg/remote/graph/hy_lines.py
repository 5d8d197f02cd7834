"""What the executor needs of Hy: the names of attributes and the lines of the source."""

from __future__ import annotations

from typing import Any, Mapping, Tuple


def attribute(written: str) -> str:
    """Return statecfg's name for a name in Hy: `restart-on` becomes `restart_on`."""
    return written.lstrip(":").replace("-", "_")


def written_at(module: Mapping[str, Any], file: str, line: int) -> Tuple[str, int]:
    """Return the file and line in the source of a line of a module, which may be compiled from Hy.

    :param module: the module's globals; a module compiled from Hy has its table of lines there
    """
    written, table = module.get("__statecfg_lines__") or (file, {})
    nearest = max((here for here in table if here <= line), default=None)
    return written, line if nearest is None else table[nearest]
