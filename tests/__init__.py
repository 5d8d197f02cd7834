"""Tests of statecfg.

- `unit/`: tests that need no host, process, network or sleep. They take seconds.
- `long/`: tests that need none of these either, but take longer: many random examples, large graphs, time limits.
- `host/`: all other tests.
- `lab/`: the hosts for `host/`.

The directories have the same layout as statecfg: `unit/graph/` and `host/graph/` test `statecfg/graph/`. In `unit/` and
`long/`, `guard.py` refuses processes, connections and sleep. `unit/` imports nothing from `long/` or `host/`.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
