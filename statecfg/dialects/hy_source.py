"""Read and compile Hy. Only this module imports `hy`, which patches Python's import system, so import it late."""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import os
import re
import sys
import types
import warnings
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import hy  # type: ignore[import-untyped]  # Hy has no type stubs
import hy.compiler  # type: ignore[import-untyped]  # as above
import hy.errors  # type: ignore[import-untyped]  # as above
import hy.reader  # type: ignore[import-untyped]  # as above
from hy.compiler import hy_compile
from hy.reader import read_many

from statecfg.dialects import brackets
from statecfg.dialects.keywords import plain_keywords
from statecfg.problems import InvalidInput, Problem, SourceLocation, problem, suggest
from statecfg.problems.former_names import warn_at
from statecfg.remote.graph.errors import StatecfgError

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

unmangle = hy.unmangle
_compiled = ContextVar("the file that is being compiled", default="a Hy file")


class BadForm(StatecfgError):
    """A macro received an invalid argument.

    :param form: the invalid part of the call
    """

    def __init__(self, message: str, form: Any) -> None:
        super().__init__(message)
        self.form = form


def form(text: str) -> Any:
    """Parse one form, for macros that build forms in Python."""
    return hy.read(text)


def warn_of_former(former: str, name: str, form: Any) -> None:
    """Warn, in a macro, that a form contains a former name."""
    warn_at(former, name, _compiled.get(), getattr(form, "start_line", 1))


def compile_text(text: str, path: str, module: types.ModuleType) -> ast.Module:
    """Return the Python tree of Hy source, with statecfg's keywords and the source location of each node.

    :param path: the file name in source locations
    :param module: stores the macros that the source requires or defines
    :raises InvalidInput: the source can't be parsed or a macro can't be expanded
    """
    before = _compiled.set(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # "will shadow the core macro": the author may do that
            forms = read_many(text, filename=path, skip_shebang=True, reader=hy.reader.HyReader())
            tree = hy_compile(forms, module, filename=path, source=text)
    except hy.errors.HyError as error:
        raise InvalidInput([_syntax(error, text, path)]) from error
    finally:
        _compiled.reset(before)
    return plain_keywords(_counted_from_zero(tree))


def _counted_from_zero(tree: ast.Module) -> ast.Module:
    # Hy's columns start at 1, those of Python's trees at 0. A tree may contain a node twice.
    for node in {id(node): node for node in ast.walk(tree) if getattr(node, "col_offset", 0) > 0}.values():
        node.col_offset -= 1  # type: ignore[attr-defined]  # the loop has only nodes with a column
    return tree


def plain_python(text: str, path: str, name: str) -> str:
    """Return the Python source of a module that is part of Hy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # "will shadow the core macro": these are the core macros
        tree = hy_compile(read_many(text, filename=path), types.ModuleType(name), filename=path, source=text)
    return ast.unparse(tree)


def _syntax(error: hy.errors.HyError, text: str, path: str) -> Any:
    bracket_problem = brackets.check(text, path)
    if bracket_problem is not None:
        return bracket_problem
    location = SourceLocation(path, getattr(error, "lineno", None) or 1, getattr(error, "offset", None))
    message = str(getattr(error, "msg", None) or error)
    cause = error.__context__
    if isinstance(cause, BadForm):
        location, message = _location_of(cause.form, location), str(cause)
        return problem("SC0502", message, "", location)
    if isinstance(error, hy.errors.HyRequireError):
        return _no_macro(message, _location_of(_form_being_compiled(error), location))
    if isinstance(error, hy.errors.HyMacroExpansionError):
        return problem("SC0502", " ".join(message.split()), "", location)
    if isinstance(error, hy.errors.HyCompileError):  # Hy reports an unexpected error as a bug with a traceback
        message = message.strip().splitlines()[-1]
    return problem("SC0501", message, "", location)


def _no_macro(message: str, location: SourceLocation) -> Problem:
    match = re.match(r"Could not require name (\S+) from <module '([^']+)'", message)
    if match is None:
        return problem("SC0506", message, "", location)
    macros = getattr(sys.modules.get(match[2]), "_hy_macros", {})
    names = [hy.unmangle(name) for name in macros]
    return problem("SC0506", f"{match[2]} has no macro {match[1]}", suggest(match[1], names, "it has"), location)


def _form_being_compiled(error: BaseException) -> Any:
    """Return the innermost form that Hy was compiling. Its errors about `require` don't contain it."""
    form, trace = None, error.__traceback__
    while trace is not None:
        expression = trace.tb_frame.f_locals.get("expr")
        form = expression if hasattr(expression, "start_line") else form
        trace = trace.tb_next
    return form


def _location_of(model: Any, otherwise: SourceLocation) -> SourceLocation:
    line, column = getattr(model, "start_line", None), getattr(model, "start_column", None)
    return SourceLocation(otherwise.file, line, column) if line else otherwise


class HyLoader(importlib.machinery.SourceFileLoader):
    """Loads a Hy file with `compile_text`."""

    def exec_module(self, module: types.ModuleType) -> None:
        """Compile the file and run it in `module`.

        :raises InvalidInput: the file can't be compiled
        """
        execute(module, self.path)


def execute(module: types.ModuleType, path: str) -> None:
    """Compile the Hy file `path` and run it in `module`."""
    with open(path, encoding="utf-8") as stream:
        tree = compile_text(stream.read(), path, module)
    exec(compile(tree, path, "exec", dont_inherit=True), module.__dict__)  # noqa: S102  # a playbook is a program


def load_module(name: str, path: str) -> types.ModuleType:
    """Import the Hy file `path` as the module `name`. A module that is already loaded is returned."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path, loader=HyLoader(name, path))
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


class HyFinder:
    """Finds the Hy modules of projects and of statecfg before Hy's own importer does."""

    def __init__(self) -> None:
        self.roots: list[str] = [PACKAGE, os.path.realpath(os.path.join(PACKAGE, "resources"))]

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module that is a `.hy` file below one of the roots; None for other modules."""
        last = name.rpartition(".")[2]
        for entry in sys.path if path is None else path:
            folder = os.path.realpath(entry or os.getcwd())
            if not any(folder == root or folder.startswith(root + os.sep) for root in self.roots):
                continue
            file = os.path.join(entry or os.getcwd(), last + ".hy")
            if os.path.isfile(file):
                # Hy's own compiler compiles our macros. Without a spec, pytest would read them as Python.
                loader = importlib.machinery.SourceFileLoader if name == "statecfg.dialects.hy" else HyLoader
                return importlib.util.spec_from_file_location(name, file, loader=loader(name, file))
        return None


FINDER = HyFinder()


def install(root: str | None = None) -> None:
    """Let `import` find the Hy modules of statecfg and of the project at `root`."""
    if FINDER not in sys.meta_path:
        sys.meta_path.insert(0, FINDER)
    if root is not None and os.path.realpath(root) not in FINDER.roots:
        FINDER.roots.append(os.path.realpath(root))


install()
