"""The value types on a host need only the standard library."""

from __future__ import annotations

import pathlib
import subprocess
import sys

from statecfg.remote.graph import values


def test_values_module_needs_only_the_standard_library() -> None:
    root = pathlib.Path(values.__file__).parents[3]
    load = "import statecfg.remote.graph.values as v; print(v.mode('0644'))"
    script = f"import sys; sys.path.insert(0, {str(root)!r}); {load}"
    out = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "420"
