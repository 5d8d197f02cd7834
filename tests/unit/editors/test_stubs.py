"""The stubs of node types, from which type checkers learn their attributes."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Literal

from statecfg import Blob, Content, Mode, Names, resources
from statecfg.editors import files, stubs
from statecfg.graph import schema, validators
from statecfg.playbook import project as projects
from statecfg.remote.graph import predicates
from statecfg.remote.graph.nodetype import NodeType
from tests.each import each


def rich(
    path: str,
    link: str = "none",
    *,
    mode: Mode | None = None,
    count: int = 3,
    names: Names | None = None,
    state: Literal["on", "off"] = "on",
    either: int | list[int] | None = None,
    content: Content | None = None,
    env: dict[str, bool] | None = None,
    data: object = None,
    whole: Blob | None = None,
) -> None:
    r"""Manage "it" with a \ in a sentence that is long enough to be wrapped, because lines have at most 120 letters.

    More.
    """


STUB = '''\
# first
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

from statecfg import NodeOptions, node_type

__all__ = ["rich"]

@node_type
def rich(
    path: str,
    link: str = ...,
    *,
    mode: str | None = ...,
    count: int = ...,
    names: Sequence[str] | None = ...,
    state: Literal['on', 'off'] = ...,
    either: int | Sequence[int] | None = ...,
    content: Any = ...,
    env: Mapping[str, bool] | None = ...,
    data: Any = ...,
    whole: Any = ...,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage \\"it\\" with a \\\\ in a sentence that is long enough to be wrapped, because lines have at most 120
    letters."""
'''


def test_stub_has_each_argument_and_attribute_with_its_type() -> None:
    found = stubs.module([NodeType("rich", function=rich, module=__name__, doc=rich.__doc__)], "# first")
    assert found == STUB
    ast.parse(found)


def test_stub_without_types_is_empty() -> None:
    assert stubs.module([], "# first") == "# first\n\n__all__ = []\n"


def test_stub_of_a_type_in_hy_has_the_types_of_its_predicates() -> None:
    text = stubs.module([resources.process], "#")
    assert "env: Mapping[str, Any]," in text and "args: Sequence[Any]," in text and "user: str," in text
    assert "hyx_blockXquestion_markX: bool | None = ...," in text
    assert schema.unmangled("hyx_blockXquestion_markX") == "block?"


PREDICATES = [
    (predicates.hyx_stringXquestion_markX, {"type": "string"}),
    (predicates.some_fn(predicates.hyx_trueXquestion_markX, predicates.hyx_nilXquestion_markX), {"type": "boolean"}),
    (
        predicates.some_fn(predicates.hyx_numberXquestion_markX, predicates.hyx_seqXquestion_markX),
        {"anyOf": [{"type": "number"}, {"type": "array"}]},
    ),
    (predicates.some_fn(predicates.hyx_stringXquestion_markX, callable), {}),
    (str.isalpha, {}),
]


@each(("predicate", "expected"), PREDICATES)
def test_json_schema_of_predicates(predicate: object, expected: object) -> None:
    assert validators.json_schema([[predicate]]) == expected


def test_stub_of_a_project_follows_its_node_types(tmp_path: Path) -> None:
    project = projects.Project(tmp_path)
    assert files.STUB not in [path.name for path in files.write(project)]
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources/mine.py").write_text(
        "from statecfg import node_type\n\n\n@node_type\ndef mine(name: str) -> None:\n    'Manage it.'\n"
    )
    assert files.STUB in [path.name for path in files.write(project)]
    assert "def mine(\n    name: str,\n" in (tmp_path / files.STUB).read_text()
    (tmp_path / "resources/mine.py").unlink()
    assert files.STUB in [path.name for path in files.write(project)]
    assert "__all__ = []" in (tmp_path / files.STUB).read_text()
