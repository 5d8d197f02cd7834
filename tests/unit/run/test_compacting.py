"""Compacting removes unnecessary blanks, and each token stays on its line."""

from __future__ import annotations

import ast

from statecfg.run.compacting import compacted
from tests.each import each

CASES = {
    "if a :\n    b = [ 1,\n        2 ]\n\n    c = d  if e else f\n": "if a:\n b=[1,\n2]\n\n c=d if e else f\n",
    "a = f'{b !r:>3} {{ c }}' + \"\" 'd'\n": "a=f'{b !r:>3} {{ c }}'+\"\" 'd'\n",
    "a = 1 .real\nb = x . y\nc = not -1\n": "a=1 .real\nb=x.y\nc=not-1\n",
    "a = '''\n  b\n''' \\\n    'c'\n": "a='''\n  b\n'''\\\n 'c'\n",
    "def f(a, * , b):\n    return (\n\n        'x'\n    )": "def f(a,*,b):\n return(\n\n'x'\n)",
    "": "",
}


@each("source", CASES)
def test_compacted_source_loses_blanks_and_keeps_its_lines(source: str) -> None:
    short = compacted(source)
    assert short == CASES[source]
    assert ast.dump(ast.parse(short)) == ast.dump(ast.parse(source))
    assert short.count("\n") == source.count("\n")
