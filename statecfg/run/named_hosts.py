"""The hosts that a playbook names."""

from __future__ import annotations

from pathlib import Path

from statecfg.problems import collecting, reporting
from statecfg.run.choice import Choice
from statecfg.run.prepare import chosen_by


def named(path: Path, choice: Choice) -> frozenset[str]:
    """Return the names of the hosts of a playbook; none if the file does not exist or is wrong."""
    found: frozenset[str] = frozenset()
    if path.exists():
        with collecting(), reporting():
            found = chosen_by(path, choice).everywhere
    return found
