"""Rendering by Jinja2: scalars and expressions of playbooks, and template files.

Every error names the source location in the template and the source location that uses the template.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from jinja2 import BaseLoader, TemplateError, TemplateNotFound, TemplateSyntaxError, nodes
from jinja2.environment import Template as Compiled
from jinja2.exceptions import SecurityError
from jinja2.meta import find_undeclared_variables
from jinja2.parser import Parser
from jinja2.runtime import Undefined as _Undefined

from statecfg.facts import view
from statecfg.facts.others import NamedHost
from statecfg.graph import host_text
from statecfg.graph.host_text import HostText
from statecfg.graph.opaque import Value, mask_secrets, resolve_tokens
from statecfg.problems import InvalidInput, Problem, clipped, inputs, problem
from statecfg.problems.positions import SourceLocation
from statecfg.problems.tokens import SecretError
from statecfg.templates import ansible, hints
from statecfg.templates.filters.limits import BUDGET, SIZE, Budget, Refused, TooMuch
from statecfg.templates.sandbox import UNREADABLE, Missing, Sandbox
from statecfg.templates.text import is_template

__all__ = ["UNREADABLE", "evaluate", "expression", "names", "render_file", "render_text"]

_RESULT = "result"


def evaluate(text: str, variables: Mapping[str, Any], location: SourceLocation, block: bool = False) -> Any:
    """Return the value of a scalar of a playbook that is a template. See `statecfg.templates.evaluate`."""
    with _explained_at(location, block, variables):
        compiled, native = _scalar(str(text))
        return _native(compiled, variables) if native else _text(compiled, variables)


def expression(text: str, variables: Mapping[str, Any], location: SourceLocation, block: bool = False) -> Any:
    """Return the value of an expression, such as `port > 80` or `{{ port > 80 }}`. For parameters see `evaluate`.

    :raises InvalidInput: the expression is wrong or fails
    """
    if is_template(text):
        return evaluate(text.strip(), variables, location, block)
    with _explained_at(location, block, variables):
        return _native(_expression(str(text)), variables)


def names(text: str, is_expression: bool = False) -> set[str]:
    """Return the names of the variables that a string reads; all its words if it is not a valid template.

    :param is_expression: whether the text is an expression without braces, as in `when:`
    """
    try:
        tree = _environment().parse(f"{{{{ {text} }}}}" if is_expression else text)
        return set(find_undeclared_variables(tree))
    except TemplateError:
        return set(re.findall(r"[A-Za-z_]\w*", text))


def render_text(text: str, variables: Mapping[str, Any], location: SourceLocation) -> str:
    """Return a rendered template with its secrets revealed.

    :param location: where the text starts
    :raises InvalidInput: the template is wrong or fails
    """
    with _explained_at(location, False, variables):
        return _as_text(_text(_template(str(text)), variables))


def _as_text(value: Any) -> str:
    return value.reveal() if isinstance(value, Value) else value if isinstance(value, HostText) else str(value)


def render_file(
    path: Path,
    variables: Mapping[str, Any],
    location: SourceLocation,
    base: Path | None = None,
    more: str = "",
    style: str = "",
) -> str:
    """Return a rendered template file with its secrets revealed.

    :param path: the file. Templates that it includes, imports or extends are in the same directory or in `templates/`
    :param variables: the variables that the template can use
    :param location: the source location in the playbook that uses the file
    :param base: the project's directory
    :param more: another directory to search for templates, before that of the project; "" for none
    :param style: `ansible` to render it as Ansible does; otherwise ""
    :raises InvalidInput: the template is wrong or fails; the problem has the line of the template and `location`
    """
    folders = [str(path.parent), *([more] if more else []), *([str(base / "templates")] if base else [])]
    places = _Places(tuple(folders), _roots(path, base, more))
    with _explained_at(location, False, variables):
        render = _of_ansible if style else _of_file
        text = render(path, places, variables)
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            detail = f"{path.name} produced a character that UTF-8 can't encode: {text[error.start]!r}"
            raise InvalidInput([problem("SC0322", detail, "", SourceLocation(str(path), 1), location)]) from None
        return text


class _Places(NamedTuple):
    """Where templates are.

    :param folders: the directories to search
    :param roots: the directories, without links, that contain all templates
    """

    folders: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()


def _roots(path: Path, base: Path | None, more: str) -> tuple[str, ...]:
    """Return the directories that templates can't leave: the project, the role, and that of a template elsewhere."""
    real = os.path.realpath(path)
    roots = [os.path.realpath(root) for root in (base, os.path.dirname(more)) if root]
    if not _inside(real, roots):
        roots += [os.path.dirname(real), os.path.realpath(path.parent)]
    return tuple(roots)


