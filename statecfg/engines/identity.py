"""What the controller and a worker must have in common: the version, and the code that workers run."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import statecfg

ROOMS = ("transport", "engines")


@functools.cache
def identity() -> dict[str, str]:
    """Return the version of statecfg, and the digest of its code that workers run."""
    root = Path(statecfg.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(path for room in ROOMS for path in (root / room).glob("*.py")):
        digest.update(b"%s %d\n" % (path.relative_to(root).as_posix().encode(), path.stat().st_size))
        digest.update(path.read_bytes())
    return {"version": statecfg.__version__, "digest": digest.hexdigest()[:16]}
