"""Jinja2: template files, templates in YAML scalars, and expressions, with every mistake at its place."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any

from jinja2 import BaseLoader, TemplateError, TemplateNotFound, TemplateSyntaxError, nodes
from jinja2.environment import Template as Compiled
from jinja2.exceptions import SecurityError
from jinja2.meta import find_undeclared_variables
from jinja2.parser import Parser
from jinja2.runtime import Undefined as _Undefined

from statecfg.graph.opaque import Value, cleaned, found
from statecfg.problems import InvalidInput, Problem, inputs, problem, suggest
from statecfg.problems.positions import SourceLocation
from statecfg.problems.tokens import Lost
from statecfg.templates.sandbox import BUDGET, SIZE, UNREADABLE, Budget, Missing, Refused, Sandbox, TooMuch

__all__ = [
    "UNREADABLE",
    "Text",
    "evaluate",
    "expression",
    "is_template",
    "names",
    "render_file",
    "render_text",
    "resolve",
]

_RESULT = "result"


class Text(str):
    """A text that the author of a playbook wrote, so that it may be a template; `place` is where it starts.

    :param block: its first line of content stands below the place, as after `|`
    """

    __slots__ = ("block", "place")

    def __new__(cls, text: str, place: SourceLocation, block: bool = False) -> Text:
        """Make one of a plain text."""
        made = super().__new__(cls, text)
        made.place, made.block = place, block
        return made

    place: SourceLocation
    block: bool


def is_template(text: str) -> bool:
    """Return whether a text has anything for Jinja2 in it."""
    return "{" in text and any(mark in text for mark in ("{{", "{%", "{#"))


def evaluate(text: str, variables: Mapping[str, Any], place: SourceLocation, block: bool = False) -> Any:
    """Return what a scalar of a playbook stands for.

    A text that is one `{{ expression }}` gives the expression's value as it is, so that numbers stay numbers and
    lists stay lists; anything else is rendered as text. Nothing is ever converted by how it looks.

    Raises InvalidInput, at the place, with the names that exist where one is undefined.
    """
    if not is_template(text):
        return text
    with _placed(place, block, variables):
        compiled, native = _scalar(str(text))
        return _native(compiled, variables) if native else _text(compiled, variables)


def expression(text: str, variables: Mapping[str, Any], place: SourceLocation, block: bool = False) -> Any:
    """Return the value of an expression, such as `port > 80`; one in `{{ }}` is taken as well. Raises InvalidInput."""
    if is_template(text):
        return evaluate(text.strip(), variables, place, block)
    with _placed(place, block, variables):
        return _native(_expression(str(text)), variables)


def names(text: str, is_expression: bool = False) -> set[str]:
    """Return the variables that a text reads; all its words if it is not a valid template.

    :param is_expression: it is an expression such as that of `when:`, without braces
    """
    try:
        tree = _environment().parse(f"{{{{ {text} }}}}" if is_expression else text)
        return set(find_undeclared_variables(tree))
    except TemplateError:
        return set(re.findall(r"[A-Za-z_]\w*", text))


def resolve(value: Any, variables: Mapping[str, Any]) -> Any:
    """Return the value with each `Text` in it evaluated; every other text stays as it is. Raises InvalidInput."""
    if isinstance(value, Text):
        return evaluate(value, variables, value.place, value.block)
    if isinstance(value, dict):
        return {key: resolve(item, variables) for key, item in value.items()}
    if isinstance(value, list):
        return [resolve(item, variables) for item in value]
    return value


def render_text(text: str, variables: Mapping[str, Any], place: SourceLocation) -> str:
    """Return a template rendered as text, secrets revealed. Raises InvalidInput at the place."""
    with _placed(place, False, variables):
        return _revealed(_text(_template(str(text)), variables))


def _revealed(value: Any) -> str:
    return value.reveal() if isinstance(value, Value) else str(value)


def render_file(path: Path, variables: Mapping[str, Any], place: SourceLocation, base: Path | None = None) -> str:
    """Return a template file rendered as text, secrets revealed.

    :param path: the file; what it includes, imports or extends is looked for beside it and in `templates/`
    :param variables: what the template may use
    :param place: where it is asked for
    :param base: the project's directory
    :raises InvalidInput: with the line of the template, and the place that asked for it
    """
    folders = [str(path.parent), *([str(base / "templates")] if base else [])]
    with _placed(place, False, variables):
        text = _revealed(_text(_environment(tuple(folders)).get_template(path.name), variables))
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            detail = f"{path.name} gives a character that UTF-8 has not: {text[error.start]!r}"
            raise InvalidInput([problem("SC0322", detail, "", SourceLocation(str(path), 1), place)]) from None
        return text


class _Files(BaseLoader):
    """Finds templates in a few directories, and never outside them."""

    def __init__(self, folders: tuple[str, ...]) -> None:
        self.folders = folders

    def get_source(self, environment: Any, template: str) -> tuple[str, str, Callable[[], bool]]:
        parts = template.split("/")
        if not template or os.path.isabs(template) or ".." in parts or "\0" in template:
            raise Refused(f"template {template!r} is outside the project", "name it relative to templates/")
        for folder in self.folders:
            path = os.path.join(folder, *parts)
            if os.path.isfile(path):
                text = _read(path)
                inputs.note("template", path, text.encode())
                return text, path, partial(_unchanged, path, _state(path))
        raise TemplateNotFound(template)


def _unchanged(path: str, state: tuple[int, int] | None) -> bool:
    inputs.note("template", path)  # it was compiled earlier, and is used again
    return _state(path) == state


def _state(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _read(path: str) -> str:
    try:
        with open(path, "rb") as stream:
            data = stream.read(SIZE + 1)
    except OSError as error:
        raise InvalidInput(
            [problem("SC0301", f"{path}: {error.strerror}", "check the path", SourceLocation(path, 1))]
        ) from None
    if len(data) > SIZE:
        raise InvalidInput([problem("SC0323", f"{path} is larger than {SIZE >> 20} MB", "", SourceLocation(path, 1))])
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        detail = f"at byte offset {error.start}: byte 0x{data[error.start]:02x}"
        raise InvalidInput([problem("SC0313", detail, "save the file as UTF-8", SourceLocation(path, line))]) from None


@lru_cache(maxsize=64)
def _environment(folders: tuple[str, ...] = ()) -> Sandbox:
    return Sandbox(_Files(folders))


@lru_cache(maxsize=4096)
def _template(text: str) -> Compiled:
    return _environment().from_string(text)


@lru_cache(maxsize=4096)
def _scalar(text: str) -> tuple[Compiled, bool]:
    """Return the compiled template, and whether it is a single expression."""
    tree = _environment().parse(text)
    if len(tree.body) == 1 and isinstance(tree.body[0], nodes.Output) and len(tree.body[0].nodes) == 1:
        value = tree.body[0].nodes[0]
        if not isinstance(value, nodes.TemplateData):
            return _assign(value), True
    return _template(text), False


@lru_cache(maxsize=4096)
def _expression(text: str) -> Compiled:
    environment = _environment()
    parser = Parser(environment, text, state="variable")
    tree = parser.parse_expression()
    if not parser.stream.eos:
        raise TemplateSyntaxError("the expression ends here, and something follows", parser.stream.current.lineno)
    return _assign(environment.limited(tree))


def _assign(value: nodes.Expr) -> Compiled:
    environment = _environment()
    body: list[nodes.Node] = [nodes.Assign(nodes.Name(_RESULT, "store"), value, lineno=1)]
    tree = nodes.Template(body, lineno=1)
    tree.set_environment(environment)
    return environment.from_string(tree)


def _native(compiled: Compiled, variables: Mapping[str, Any]) -> Any:
    context = compiled.new_context(dict(variables))
    for _ in compiled.root_render_func(context):
        pass
    value = found(context.vars[_RESULT])
    if isinstance(value, Value):
        return value
    if isinstance(value, _Undefined):
        str(value)  # raises, with the name
    if isinstance(value, (Iterator, range)) or type(value) in (type({}.keys()), type({}.values()), type({}.items())):
        return list(value)
    return str(value) if isinstance(value, str) else value


def _text(compiled: Compiled, variables: Mapping[str, Any]) -> Any:
    """Return what a template gives: text, or a value where a secret is in it."""
    budget = BUDGET.get()
    pieces: list[str] = []
    for piece in compiled.generate(dict(variables)):
        budget.add(len(piece))
        pieces.append(piece)
    return found("".join(pieces))


@contextlib.contextmanager
def _placed(place: SourceLocation, block: bool, variables: Mapping[str, Any]) -> Iterator[None]:
    """Turn whatever a template raises inside into a problem at its place, with no secret in it."""
    token = BUDGET.set(Budget())
    try:
        yield
    except InvalidInput:
        raise
    except Exception as error:
        wrong = _explain(error, place, block, variables)
        clean = problem(wrong.code, wrong.detail, wrong.help, *wrong.places)
    else:
        return
    finally:
        BUDGET.reset(token)
    raise InvalidInput([clean])


def _explain(error: Exception, place: SourceLocation, block: bool, variables: Mapping[str, Any]) -> Problem:
    places = _places(error, place, block)
    if isinstance(error, Lost):
        return problem("SC0423", str(error), error.help, *places)
    if isinstance(error, Missing):
        return _undefined(error, variables, places)
    if isinstance(error, TemplateSyntaxError):
        return problem("SC0320", str(error.message), _cure(str(error.message)), *places)
    if isinstance(error, TooMuch):
        return problem("SC0323", str(error), "make it do less", *places)
    if isinstance(error, Refused):
        return problem("SC0322", error.detail, error.help, *places)
    if isinstance(error, SecurityError):
        return problem("SC0322", str(error), "templates only read: change values in a play in Python or Hy", *places)
    if isinstance(error, TemplateNotFound):
        detail = f"there is no template `{error.name}`"
        return problem("SC0301", detail, "put it beside the playbook or into templates/", *places)
    if isinstance(error, RecursionError):
        chain = _chain(error.__traceback__)
        if len(chain) > 1:
            return problem("SC0317", " → ".join(chain), "break the loop", *places[-1:])
        return problem("SC0323", "it calls itself too deeply", "break the loop", *places[-1:])
    return problem("SC0322", f"{type(error).__name__}: {cleaned(str(error))}", "check the values that it uses", *places)


def _undefined(error: Missing, variables: Mapping[str, Any], places: list[SourceLocation]) -> Problem:
    if error.owner is None:
        hint = suggest(str(error.name), sorted(variables), "there are") if error.name else ""
        return problem("SC0321", f"there is no variable `{error.name}`", hint, *places)
    if isinstance(error.owner, Mapping):
        hint = suggest(str(error.name), [str(key) for key in error.owner], "it has")
        return problem("SC0321", f"a map has no key `{error.name}`", hint, *places)
    what = "a list" if isinstance(error.owner, (list, tuple)) else f"a value ({type(error.owner).__name__})"
    return problem("SC0321", f"{what} has no `{error.name}`", "check what the name before it stands for", *places)


def _cure(message: str) -> str:
    environment = _environment()
    for kind, known in (("filter", environment.filters), ("test", environment.tests)):
        start = f"No {kind} named '"
        if message.startswith(start):
            return suggest(message[len(start) :].split("'")[0], sorted(known), "there are")
    if "expected token" in message or "unexpected" in message:
        return "check the expression; quote texts inside it"
    return "close every {% block %} with its {% end… %}"


def _places(error: Exception, place: SourceLocation, block: bool) -> list[SourceLocation]:
    """Return where in the template it happened, and who asked for the template."""
    if isinstance(error, TemplateSyntaxError):
        steps = [(error.filename, error.lineno)]
    else:
        steps = list(_steps(error.__traceback__))
    name, line = steps[-1] if steps else (None, 1)
    if name is not None:
        return [SourceLocation(name, line), place]
    return [SourceLocation(place.file, place.line + line)] if block else [place]


def _steps(trace: TracebackType | None) -> Iterator[tuple[str | None, int]]:
    while trace is not None:
        scope = trace.tb_frame.f_globals
        compiled = scope.get("__jinja_template__")
        if isinstance(compiled, Compiled):
            line = compiled.get_corresponding_lineno(trace.tb_lineno)
            yield (compiled.filename if compiled.filename != "<template>" else None), line
        elif "__jinja_exception__" in trace.tb_frame.f_globals:
            name = trace.tb_frame.f_code.co_filename
            yield (None if name.startswith("<") else name), trace.tb_lineno
        trace = trace.tb_next


def _chain(trace: TracebackType | None) -> list[str]:
    chain: list[str] = []
    for name, _ in _steps(trace):
        if name is None or (chain and chain[-1] == os.path.basename(name)):
            continue
        chain.append(os.path.basename(name))
        if chain.count(chain[-1]) > 1:
            break
    return chain
