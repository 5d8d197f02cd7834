"""Measure the CPU time from the declaration of a graph to its JSON for several sizes: `python bench/graph.py`."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import figures

SIZES = (1_000, 10_000, 100_000)
LAYERS = 20
SECONDS = {100_000: 10.0}  # the limit for compilation and serialization together
PEAK = round((1 << 30) / figures.MB)  # the limit of the memory, in MB


def measure(size: int) -> dict[str, float]:
    """Return the CPU seconds for each step and the peak memory for a graph of `size` nodes in 20 layers."""
    from statecfg.graph.graph import Graph, merge_graphs
    from statecfg.playbook.compile import WireContext, compile_graph
    from statecfg.resources import file

    start = time.process_time()
    width = size // LAYERS
    above: list[Graph] = []
    made: list[Graph] = []
    for layer in range(LAYERS):
        row = []
        for index in range(width):
            # Half of the requirements are names, half are graphs. Playbooks use both.
            requires = [above[index], made[(index * 7) % width].node.provides] if layer else ()
            row.append(file(f"/srv/{layer}/{index}", content=f"{layer} {index}\n", mode="0644", requires=requires))
        made.extend(row)
        above = row
    graph = merge_graphs(*made)
    declared = time.process_time()
    definition = compile_graph(graph, WireContext())
    compiled = time.process_time()
    text = json.dumps(definition.layers)
    serialized = time.process_time()
    assert len(definition.layers) == LAYERS and sum(map(len, definition.layers)) == size
    return {
        "nodes": size,
        "declare": declared - start,
        "compile": compiled - declared,
        "serialize": serialized - compiled,
        "megabytes": len(text) / 1e6,
        "peak": figures.megabytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss),
    }


def main() -> int:
    """Measure each size in a separate process, and print a table. Return 1 if a figure is over its bar.

    The loops are those of `bench/figures.py`, for compilation and serialization together.
    """
    heads = ("declare", "compile", "to JSON", "µs/node", "vs 1,000", "JSON", "peak", "loops")
    print(f"{'nodes':>8} " + " ".join(f"{head:>9}" for head in heads), flush=True)
    bars = figures.Bars()
    first = 0.0
    for size in SIZES:
        fixed = figures.fixed()
        out = subprocess.run([sys.executable, __file__, str(size)], check=True, capture_output=True, text=True).stdout
        row = json.loads(out)
        work = row["compile"] + row["serialize"]
        each = (row["declare"] + work) / size * 1e6
        first = first or each
        verdicts = [bars.at_most(work, SECONDS[size], "s")] if size in SECONDS else []
        verdicts.append(bars.at_most(row["peak"], PEAK, "MB"))
        print(
            f"{size:>8,} {row['declare']:>7.2f} s {row['compile']:>7.2f} s {row['serialize']:>7.2f} s {each:>9.1f} "
            f"{each / first:>8.2f}× {row['megabytes']:>6.0f} MB {row['peak']:>6.0f} MB "
            f"{figures.loops(work, fixed):>9.1f}   ({', '.join(verdicts)})",
            flush=True,
        )
    return bars.status


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(int(sys.argv[1]))))
    else:
        sys.exit(main())
