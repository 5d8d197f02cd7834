"""Convert a Hy file, or a playbook that defines node types, to plain Python for hosts."""

from __future__ import annotations

import ast
import inspect
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import statecfg
from statecfg.dialects.keywords import body_start, dotted, needs_hy
from statecfg.graph.graph import Graph
from statecfg.playbook.plays import Play
from statecfg.playbook.services import Relation
from statecfg.problems import InvalidInput, SourceLocation, problem
from statecfg.problems.positions import PACKAGE
from statecfg.problems.python_source import parse
from statecfg.remote import OLDEST
from statecfg.remote.graph import borg, predicates
from statecfg.remote.graph.nodetype import NodeType
from statecfg.resources.index.modules import module_of

LINES = "__statecfg_lines__"  # in a module on a host: (file, {line in the module: line in the file})
ON_CONTROLLER = (Graph, Play, Relation)
BORG = borg.__name__
HY = ("hy", "funcparserlib")  # the packages of Hy's run time

Modules = dict[str, tuple[bool, str, str]]


def bundle_modules(name: str) -> Modules:
    """Return the source for hosts of a loaded module of node types and of its imports, including Hy if it needs it.

    :returns: module name → (whether it is a package, its file name, its source)
    :raises InvalidInput: a module uses syntax that hosts don't support
    """
    modules: Modules = {}
    waiting = [name]
    while waiting:
        module = sys.modules[waiting.pop()]
        if module.__name__ in modules or module.__file__ is None:
            continue
        tree = host_tree(module)
        source = python_source(tree, module.__file__)
        modules[module.__name__] = (hasattr(module, "__path__"), _file_name(module), source)
        waiting += _own_imports(tree)
        if needs_hy(tree):
            modules.update(_hy_runtime())
    return modules


def compile_for_host(path: str) -> tuple[str, bool]:
    """Return the Python source of a file for hosts, and whether it needs Hy there (see `HY`).

    :param path: a `.hy` file, which is loaded if necessary
    :raises InvalidInput: the file can't be compiled, or uses syntax that hosts don't support
    """
    file = os.path.abspath(path)
    loaded = (module for module in list(sys.modules.values()) if getattr(module, "__file__", None) == file)
    module = next(loaded, None)
    if module is None:
        stem = os.path.splitext(os.path.basename(file))[0]
        module = import_module("statecfg.dialects").load_module(module_of(stem), file)
    tree = host_tree(module)
    return python_source(tree, file), needs_hy(tree)


def host_tree(module: ModuleType) -> ast.Module:
    """Return the tree of a module for hosts, without plays and without imports that only the controller has."""
    assert module.__file__ is not None
    with open(module.__file__, encoding="utf-8") as stream:
        text = stream.read()
    if module.__file__.endswith(".hy"):
        scratch = ModuleType(module.__name__)
        scratch.__package__ = module.__package__
        tree: ast.Module = import_module("statecfg.dialects.hy_source").compile_text(text, module.__file__, scratch)
    else:
        tree = parse(text, module.__file__)
    playbook = any(isinstance(value, Play) for value in vars(module).values())
    tree.body = [kept for node in tree.body for kept in _for_host(node, module, playbook)]
    _drop_dependents(tree, module)
    _drop_unused_words(tree)
    _drop_documentation(tree)
    tree = ast.fix_missing_locations(_PlainText().visit(tree))
    if not needs_hy(tree):
        tree.body = [node for node in tree.body if ast.unparse(node) != "import hy"]
    return tree


def _for_host(node: ast.stmt, module: ModuleType, playbook: bool) -> Iterator[ast.stmt]:
    if isinstance(node, ast.ImportFrom) and node.level == 0:
        yield from _import_for_host(node, module)
    elif isinstance(node, ast.Import):
        node.names = [item for item in node.names if not _controllers(item.name)]
        if node.names:
            yield node
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        called = dotted(node.value.func) or dotted(getattr(node.value.func, "func", node))
        # Macros are only needed to compile. In a playbook, the controller needs the other calls, except those of our
        # own macros.
        # Only the controller validates.
        unused = called.startswith("hy.macros.") or called == "_borg.make_validators"
        if not unused and (not playbook or called.startswith("_borg.") or "." in called):
            yield node
    elif not (_bound(node) and all(isinstance(vars(module).get(name), ON_CONTROLLER) for name in _bound(node))):
        yield node


