"""The layout of YAML texts: `statecfg fmt` changes indentation and spaces, and nothing else."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from statecfg.dialects import yaml_layout
from statecfg.dialects.yaml_layout import OtherData, laid_out
from statecfg.problems import InvalidInput
from tests.each import each

ROOT = Path(__file__).parent.parent.parent.parent

CASES = {
    "a list in the column of its key": (
        "hosts: web\nresources:\n- package: nginx\n- file: /etc/motd\n  mode: '0644'\n",
        "hosts: web\nresources:\n  - package: nginx\n  - file: /etc/motd\n    mode: '0644'\n",
    ),
    "wide indentation": (
        "a:\n     b:\n          - c: 1\n            d: 2\n     e: 3\n",
        "a:\n  b:\n    - c: 1\n      d: 2\n  e: 3\n",
    ),
    "spaces after dashes and colons": ("a:   1\nb:\n -   c:  2\n     d :  3\n", "a: 1\nb:\n  - c: 2\n    d: 3\n"),
    "spaces inside brackets": (
        "a: { b: 1,c :  2 }\nd: [ x ,  z,]\ne: {f: , g: }\n",
        "a: {b: 1, c: 2}\nd: [x, z,]\ne: {f: , g: }\n",
    ),
    "comments": (
        "# top\na:\n# first\n- x   # kept\n    # end of a\n# of b\nb: 1\n\n# end\n",
        "# top\na:\n  # first\n  - x   # kept\n    # end of a\n# of b\nb: 1\n\n# end\n",
    ),
    "comments in an empty value": ("a:\n    # b: 1\n    # c: 2\nd: 1\n", "a:\n  # b: 1\n  # c: 2\nd: 1\n"),
    "comments at the end of nested blocks": (
        "a:\n    b:\n        c: 1\n        # of b\n    # of a\n# of all\n",
        "a:\n  b:\n    c: 1\n    # of b\n  # of a\n# of all\n",
    ),
    "blank lines and order": ("b: 1\n\n\na: 2\n   \n\n", "b: 1\n\n\na: 2\n"),
    "white space at the ends of lines": ("a: 1  \nb:\t\n  - c \n", "a: 1\nb:\n  - c\n"),
    "a text block": (
        "a:\n - b: |\n      one\n        two  \n\n      three\n   c: 1\n",
        "a:\n  - b: |\n      one\n        two  \n\n      three\n    c: 1\n",
    ),
    "a text block in a list": ("a:\n- |-\n     one\n\n      two\n", "a:\n  - |-\n    one\n\n     two\n"),
    "a text block with its own indentation": ("a:\n    b: |2\n         one\n", "a:\n  b: |2\n       one\n"),
    "a text block that keeps its line ends": ("a:\n   b: |+\n     one\n\n\n", "a:\n  b: |+\n    one\n\n\n"),
    "a comment after a text block": ("a: |\n   one\n # two\n", "a: |\n  one\n# two\n"),
    "an empty text block": ("a:\n   b: |\n   c: 1\n", "a:\n  b: |\n  c: 1\n"),
    "text over several lines": (
        'a:\n      b: "one\n        two   \n\n        three"\n      c: one\n         two\n',
        'a:\n  b: "one\n    two   \n\n    three"\n  c: one\n     two\n',
    ),
    "a value on its own line": ("a:\n      one\nb:\n        [c,\n         d]\n", "a:\n  one\nb:\n  [c,\n   d]\n"),
    "brackets over several lines": (
        "a:\n    b: {\n      c: [1,\n        # inner\n          2],\n    }\n",
        "a:\n  b: {\n    c: [1,\n      # inner\n        2],\n  }\n",
    ),
    "lists in lists": ("- - a\n  -   b\n-\n   - c\n", "- - a\n  - b\n-\n  - c\n"),
    "anchors, aliases and tags": (
        "a: &x\n    b: 1\nc:   *x\nd: !secret   {env: X}\n",
        "a: &x\n  b: 1\nc: *x\nd: !secret   {env: X}\n",
    ),
    "the start of the document": ("---\n- a:  1\n", "---\n- a: 1\n"),
    "explicit keys": ("?   a\n:   b\n", "?   a\n: b\n"),
    "templates and quotes": (
        "resources:\n- file: \"{{ root }}/x\"\n  content: '{{ a }}: # b'\n",
        "resources:\n  - file: \"{{ root }}/x\"\n    content: '{{ a }}: # b'\n",
    ),
    "a text alone": ("'x'\n", "'x'\n"),
    "no line end at the end": ("a: 1", "a: 1\n"),
    "Windows line ends": ("a:\r\n- b:   |\r\n    c\r\n", "a:\n  - b: |\n      c\n"),
}


@each(("text", "expected"), CASES.values(), ids=CASES)
def test_fmt_gives_a_file_the_one_layout_and_keeps_it(text: str, expected: str) -> None:
    assert laid_out(text, "test.yml") == expected
    assert laid_out(expected, "test.yml") == expected


FILES = [path for folder in ("playbooks", "tests/host/corpus") for path in (ROOT / folder).rglob("*.yml")]


@each("path", FILES, ids=lambda path: path.name)
def test_own_playbooks_have_this_layout(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert laid_out(text, str(path)) == text
    indented = textwrap.indent(text, "   ", lambda line: bool(line.strip()))
    assert laid_out("all:\n" + indented, str(path)).startswith("all:\n  ")


def test_wrong_text_is_refused() -> None:
    with pytest.raises(InvalidInput, match="SC0315"):
        laid_out("a: [\n", "test.yml")
    with pytest.raises(InvalidInput, match="SC0306"):
        laid_out("a: 1\na: 2\n", "test.yml")


def test_result_with_other_data_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_layout, "STEP", -1)
    with pytest.raises(OtherData, match=r"test\.yml"):
        laid_out("a:\n  b:\n    c: 1\n  d: 2\n", "test.yml")
