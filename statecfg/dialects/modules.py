"""Lets playbooks import what lies beside them and in their project, one project at a time."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import sys
from collections.abc import Iterator

from statecfg.positions import PACKAGE

_last_root: list[str] = []


def module_name(path: str) -> str:
    """Return the name under which a playbook is loaded: no other file's, and the same every time."""
    stem = os.path.splitext(os.path.basename(path))[0]
    safe = "".join(letter if letter.isalnum() else "_" for letter in stem)
    return f"statecfg_playbook_{safe}_{hashlib.sha256(path.encode()).hexdigest()[:8]}"


@contextlib.contextmanager
def importing(root: str, directory: str) -> Iterator[None]:
    """Let `import` find the modules of the project at `root` and those beside a playbook in `directory`."""
    _forget_other(root)
    before = list(sys.path)
    sys.path[:0] = dict.fromkeys((os.path.abspath(directory), os.path.abspath(root)))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = before


def _forget_other(root: str) -> None:
    # `resources` of another project must not be taken for this one's.
    if _last_root and _last_root[0] != root:
        old = os.path.abspath(_last_root[0]) + os.sep
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), "")
            if (
                file.startswith(old)
                and not file.startswith(PACKAGE)
                and not name.startswith(("statecfg.", "tests", "__main__"))
            ):
                del sys.modules[name]
    _last_root[:] = [root]
