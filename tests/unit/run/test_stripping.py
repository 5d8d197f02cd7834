"""Stripping removes source code that hosts do not need, and all other code stays on its line."""

from __future__ import annotations

import ast

from statecfg.run.stripping import imports, stripped
from tests.each import each

CASES = {
    "def f(a: int, *b: str, c: 'X' = 1, **d: Any) -> Dict[str,\n  int]:\n    return a": (
        "def f(a, *b, c = 1, **d)\\\n:\n    return a"
    ),
    "def f():\n    '''One.\n\n    Two.\n    '''\n    return 1": "def f():\n\n\n\n\n    return 1",
    "def f():\n    'One.'": "def f():\n    pass",
    "@a\nclass A:\n    'One.'\n    x: int\n    y: int = 1": "@a\nclass A:\n\n    x: int\n    y: int = 1",
    "class A(B):\n    x: int = 1": "class A(B):\n    x: int = 1",
    "class A:\n    x: int\n    y: int = 1\nclass B(A):\n    z: A = 1": (
        "class A:\n    pass\n    y = 1\nclass B(A):\n    z = 1"
    ),
    "x: int = 1  # one\ny: List[\n  int\n] = []\nz: int": "x = 1\ny\\\n\\\n = []\n",
    "self.x: int = 1": "self.x = 1",
    "from typing import Any, cast\nx: Any = cast(str, 1)": "from typing import cast\nx = cast(str, 1)",
    "from a import (\n    b,\n    c,\n)\ndef f(x: b): return c": "from a import c\n\n\n\ndef f(x): return c",
    "from a import b\n__all__ = ['b']\nx: b = 1": "from a import b\n__all__ = ['b']\nx = 1",
    "if TYPE_CHECKING:\n    import a\n\n    b = 1\nc = 1": "\n\n\n\nc = 1",
    "TYPE_CHECKING = False\nif TYPE_CHECKING:\n    import a\nc = 1": "\n\n\nc = 1",
    "if TYPE_CHECKING:\n    @a\n    def b(): ...\nelse:\n    c = 1": (
        "if TYPE_CHECKING:\n    pass\n\nelse:\n    c = 1"
    ),
    "from typing import Any\nA = dict[str, Any]\nB = list[A]\nC = list[B]\nx: B = []\ny = C": (
        "from typing import Any\nA = dict[str, Any]\nB = list[A]\nC = list[B]\nx = []\ny = C"
    ),
    "from typing import Any\nA = dict[str, Any]\nB = list[A]\nx: B = []": "\n\n\nx = []",
    "s = '# no comment'  # é comment\n# more": "s = '# no comment'\n",
    "x = '''\n  # text  \n'''": "x = '''\n  # text  \n'''",
    "import a\nx = 1": "import a\nx = 1",
    "from typing import A\nif x:\n    from typing import A\nfrom typing import A; y = 1\ndef f(a: A): return a": (
        "\nif x:\n    pass\npass; y = 1\ndef f(a): return a"
    ),
    "@node_type\ndef a(): ...\n@a.validate\ndef b(attrs: c):\n    'D.'\n    if attrs:\n        raise e\nf = 1": (
        "@node_type\ndef a(): ...\n\n\n\n\n\nf = 1"
    ),
    "import e\nimport g\n@node_type\ndef a(): ...\n@a.to_wire\ndef b():\n    return e.f(g)\nh = g": (
        "\nimport g\n@node_type\ndef a(): ...\n\n\n\nh = g"
    ),
    "@node_type\ndef a(): ...\n@a.validate\ndef b():\n    return 1\nc = b()": (
        "@node_type\ndef a(): ...\n@a.validate\ndef b():\n    return 1\nc = b()"
    ),
    "import e\nimport g\n@node_type\ndef a(): ...\na.validate(e.f)\na.check(g.f)": (
        "\nimport g\n@node_type\ndef a(): ...\n\na.check(g.f)"
    ),
    "import e\na.validate(e.f)": "import e\na.validate(e.f)",
    "@a.validate\ndef b():\n    return 1": "@a.validate\ndef b():\n    return 1",
    "@node_type\ndef a(): ...\n@a.to_wire\ndef b(n: c):\n    return n\n@a.check\ndef d(): return 1": (
        "@node_type\ndef a(): ...\n\n\n\n@a.check\ndef d(): return 1"
    ),
}


@each("source", CASES)
def test_stripped_source_loses_what_hosts_do_not_need(source: str) -> None:
    short = stripped(source)
    assert short == CASES[source]
    assert short.count("\n") == source.count("\n")
    ast.parse(short)


def test_stripping_leaves_unusual_source_unchanged() -> None:
    source = "'''One.'''; x = 1\n"
    assert stripped(source) == source


def test_imports_finds_imports_at_every_level() -> None:
    source = (
        "import a.b\nfrom c import d\nfrom . import e\nfrom ..f import g\n"
        "def h():\n    import i\n    import_module('j.k')\n    import_module(name)\n"
    )
    assert set(imports(source)) == {"a.b", "c", "c.d", ".", ".e", "..f", "..f.g", "i", "j.k"}
