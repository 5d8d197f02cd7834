"""Behaviors that are functions of a project.

The id is `MODULE:FUNCTION`: a `def FUNCTION(entity, arguments, context)` in the directory behaviors/.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import stat
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

from statecfg.problems import suggest
from statecfg.problems.frozen import dataclass
from statecfg.problems.python_source import parse

if TYPE_CHECKING:
    from statecfg.entities.invocation import Update

FOLDER = "behaviors"
LARGEST = 1 << 20  # bytes of a result as JSON
_ID = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)\Z", re.ASCII)


class FunctionRequest(TypedDict):
    """A request to call a function.

    `root`: the project's directory. `id`: MODULE:FUNCTION. `context`: the fields of a `FunctionContext` but `_update`.
    """

    do: Literal["function"]
    root: str
    id: str
    entity: Mapping[str, Any]
    arguments: Mapping[str, Any]
    context: Mapping[str, Any]


class FunctionResult(TypedDict):
    """What a function returned, or its error and the lines of the project that led to it."""

    ok: bool
    result: NotRequired[Any]
    error: NotRequired[str]
    where: NotRequired[str]


@dataclass(frozen=True)
class FunctionContext:
    """The input of a function besides the entity's content and the arguments.

    :param entity_id: the entity's URN
    :param entity_name: its name
    :param type_id: the URN of its type
    :param hook: "PostCreate", "PostUpdate", "PreDelete" or "PostDelete"; "" if a user invoked it
    :param user: name of the user whose request caused it
    :param task_id: URN of the task that shows the invocation
    :param invocation_id: the same for all attempts of one invocation
    :param metadata: given by the user besides the arguments
    :param properties: the behavior's `execution_properties`, including `_secure_*` and `_internal_*`
    :param token: for API calls on behalf of the user, valid until the function returns; None without `actAsToken`
    """

    entity_id: str
    entity_name: str
    type_id: str
    hook: str
    user: str
    task_id: str
    invocation_id: str
    metadata: Mapping[str, Any]
    properties: Mapping[str, Any] = field(repr=False)
    token: str | None = field(repr=False)
    _update: Callable[[Update], None] = field(repr=False)

    def update(self, progress: int | None = None, text: str | None = None) -> None:
        """Report progress to the task.

        :param progress: percent, 0 to 100
        :param text: the new `details` of the task
        :raises ValueError: `progress` is out of range
        """
        if progress is not None and not 0 <= progress <= 100:
            raise ValueError(f"progress is a number from 0 to 100, not {progress!r}")
        news: Update = {} if progress is None else {"progress": int(progress)}
        self._update(news if text is None else {**news, "details": str(text)})


def problem(id: Any, root: Path | None) -> str:
    """Return the problem with a function's `id`, "" if there is none.

    :param root: the project's directory, which must contain the function; None: don't check that
    """
    match = _ID.match(id) if isinstance(id, str) else None
    if match is None:
        return f"the id of a Function is MODULE:FUNCTION, such as sites:create, not {id!r}"
    if root is None:
        return ""
    module, name = match[1], match[2]
    path = file_of(root, module)
    if not is_there(path):
        modules = sorted(file.stem for file in (root / FOLDER).glob("*.py"))
        return f"{path.relative_to(root)} does not exist; {suggest(module, modules, 'available') or 'write one'}"
    if _writable(path):
        return f"{path.relative_to(root)} or its directory can be written by all users, so it is not run: chmod o-w"
    try:
        names = _names(parse(path.read_bytes()))
    except (SyntaxError, ValueError) as error:
        return f"{path.relative_to(root)}: {error}"
    if name in names:
        return ""
    hint = suggest(name, names, "it has") or "it defines none"
    return f"{path.relative_to(root)} does not define a function {name}; {hint}"


def file_of(root: Path, module: str) -> Path:
    """Return the path of a module."""
    return root.joinpath(FOLDER, *module.split(".")).with_suffix(".py")


def is_there(path: Path) -> bool:
    """Return whether the file exists; False also for a name that is too long for the file system."""
    try:
        return path.is_file()
    except OSError:
        return False


def _writable(path: Path) -> bool:
    return any(item.stat().st_mode & stat.S_IWOTH for item in (path, path.parent))


def _names(tree: ast.Module) -> list[str]:
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names += [item.asname or item.name for item in node.names]
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [name for name in names if not name.startswith("_")]


def call(request: FunctionRequest, update: Callable[[Update], None]) -> FunctionResult:
    """Call the function that a request names; return its answer.

    It raises nothing: an error in the user's code becomes the answer.
    """
    root = Path(request["root"])
    wrong = problem(request["id"], root)
    if wrong:
        return {"ok": False, "error": wrong}
    module, name = request["id"].split(":")
    sys.path.insert(0, str(root / FOLDER))
    context = FunctionContext(**request["context"], _update=update)
    try:
        function = getattr(_loaded(file_of(root, module), module), name)
        result = function(request["entity"], request["arguments"], context)
    except (Exception, SystemExit) as error:
        text = f"it exits the program (exit status {error.code!r})" if isinstance(error, SystemExit) else str(error)
        return {"ok": False, "error": text or type(error).__name__, "where": _where(error, root)}
    try:
        text = json.dumps(result, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        return {"ok": False, "error": f"{request['id']} returned something that is not JSON: {error}"}
    if len(text) > LARGEST:
        return {"ok": False, "error": f"{request['id']} returned {len(text)} bytes; at most {LARGEST} are kept"}
    return {"ok": True, "result": result}


def _loaded(path: Path, module: str) -> Any:
    specification = importlib.util.spec_from_file_location(module, path)
    assert specification is not None and specification.loader is not None
    loaded = importlib.util.module_from_spec(specification)
    sys.modules[module] = loaded
    specification.loader.exec_module(loaded)
    return loaded


def _where(error: BaseException, root: Path) -> str:
    """Return the kind of an error and the lines of the project's own code that led to it."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(f"{root}/")]
    lines = [f"at {Path(frame.filename).relative_to(root)}:{frame.lineno} in {frame.name}" for frame in own]
    if isinstance(error, SyntaxError) and error.filename:
        lines.append(f"at {error.filename.removeprefix(f'{root}/')}:{error.lineno}")
    return "\n".join([type(error).__name__, *lines])