def _import_for_host(node: ast.ImportFrom, module: ModuleType) -> Iterator[ast.stmt]:
    source = node.module or ""
    if source == "statecfg.dialects.hy":
        source = BORG
    for item in node.names:
        value = vars(module).get(item.asname or item.name)
        if source == "statecfg" and item.name in statecfg._RENAMED:
            item = ast.alias(statecfg._RENAMED[item.name], item.asname or item.name)
        home = statecfg._HOMES.get(item.name, "") if source == "statecfg" else source
        if home == BORG and item.name in predicates.__all__:
            home = predicates.__name__
        foreign = isinstance(value, NodeType) and value.module != module.__name__  # declared with, on the controller
        if home and not foreign and not _controllers(home):
            yield ast.copy_location(ast.ImportFrom(home, [item], 0), node)


def _drop_unused_words(tree: ast.Module) -> None:
    """Remove imports of the words of Hy that a module does not use on hosts, and those that each macro repeats."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    modules = (BORG, predicates.__name__)
    body: dict[str, ast.stmt] = {}
    for number, node in enumerate(tree.body):
        words = node.names if isinstance(node, ast.ImportFrom) and node.module in modules else None
        if isinstance(node, ast.Import):
            body.setdefault(ast.dump(node), node)
        elif words is None or not used.isdisjoint(item.asname or item.name for item in words):
            body[str(number)] = node
    tree.body = list(body.values())


def _drop_documentation(tree: ast.Module) -> None:
    """Remove the docstrings of node types, the last argument of `node_type`: hosts don't show them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and dotted(node.func) == "_borg.node_type":
            del node.args[len(inspect.signature(borg.node_type).parameters) - 1 :]


def _controllers(name: str) -> bool:
    """Return whether a module stays on the controller."""
    return name == "statecfg" or (
        name.startswith("statecfg.") and not name.startswith(("statecfg.remote", "statecfg.resources"))
    )


def _bound(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in node.targets):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return []


def _drop_dependents(tree: ast.Module, module: ModuleType) -> None:
    # Statements that use something that was removed would fail on a host, such as `(setv several [d f])`.
    while True:
        missing = set(vars(module)) - {name for node in tree.body for name in _all_bound(node)}
        kept = [node for node in tree.body if isinstance(node, ast.FunctionDef) or not _used(node) & missing]
        if len(kept) == len(tree.body):
            return
        tree.body = kept


def _all_bound(node: ast.stmt) -> set[str]:
    names = {item.id for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)}
    names |= {item.name for item in ast.walk(node) if isinstance(item, ast.FunctionDef | ast.ClassDef)}
    for item in ast.walk(node):
        if isinstance(item, ast.Import | ast.ImportFrom):
            names |= {(item.asname or item.name).partition(".")[0] for item in item.names}
    return names


def _used(node: ast.stmt) -> set[str]:
    used = {item.id for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load)}
    return used - {"__name__", "__file__", "hy"}


