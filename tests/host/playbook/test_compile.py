"""The compiled graph has the same bytes in every process."""

from __future__ import annotations

import os
import subprocess
import sys

from tests import ROOT


def test_compiled_bytes_are_the_same_in_every_process() -> None:
    script = (
        "import json, tests.unit.graph.node_types as k; from statecfg.playbook.compile import *\n"
        "g = k.t_rich('/x', owner='web', env={c: c for c in 'qwertzuiop'}, tags=['a'])\n"
        "d = compile_graph(g, WireContext()); print(d.digest, json.dumps(d.layers))"
    )
    root = ROOT
    seen = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(root)},
            cwd=root, capture_output=True, text=True, check=True,
        ).stdout
        for seed in range(3)
    }  # fmt: skip
    assert len(seen) == 1
