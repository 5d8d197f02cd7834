"""Replace Hy's keywords by statecfg's in compiled trees, so that hosts don't need Hy."""

from __future__ import annotations

import ast

NAME = "_statecfg_keyword"  # the class's name in a module that uses it; users don't use this prefix
CLASS = "statecfg.remote.graph.model"


def plain_keywords(tree: ast.Module) -> ast.Module:
    """Replace `hy.models.Keyword("x")` by a string if it is a key of a map, and by our keyword elsewhere.

    Also remove `import hy` if nothing else in the module uses it.
    """
    transformer = _Keywords()
    tree = transformer.visit(tree)
    if not needs_hy(tree):
        tree.body = [node for node in tree.body if not _imports_hy(node)]
    if transformer.used:
        start = body_start(tree)
        position = {"lineno": 1, "col_offset": 0, "end_lineno": 1, "end_col_offset": 0}
        alias = ast.alias(name="Keyword", asname=NAME, **position)
        tree.body.insert(start, ast.ImportFrom(module=CLASS, names=[alias], level=0, **position))
    return tree


def body_start(tree: ast.Module) -> int:
    """Return the index after the docstring and the `__future__` imports, where other statements can start."""
    index = 0
    for node in tree.body:
        docstring = index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not docstring and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
        index += 1
    return index


def needs_hy(tree: ast.Module) -> bool:
    """Return whether a compiled module uses Hy at run time."""
    return any(isinstance(node, ast.Name) and node.id == "hy" for node in ast.walk(tree))


def _imports_hy(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import) and [(item.name, item.asname) for item in node.names] == [("hy", None)]


def dotted(node: ast.AST) -> str:
    """Return the text of an expression such as `a.b.c`; "" for other expressions."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def keyword_name(node: ast.AST | None) -> str | None:
    """Return the name in `hy.models.Keyword("name")`; None for other expressions."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and dotted(node.func) == "hy.models.Keyword":
        (argument,) = node.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            return argument.value
    return None


class _Keywords(ast.NodeTransformer):
    def __init__(self) -> None:
        self.used = False

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        for index, key in enumerate(node.keys):
            name = keyword_name(key)
            if name is not None and key is not None:
                node.keys[index] = ast.copy_location(ast.Constant(name), key)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = keyword_name(node)
        if name is None:
            return self.generic_visit(node)
        self.used = True
        call = ast.Call(ast.copy_location(ast.Name(NAME, ast.Load()), node), [node.args[0]], [])
        return ast.copy_location(call, node)
