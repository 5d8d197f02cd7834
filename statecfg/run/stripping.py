"""Remove the parts of Python source that hosts don't need: annotations, docstrings, comments, imports for annotations.

Functions that only the controller calls (`@node_type.validate`, `@node_type.needs` and `@node_type.to_wire`, or
`node_type.validate(…)`) are removed, and the imports that only these functions use.

Every remaining line keeps its number, so a traceback from a host names the right line. Annotations in the body of a
class stay if it has decorators or other bases than such classes, because dataclasses and named tuples need them.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from statecfg.problems.python_source import parse

# Imports from these modules are removed unless code other than annotations uses them.
_FOR_ANNOTATIONS = frozenset({"typing", "typing_extensions", "collections.abc"})
_WORD = re.compile(r"[^\W\d]\w*")
_EQUALS = re.compile(rb"[ \t]*=[ \t]*\Z")

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def stripped(text: str) -> str:
    """Return Python source without the parts that hosts don't need.

    :param text: the source of a module
    :returns: the source with the same number of lines. Source that can't be stripped is returned unchanged.
    :raises SyntaxError: if the source does not compile
    """
    short = _Stripping(text).text()
    try:
        return _without_future(short, parse(short))
    except SyntaxError:
        return text


def _without_future(text: str, tree: ast.Module) -> str:
    """Return stripped source without `from __future__ import annotations`, if no annotation is left."""
    if any(isinstance(node, ast.AnnAssign) or _annotation(node) is not None for node in ast.walk(tree)):
        return text
    lines = text.split("\n")
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and lines[node.lineno - 1] == "from __future__ import annotations":
            lines[node.lineno - 1] = ""
    return "\n".join(lines)


def _annotation(node: ast.AST) -> ast.AST | None:
    """Return the annotation of a parameter or of a function's result."""
    found: ast.AST | None = getattr(node, "annotation", None) or getattr(node, "returns", None)
    return found


def imports(text: str) -> list[str]:
    """Return the names of the modules that source imports, also inside functions.

    `from a import b` yields `a` and `a.b`, because `b` may be a module. Relative imports begin with dots.
    """
    names: dict[str, None] = {}
    for node in ast.walk(parse(text)):
        if isinstance(node, ast.Import):
            names.update(dict.fromkeys(item.name for item in node.names))
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            dot = "" if module.endswith(".") else "."
            names.update(dict.fromkeys([module, *(f"{module}{dot}{item.name}" for item in node.names)]))
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            value = node.args[0].value
            if isinstance(value, str) and ast.unparse(node.func).endswith("import_module"):
                names[value] = None
    return list(names)


