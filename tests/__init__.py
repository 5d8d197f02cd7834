"""Tests of statecfg.

- `unit/` needs no host, process, network or sleep, and takes seconds.
- `long/` needs none of these either, but takes longer: random examples by the hundred, large graphs, time limits.
- `host/` has all others.
- `lab/` makes the hosts that they use.

Each is laid out like the product: `unit/graph/` and `host/graph/` test `statecfg/graph/`. `guard.py` refuses in `unit/`
and `long/` what only `host/` may use. `unit/` imports from neither of the others.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
