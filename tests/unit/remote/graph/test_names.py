"""The names of outcomes, statuses, states, modes and events: the docs explain them, and the code uses no others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from statecfg.remote.graph import events, names
from tests.each import each

REPOSITORY = Path(__file__).parents[4]
PAGES = {
    names.Outcome: "report.md",
    names.ActionStatus: "report.md",
    names.HostStatus: "report.md",
    names.RunStatus: "report.md",
    names.HookStatus: "report.md",
    names.State: "lifecycle.md",
    names.Mode: "report.md",
    names.ResourceEvent: "lifecycle.md",
    events.HostEvent: "lifecycle.md",
    events.RunEvent: "architecture.md",
}
# The value of an expression that ends in one of these keys or attributes is such a name.
COMPARED = {
    "outcome": names.Outcome.ALL,
    "status": (*names.HostStatus.ALL, *names.ActionStatus.ALL, *names.HookStatus.ALL, *names.RunStatus.ALL),
    "mode": names.Mode.ALL,
}
# The tasks of entities have other statuses.
FOREIGN = {"statecfg/store/marks.py"}


@each("listed", PAGES, ids=lambda listed: listed.__name__)
def test_the_docs_explain_every_name(listed: type[names.Outcome]) -> None:
    page = (REPOSITORY / "docs" / PAGES[listed]).read_text()
    assert [name for name in listed.ALL if f"`{name}`" not in page and not re.search(rf"\b{name}\b", page)] == []


@each("listed", PAGES, ids=lambda listed: listed.__name__)
def test_each_list_contains_all_its_names(listed: type[names.Outcome]) -> None:
    single = {value for name, value in vars(listed).items() if name.isupper() and isinstance(value, str)}
    assert single == set(listed.ALL)
    assert len(listed.ALL) == len(single)


def test_every_list_of_names_has_a_page_in_the_docs() -> None:
    assert set(PAGES) == {
        value for module in (names, events) for value in vars(module).values() if isinstance(value, type)
    }


def test_code_compares_with_names_instead_of_strings() -> None:
    paths = [*REPOSITORY.glob("statecfg/*/**/*.py"), *REPOSITORY.glob("statecfg/*.py")]
    wrong = [
        f"{path.relative_to(REPOSITORY)}:{line}: {text!r}"
        for path in paths
        if str(path.relative_to(REPOSITORY)) not in FOREIGN and "resources" not in path.parts
        for line, text in literals(ast.parse(path.read_text()))
    ]
    assert wrong == []


def literals(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the strings that code compares with an outcome, a status, a mode or a failure rule."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        expected = {name for side in sides for name in COMPARED.get(last_word(side), ())}
        for inner in (inner for side in sides for inner in ast.walk(side)):
            if isinstance(inner, ast.Constant) and inner.value in expected:
                yield inner.lineno, inner.value


def last_word(side: ast.expr) -> str:
    """Return the name, attribute or key that an expression reads, such as `status` in `host["status"]`."""
    match side:
        case ast.Attribute(attr=word) | ast.Name(id=word):
            return word
        case ast.Subscript(slice=ast.Constant(value=str(word))):
            return word
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str(word)), *_]):
            return word
    return ""


def test_literals_finds_strings_in_comparisons() -> None:
    code = 'host["status"] == "ok" or node.outcome in ("changed", "x") or said.get("mode") != "plan" or mode == MODE'
    assert [text for _, text in literals(ast.parse(code))] == ["ok", "changed", "plan"]