class _Stripping(ast.NodeVisitor):
    """Finds the unneeded parts of one source, and cuts them out.

    :ivar cuts: (start, end, replacement); positions in bytes of the source
    """

    def __init__(self, text: str) -> None:
        self.source = text.encode()
        lines = self.source.splitlines(keepends=True)
        self.starts = [0]
        for line in lines:
            self.starts.append(self.starts[-1] + len(line))
        self.cuts: list[tuple[int, int, bytes]] = []
        self.used: set[str] = set()
        self.annotated: set[str] = set()
        self.imported: list[ast.Import | ast.ImportFrom] = []
        self.in_class = False  # in the body of a class that may need annotations
        self.plain: set[str] = set()  # classes that don't
        self.tree = parse(text)
        self.controllers = controller_functions(self.tree)
        self.aliases = [node for node in self.tree.body if isinstance(node, ast.Assign) and is_alias(node)]

    def text(self) -> str:
        """Return the source without the unneeded parts."""
        self.docstring(self.tree)
        self.visit(self.tree)
        if "TYPE_CHECKING" not in self.used:
            for node in self.tree.body:
                if isinstance(node, ast.Assign) and ast.unparse(node) == "TYPE_CHECKING = False":
                    self.cut_statement(node)
        for alias in reversed(self.aliases):  # an alias may use one that is defined before it
            self.cut_alias(alias)
        for statement in self.imported:
            self.cut_import(statement)
        self.cuts.extend(self.comments())
        pieces, at = [], 0
        for start, end, replacement in sorted(self.cuts):
            if start >= at:  # skip a cut inside another cut
                pieces += [self.source[at:start], replacement]
                at = end
        return b"".join([*pieces, self.source[at:]]).decode()

    def offset(self, line: int, column: int) -> int:
        """Return the position in bytes of a line (from 1) and column (from 0)."""
        return self.starts[line - 1] + column

    def span(self, node: ast.stmt | ast.expr | ast.arg) -> tuple[int, int]:
        """Return where a node begins and ends."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def cut(self, start: int, end: int, replacement: bytes = b"", newline: bytes = b"\n") -> None:
        """Cut a part out, but keep its line breaks.

        :param newline: the form of these line breaks: they need a backslash inside a statement
        """
        if not replacement and self.source[end : end + 1] in (b"\n", b""):
            start = self.without_blanks(start)
        self.cuts.append((start, end, replacement + newline * self.source.count(b"\n", start, end)))

    def cut_statement(self, node: ast.stmt) -> None:
        """Cut a statement. Inside a block, which may have no other one, `pass` replaces it."""
        start, end = self.span(node)
        outside = node.col_offset == 0 and self.source[end : end + 1] in (b"\n", b"")
        self.cut(start, end, b"" if outside else b"pass")

    def without_blanks(self, at: int) -> int:
        """Return the position before the blanks that end at a position."""
        while self.source[at - 1 : at] in (b" ", b"\t"):
            at -= 1
        return at

    # The parts that are removed

    def visit_FunctionDef(self, node: _Function) -> None:
        """Cut the annotations of the parameters and of the result, and the docstring; or a controller's function."""
        if node in self.controllers:
            self.annotated.update(part.id for part in ast.walk(node) if isinstance(part, ast.Name))
            start = self.source.rindex(b"@", 0, self.span(node.decorator_list[0])[0])
            self.cut(start, self.span(node.body[-1])[1])
            return
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        for argument in filter(None, every):
            self.cut_parameter(argument)
        if node.returns is not None:
            start, end = self.span(node.returns)
            arrow = self.without_blanks(start)
            if self.source[arrow - 2 : arrow] == b"->":
                self.note(node.returns)
                self.cut(self.without_blanks(arrow - 2), end, newline=b"\\\n")
            else:
                self.visit(node.returns)
        for child in (*node.decorator_list, *arguments.defaults, *filter(None, arguments.kw_defaults)):
            self.visit(child)
        self.docstring(node)
        self.body(node.body, in_class=False)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Expr(self, node: ast.Expr) -> None:
        """Cut the registration of a controller's function."""
        if node in self.controllers:
            self.annotated.update(part.id for part in ast.walk(node) if isinstance(part, ast.Name))
            self.cut_statement(node)
        else:
            self.generic_visit(node)

    def cut_parameter(self, argument: ast.arg) -> None:
        """Cut the annotation of a parameter."""
        if argument.annotation is None:
            return
        start, end = self.span(argument)
        name = argument.arg.encode()
        if self.source[start : start + len(name)] == name:
            self.note(argument.annotation)
            self.cut(start + len(name), end)
        else:  # the name is written in another form of Unicode
            self.visit(argument.annotation)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Cut the docstring and the unneeded parts of the body."""
        for child in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(child)
        self.docstring(node)
        plain = not node.decorator_list and not node.keywords and self.plain.issuperset(map(ast.unparse, node.bases))
        if plain:
            self.plain.add(node.name)
        self.body(node.body, in_class=not plain)

    def body(self, statements: list[ast.stmt], in_class: bool) -> None:
        """Visit the statements of a class or function."""
        outside, self.in_class = self.in_class, in_class
        for statement in statements:
            self.visit(statement)
        self.in_class = outside

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Cut the annotation of a variable, unless a class may need it."""
        end_of_name = self.span(node.target)[1]
        if self.in_class or not self.source[end_of_name:].lstrip().startswith(b":"):
            self.generic_visit(node)
            return
        self.visit(node.target)
        if node.value is None:
            self.note(node.annotation)
            self.cut_statement(node)
            return
        self.visit(node.value)
        start = self.span(node.value)[0]
        after = self.span(node.annotation)[1]
        if _EQUALS.match(self.source[after:start]):
            self.note(node.annotation)
            self.cut(end_of_name, after, newline=b"\\\n")
        else:
            self.visit(node.annotation)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Skip aliases of types for now: `text` handles them after it knows which names are used."""
        if node not in self.aliases:
            self.generic_visit(node)

    def cut_alias(self, node: ast.Assign) -> None:
        """Cut an alias of a type that only annotations use."""
        name = ast.unparse(node.targets[0])
        if name in self.annotated and name not in self.used:
            self.note(node.value)
            self.cut_statement(node)
        else:
            self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        """Cut code that is only for type checkers."""
        named = isinstance(node.test, ast.Name | ast.Attribute)
        if not named or ast.unparse(node.test) not in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            self.generic_visit(node)
        elif not node.orelse:
            self.cut_statement(node)
        else:
            first = node.body[0]
            start = min([self.span(first)[0], *(self.span(decorator)[0] - 1 for decorator in decorators(first))])
            self.cut(start, self.span(node.body[-1])[1], b"pass")
            self.visit(node.test)
            for statement in node.orelse:
                self.visit(statement)

    def docstring(self, node: ast.Module | ast.ClassDef | _Function) -> None:
        """Cut the docstring."""
        if ast.get_docstring(node, clean=False) is not None:
            alone = len(node.body) == 1 and not isinstance(node, ast.Module)
            self.cut(*self.span(node.body[0]), b"pass" if alone else b"")

    def comments(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield the cuts of comments, each together with the blanks before it."""
        lines = self.source.decode().splitlines(keepends=True)
        for token in tokenize.generate_tokens(io.StringIO(self.source.decode()).readline):
            if token.type == tokenize.COMMENT:
                line, column = token.start
                start = self.offset(line, len(lines[line - 1][:column].encode()))
                yield self.without_blanks(start), start + len(token.string.encode()), b""

    # Imports

    def note(self, annotation: ast.expr) -> None:
        """Note the names that an annotation uses, also inside strings."""
        for node in ast.walk(annotation):
            if isinstance(node, ast.Name):
                self.annotated.add(node.id)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                self.annotated.update(_WORD.findall(node.value))

    def visit_Name(self, node: ast.Name) -> None:
        """Note a name that is used."""
        if not (isinstance(node.ctx, ast.Store) and node.id == "TYPE_CHECKING"):
            self.used.add(node.id)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Note a string that is a name: it may be in `__all__`, or an annotation in a class."""
        if isinstance(node.value, str) and node.value.isidentifier():
            self.used.add(node.value)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        """Note an import."""
        self.imported.append(node)

    visit_ImportFrom = visit_Import

    def cut_import(self, statement: ast.Import | ast.ImportFrom) -> None:
        """Cut the names that only annotations use."""
        kept = [item for item in statement.names if not self.unneeded(statement, item)]
        if len(kept) == len(statement.names):
            return
        if not kept:
            self.cut_statement(statement)
            return
        start, end = self.span(statement)
        statement.names = kept
        self.cut(start, end, ast.unparse(statement).encode())

    def unneeded(self, statement: ast.Import | ast.ImportFrom, item: ast.alias) -> bool:
        """Return whether only annotations use an imported name."""
        module = statement.module if isinstance(statement, ast.ImportFrom) else item.name
        name = (item.asname or item.name).partition(".")[0]
        return name not in self.used and (name in self.annotated or module in _FOR_ANNOTATIONS)


def is_type(node: _Function) -> bool:
    """Return whether a function is the signature of a node type."""
    return any(isinstance(decorator, ast.Name) and decorator.id == "node_type" for decorator in node.decorator_list)


def controller_functions(tree: ast.Module) -> list[ast.stmt]:
    """Return the functions that only the controller calls: the file registers them, and does not call them itself.

    Functions of other modules are registered by a statement, such as `node_type.validate(rules.check)`.
    """
    types = {node.name for node in tree.body if isinstance(node, _Function) and is_type(node)}
    if not types:
        return []
    roles = {f"{name}.{role}" for name in types for role in ("validate", "needs", "to_wire")}
    called = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    found: list[ast.stmt] = []
    for node in tree.body:
        if isinstance(node, _Function) and node.name not in called:
            found += [node] if any(ast.unparse(decorator) in roles for decorator in node.decorator_list) else []
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            found += [node] if ast.unparse(node.value.func) in roles else []
    return found


def is_alias(node: ast.Assign) -> bool:
    """Return whether an assignment may define a type, such as `Entry = dict[str, Any]`."""
    if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name) or not isinstance(node.value, ast.Subscript):
        return False
    plain = (ast.Name, ast.Attribute, ast.Subscript, ast.Tuple, ast.List, ast.Constant, ast.BinOp, ast.BitOr, ast.Load)
    return all(isinstance(part, plain) for part in ast.walk(node.value))


def decorators(node: ast.stmt) -> list[ast.expr]:
    """Return the decorators of a statement."""
    return node.decorator_list if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else []
