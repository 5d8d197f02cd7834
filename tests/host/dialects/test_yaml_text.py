"""YAML that would need much time or memory is refused early. A separate process measures this."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest


def alias_bomb() -> str:
    names = "abcdefghi"
    lines = ["a: &a [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"{b}: &{b} [{','.join([f'*{a}'] * 10)}]" for a, b in itertools.pairwise(names)]
    return "\n".join(lines)


BOMBS = {
    "nested aliases": alias_bomb(),
    "nested merge keys": "a: &m0 {x: 1}\n" + "".join(f"b{i}: &m{i + 1} {{<<: [*m{i}, *m{i}]}}\n" for i in range(18)),
    "deeply nested list": "a: " + "[" * 5000,
    "deeply nested map": "{a: " * 5000,
    "deeply nested block": "".join(" " * i + "a:\n" for i in range(1500)),
    "number with many digits": "a: " + "9" * 5000,
    "list with many items": "a: [" + "b," * 7_000_000 + "]",
}


MEASURE = """
import resource, sys, time
from statecfg.dialects import yaml_text
from statecfg.problems import InvalidInput
text = sys.stdin.read()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.process_time()
try:
    yaml_text.parse(text, "f.yml", "a map")
except InvalidInput as error:
    first = error.problems[0]
    print(first.code, first.locations[0], time.process_time() - start,
          resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("name", BOMBS)
def test_expensive_yaml_is_refused_early(name):
    done = subprocess.run(
        [sys.executable, "-c", MEASURE], input=BOMBS[name], capture_output=True, text=True, timeout=60
    )
    assert not done.stderr
    code, place, seconds, kilobytes = done.stdout.split()
    assert code in ("SC0305", "SC0308", "SC0309")
    assert place.startswith("f.yml:")
    # One second of the reference machine; CI machines are slower.
    assert float(seconds) < 4
    assert int(kilobytes) < 100 * 1024
