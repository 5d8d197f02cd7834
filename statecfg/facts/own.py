"""The project's own facts: `facts/NAME.py` in the project defines `fact()` or `fact(world)`."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from statecfg.problems import Problem, SourceLocation, inputs, problem, report
from statecfg.problems.frozen import dataclass
from statecfg.problems.python_source import parse
from statecfg.remote import OLDEST

DIRECTORY = "facts"
EXAMPLE = "define `def fact(world):`, which returns text, a number, a list or a map"


@dataclass(frozen=True)
class OwnFact:
    """A fact of the project.

    :param file: relative to the project
    :param source: the text of the file
    """

    name: str
    file: str
    source: str


def find(root: Path) -> Mapping[str, OwnFact]:
    """Return the project's own facts by name; report invalid ones.

    :param root: the project's directory
    """
    folder = root / DIRECTORY
    if not folder.is_dir():
        return {}
    facts = {}
    for path in sorted(folder.glob("*.py")):
        inputs.note("fact", path)
        try:
            source = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            report(problem("SC0521", f"{path} can't be read: {error}", "", SourceLocation(str(path), 1)))
            continue
        facts[path.stem] = OwnFact(path.stem, os.path.relpath(path, root), source)
        report(*_problems(path, source))
    return facts


def _problems(path: Path, source: str) -> Iterator[Problem]:
    if not path.stem.isidentifier():
        help = "use letters, digits and _ in the name of the file"
        yield problem("SC0521", f"`{path.stem}` can't be the name of a fact", help, SourceLocation(str(path), 1))
    try:
        tree = parse(source, str(path), feature_version=OLDEST)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        help = "facts run on hosts: use the syntax of Python 3.8"
        yield problem("SC0521", f"{getattr(error, 'msg', error)}", help, SourceLocation(str(path), line))
        return
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "fact"]
    if not functions:
        yield problem("SC0521", f"{path.name} has no function `fact`", EXAMPLE, SourceLocation(str(path), 1))
    for function in functions[-1:]:
        takes = function.args
        if len(takes.posonlyargs) + len(takes.args) > 1 or takes.vararg or takes.kwonlyargs or takes.kwarg:
            location = SourceLocation(str(path), function.lineno, function.col_offset + 1)
            yield problem("SC0521", "`fact` takes at most one parameter, the world", EXAMPLE, location)
    for node in ast.walk(tree):
        for name in _imported(node):
            if name.partition(".")[0] not in sys.stdlib_module_names:
                detail = f"the fact imports `{name}`, which is not part of Python's standard library"
                location = SourceLocation(str(path), getattr(node, "lineno", 1))
                yield problem("SC0521", detail, "hosts have only the standard library", location)


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return ["." * node.level + (node.module or "")]
    return [item.name for item in node.names] if isinstance(node, ast.Import) else []
