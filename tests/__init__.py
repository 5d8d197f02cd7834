"""Tests of statecfg.

- `unit/` needs no host, process, network or sleep; its conftest refuses them.
- `host/` has all others.
- `lab/` makes the hosts that they use.

`unit/` and `host/` are laid out like the product: `unit/graph/` and `host/graph/` test `statecfg/graph/`.
`host/` may import from `unit/`, never the other way around.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