def _inside(real: str, roots: Iterable[str]) -> bool:
    return any(real.startswith(os.path.join(root, "")) for root in roots)


def _of_file(path: Path, places: _Places, variables: Mapping[str, Any]) -> str:
    return _as_text(_text(_environment(places).get_template(path.name), variables))


def _of_ansible(path: Path, places: _Places, variables: Mapping[str, Any]) -> str:
    source = _read(str(path))
    try:
        settings = ansible.settings(source)
    except Refused as wrong:
        raise InvalidInput([problem("SC0322", wrong.detail, wrong.help, SourceLocation(str(path), 1))]) from None
    template = _environment(places, ansible.STYLE, settings).get_template(path.name)
    return ansible.ended(_as_text(_text(template, variables)), source)


class _TemplateFiles(BaseLoader):
    """Loads templates from a few directories. A link in them can't lead to a file elsewhere.

    :param settings: the settings of Ansible's templates, whose first line may name them; None for other templates
    """

    def __init__(self, places: _Places, settings: Mapping[str, Any] | None) -> None:
        self.places, self.settings = places, settings

    def get_source(self, environment: Any, template: str) -> tuple[str, str, Callable[[], bool]]:
        parts = template.split("/")
        if not template or os.path.isabs(template) or ".." in parts or "\0" in template:
            raise Refused(f"template {template!r} is outside the project", "write its path relative to templates/")
        for folder in self.places.folders:
            path = os.path.join(folder, *parts)
            if os.path.isfile(path):
                real = os.path.realpath(path)
                if not _inside(real, self.places.roots):
                    raise Refused(f"template {template!r} is {real}, outside the project", "copy it into templates/")
                text = _read(path)
                inputs.note("template", path, text.encode())
                if self.settings is not None:
                    text = ansible.without_header(text, self.settings)
                return text, path, partial(_unchanged, path, _version(path))
        raise TemplateNotFound(template)


def _unchanged(path: str, version: tuple[int, ...] | None) -> bool:
    inputs.note("template", path)  # Jinja2 uses the template that it compiled earlier
    return _version(path) == version


def _version(path: str) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev


def _read(path: str) -> str:
    try:
        with open(path, "rb") as stream:
            data = stream.read(SIZE + 1)
    except OSError as error:
        raise InvalidInput(
            [problem("SC0301", f"{path}: {error.strerror}", "check the path", SourceLocation(path, 1))]
        ) from None
    if len(data) > SIZE:
        detail = f"{path} is larger than {SIZE >> 20} MB"
        raise InvalidInput([problem("SC0323", detail, "split the template", SourceLocation(path, 1))])
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        detail = f"at byte offset {error.start}: byte 0x{data[error.start]:02x}"
        raise InvalidInput([problem("SC0313", detail, "save the file as UTF-8", SourceLocation(path, line))]) from None


_NOWHERE = _Places()


@lru_cache(maxsize=64)
def _environment(places: _Places = _NOWHERE, style: str = "", settings: tuple[tuple[str, Any], ...] = ()) -> Sandbox:
    return Sandbox(_TemplateFiles(places, dict(settings) if style else None), style, dict(settings))


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
        token = parser.stream.current
        message = f"expected the end of the expression, got {token.value!r}"
        raise TemplateSyntaxError(message, token.lineno)
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
    value = resolve_tokens(context.vars[_RESULT])
    if isinstance(value, Value):
        return value
    if isinstance(value, _Undefined):
        str(value)  # raises `Missing` with the name
    if isinstance(value, (Iterator, range)) or type(value) in (type({}.keys()), type({}.values()), type({}.items())):
        value = list(value)
    if isinstance(value, str):  # a host stays a host in variables, as in `db: "{{ hosts.db1 }}"`
        return value if isinstance(value, (NamedHost, HostText)) else str(value)
    return view.plain(value)


