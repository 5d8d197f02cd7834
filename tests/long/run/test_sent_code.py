"""The code that is sent to hosts, as hosts receive it: Python 3.8, and only the standard library."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator
from pathlib import Path

from statecfg.run.stripping import stripped
from tests.unit.sources import TRAVELS, imported, run_time, shown, walk


def test_files_sent_to_hosts_parse_as_python_3_8() -> None:
    for path in TRAVELS:
        sent(path)


@functools.cache
def sent(path: Path) -> ast.Module:
    """Return the tree of a file as hosts receive it."""
    return ast.parse(stripped(path.read_text()), shown(path), feature_version=(3, 8))


def sent_imports(path: Path) -> Iterator[tuple[str, int]]:
    """Yield the imports of a file on hosts. Stripping removes imports that only annotations use."""
    return imported(path, run_time(walk(sent(path))))


def test_files_sent_to_hosts_import_only_the_standard_library() -> None:
    for path, module, line in ((file, *item) for file in TRAVELS for item in sent_imports(file)):
        top = module.partition(".")[0]
        assert not top or top == "statecfg" or top in sys.stdlib_module_names, f"{shown(path)}:{line} imports {module}"
        # Imports of these are slow on hosts, and no code there needs them. Only annotations of node types use `values`.
        heavy = top in ("dataclasses", "logging", "inspect") or (top == "typing" and path.name != "values.py")
        assert not heavy, f"{shown(path)}:{line} imports {module}"
