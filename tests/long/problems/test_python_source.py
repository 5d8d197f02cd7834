"""Parsing Python source."""

from __future__ import annotations

import ast
from concurrent.futures import ThreadPoolExecutor

from statecfg.problems.python_source import parse

SOURCE = "\n".join(f"def f{n}(a, b):\n    return [a + b * {n}, (a, (b, [{n}]))]" for n in range(100))


def test_threads_parse_at_the_same_time() -> None:
    expected = ast.dump(parse(SOURCE))
    with ThreadPoolExecutor(8) as threads:
        trees = list(threads.map(parse, [SOURCE] * 24))
    assert {ast.dump(tree) for tree in trees} == {expected}