class _PlainText(ast.NodeTransformer):
    """Replaces f-strings by calls of `format`, because nested quotes are a syntax error before Python 3.12."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        self.generic_visit(node)
        pieces = [_piece(part) for part in node.values]
        joined = ast.Call(ast.Attribute(ast.Constant(""), "join", ast.Load()), [ast.List(pieces, ast.Load())], [])
        return ast.copy_location(joined, node)


def _piece(part: ast.expr) -> ast.expr:
    if not isinstance(part, ast.FormattedValue):
        return part
    value = part.value
    if part.conversion != -1:
        name = {"r": "repr", "s": "str", "a": "ascii"}[chr(part.conversion)]
        value = ast.Call(ast.Name(name, ast.Load()), [value], [])
    return ast.Call(ast.Name("format", ast.Load()), [value, part.format_spec or ast.Constant("")], [])


def python_source(tree: ast.Module, path: str) -> str:
    """Return a tree as source for hosts. A table in it maps its lines to those of the file.

    :param path: the file
    :raises InvalidInput: the file uses syntax newer than Python 3.8
    """
    written = f"{LINES} = None"
    tree.body.insert(body_start(tree), parse(written).body[0])
    source = ast.unparse(ast.fix_missing_locations(tree))
    try:
        again = parse(source, feature_version=OLDEST)
    except SyntaxError as error:
        hint = "use only syntax of Python 3.8, which is the oldest version on hosts"
        raise InvalidInput(
            [problem("SC0516", str(error.msg), hint, SourceLocation(path, _line(tree, source, error)))]
        ) from None
    table = _table(tree, again)
    name = os.path.join(os.path.basename(os.path.dirname(path)), os.path.basename(path))
    return source.replace(written, f"{LINES} = {(name, table)!r}", 1) + "\n"


def _table(written: ast.AST, unparsed: ast.AST) -> dict[int, int]:
    """Return line of the generated source → line of the file, for each line of the source where the other changes."""
    lines: dict[int, int] = {}
    for original, generated in zip(ast.walk(written), ast.walk(unparsed), strict=False):
        if type(original) is not type(generated):
            break
        host_line, file_line = getattr(generated, "lineno", None), getattr(original, "lineno", None)
        if host_line is not None and file_line is not None:
            is_statement = isinstance(original, ast.stmt)
            lines[host_line] = file_line if is_statement else min(lines.get(host_line, file_line), file_line)
    ordered = sorted(lines.items())
    changes = (after for before, after in zip([(0, 0), *ordered], ordered, strict=False) if before[1] != after[1])
    return dict(changes)


def _line(tree: ast.Module, source: str, error: SyntaxError) -> int:
    lines = _table(tree, parse(source))
    return max((line for host_line, line in lines.items() if host_line <= (error.lineno or 1)), default=1)


def _own_imports(tree: ast.Module) -> list[str]:
    """Return the modules of the project that a tree imports."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{item.name}" for item in node.names)}
        elif isinstance(node, ast.Import):
            names |= {item.name for item in node.names}
    return sorted(name for name in names if _is_projects(sys.modules.get(name)))


def _is_projects(module: Any) -> bool:
    from statecfg.playbook.user_code import LIBRARIES

    file = getattr(module, "__file__", None) or ""
    ours = file.startswith(PACKAGE) or (
        getattr(module, "__name__", "").startswith("statecfg.resources") and file.endswith(".py")
    )
    return bool(file) and (file.endswith(".hy") or not ours) and not file.startswith(LIBRARIES)


def _file_name(module: ModuleType) -> str:
    folder, name = os.path.split(module.__file__ or "")
    return f"{os.path.basename(folder)}/{name}"


def _hy_runtime() -> Modules:
    modules: Modules = {}
    for package in HY:
        folder = os.path.dirname(import_module(package).__file__ or "")
        for directory, _, files in os.walk(folder):
            for file in sorted(files):
                stem, suffix = os.path.splitext(file)
                if suffix not in (".py", ".hy"):
                    continue
                path = os.path.join(directory, file)
                inside = os.path.relpath(os.path.join(directory, stem), os.path.dirname(folder)).replace(os.sep, ".")
                name = inside.removesuffix(".__init__")
                with open(path, encoding="utf-8") as stream:
                    text = stream.read()
                if suffix == ".hy":
                    text = import_module("statecfg.dialects.hy_source").plain_python(text, path, name)
                modules[name] = (stem == "__init__", inside.replace(".", "/") + ".py", text)
    return modules