def _text(compiled: Compiled, variables: Mapping[str, Any]) -> Any:
    """Return the output of a template: text, or a `Value` if it contains a secret."""
    budget = BUDGET.get()
    pieces: list[str] = []
    for piece in compiled.generate(dict(variables)):
        budget.add(len(piece))
        pieces.append(piece)
    text = "".join(pieces)
    return resolve_tokens(host_text.carried(text, pieces) if host_text.in_use() else text)


@contextlib.contextmanager
def _explained_at(location: SourceLocation, block: bool, variables: Mapping[str, Any]) -> Iterator[None]:
    """Replace any exception of a template in the block by InvalidInput, with source locations and without secrets."""
    token = BUDGET.set(Budget())
    try:
        yield
    except view.MissingFact as missing:
        missing.at(_locations(missing, location, block)[0])
        raise
    except view.WrongRead as wrong:
        raise wrong.located(*_locations(wrong, location, block)) from None
    except InvalidInput:
        raise
    except Exception as error:
        explained = _explain(error, location, block, variables)
        clean = problem(explained.code, explained.detail, explained.help, *explained.locations)
    else:
        return
    finally:
        BUDGET.reset(token)
    raise InvalidInput([clean])


def _explain(error: Exception, location: SourceLocation, block: bool, variables: Mapping[str, Any]) -> Problem:
    locations = _locations(error, location, block)
    if isinstance(error, SecretError):
        return problem(error.code, str(error), error.help, *locations)
    if isinstance(error, Missing):
        return hints.undefined(error, variables, locations)
    if isinstance(error, TemplateSyntaxError):
        return problem("SC0320", str(error.message), hints.syntax(str(error.message), _environment()), *locations)
    if isinstance(error, TooMuch):
        return problem("SC0323", str(error), "simplify the template, or compute the value in a play", *locations)
    if isinstance(error, MemoryError):
        return problem("SC0323", "the template needs too much memory", "simplify the template", *locations)
    if isinstance(error, Refused):
        return problem("SC0322", clipped(mask_secrets(error.detail), 1000), error.help, *locations)
    if isinstance(error, SecurityError):
        help = "templates can only read values; change values in a play in Python or Hy"
        return problem("SC0322", str(error), help, *locations)
    if isinstance(error, TemplateNotFound):
        detail = f"template `{error.name}` does not exist"
        return problem("SC0301", detail, "put it in the playbook's directory or in templates/", *locations)
    if isinstance(error, RecursionError):
        files = _chain(error.__traceback__)
        began = next(((name, line) for name, line in _steps(error.__traceback__) if name is not None), None)
        locations = [*([SourceLocation(*began)] if began else []), locations[-1]]
        if len(files) > 1:
            return problem("SC0317", " → ".join(files), "remove one of these includes", *locations)
        return problem("SC0323", "a macro calls itself too deeply", "end the recursion", *locations)
    detail = f"{type(error).__name__}: {mask_secrets(str(error))}"
    return problem("SC0322", detail, "check the values that the template uses", *locations)


def _locations(error: Exception, location: SourceLocation, block: bool) -> list[SourceLocation]:
    """Return the position of the error in the template, and the source location that uses the template."""
    if isinstance(error, TemplateSyntaxError):
        steps = [(error.filename, error.lineno)]
    else:
        steps = list(_steps(error.__traceback__))
    name, line = steps[-1] if steps else (None, 1)
    if name is not None:
        return [SourceLocation(name, line), location]
    return [SourceLocation(location.file, location.line + line)] if block else [location]


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
    files: list[str] = []
    for name, _ in _steps(trace):
        if name is None or (files and files[-1] == os.path.basename(name)):
            continue
        files.append(os.path.basename(name))
        if files.count(files[-1]) > 1:
            break
    return files
