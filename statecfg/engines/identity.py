"""What the controller and a worker must have in common: the version, and the code."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import statecfg


@functools.cache
def identity() -> dict[str, str]:
    """Return the version of statecfg, and the digest of its code without node types, which workers don't run."""
    root = Path(statecfg.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*.py") if root / "resources" not in path.parents):
        digest.update(b"%s %d\n" % (path.relative_to(root).as_posix().encode(), path.stat().st_size))
        digest.update(path.read_bytes())
    return {"version": statecfg.__version__, "digest": digest.hexdigest()[:16]}
