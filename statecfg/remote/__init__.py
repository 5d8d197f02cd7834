"""The executor: the half of statecfg that runs on the host, stdlib only, Python 3.8 or newer.

The rooms below it are, from the lowest: `graph`, `machine`, `wire`, `ledger`, `hooks`, `run`, `units`, `facts`.
`session` and `bootstrap` are above them. Imports nothing outside of these rooms.
"""

from __future__ import annotations

OLDEST = (3, 8)
"""The oldest Python that the executor and node types must run on."""
