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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from statecfg.problems import suggest

FOLDER = "behaviors"
LARGEST = 1 << 20  # bytes of a result as JSON
_ID = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)\Z", re.ASCII)
Json = dict[str, Any]


@dataclass(frozen=True)
class Context:
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
    _update: Callable[[Json], None] = field(repr=False)

    def update(self, progress: int | None = None, text: str | None = None) -> None:
        """Report progress to the task.

        :param progress: percent, 0 to 100
        :param text: the new `details` of the task
        :raises ValueError: `progress` is out of range
        """
        if progress is not None and not 0 <= progress <= 100:
            raise ValueError(f"progress is a number from 0 to 100, not {progress!r}")
        news: Json = {} if progress is None else {"progress": int(progress)}
        self._update(news if text is None else {**news, "details": str(text)})


def wrong(id: Any, root: Path | None) -> str:
    """Return the problem with a function's `id`, "" if there is none.

    :param root: the project's directory, which must contain the function; None: don't check that
    """
    found = _ID.match(id) if isinstance(id, str) else None
    if found is None:
        return f"the id of a Function is MODULE:FUNCTION, such as sites:create, not {id!r}"
    if root is None:
        return ""
    path = file_of(root, found[1])
    if not is_there(path):
        modules = sorted(each.stem for each in (root / FOLDER).glob("*.py"))
        return f"there is no {path.relative_to(root)}; {suggest(found[1], modules, 'there are') or 'write one'}"
    if _writable(path):
        return f"{path.relative_to(root)} or its directory can be written by everybody, so it is not run: chmod o-w"
    try:
        names = _names(ast.parse(path.read_bytes()))
    except (SyntaxError, ValueError) as error:
        return f"{path.relative_to(root)}: {error}"
    if found[2] in names:
        return ""
    there = suggest(found[2], names, "it has") or "it defines none"
    return f"{path.relative_to(root)} defines no function {found[2]}; {there}"


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
    return any(each.stat().st_mode & stat.S_IWOTH for each in (path, path.parent))


def _names(tree: ast.Module) -> list[str]:
    found = [each.name for each in tree.body if isinstance(each, ast.FunctionDef)]
    for each in tree.body:
        if isinstance(each, ast.Import | ast.ImportFrom):
            found += [item.asname or item.name for item in each.names]
        elif isinstance(each, ast.Assign):
            found += [target.id for target in each.targets if isinstance(target, ast.Name)]
    return [name for name in found if not name.startswith("_")]


def call(request: Json, update: Callable[[Json], None]) -> Json:
    """Call the function that a request names; return {"ok", "result" or "error", "where"}.

    It raises nothing: an error in the user's code becomes the answer.
    """
    root = Path(request["root"])
    problem = wrong(request["id"], root)
    if problem:
        return {"ok": False, "error": problem}
    module, name = request["id"].split(":")
    sys.path.insert(0, str(root / FOLDER))
    context = Context(**request["context"], _update=update)
    try:
        function = getattr(_loaded(file_of(root, module), module), name)
        result = function(request["entity"], request["arguments"], context)
    except (Exception, SystemExit) as error:
        said = f"it leaves the program (exit status {error.code!r})" if isinstance(error, SystemExit) else str(error)
        return {"ok": False, "error": said or type(error).__name__, "where": _where(error, root)}
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
    own = [each for each in traceback.extract_tb(error.__traceback__) if each.filename.startswith(f"{root}/")]
    lines = [f"at {Path(each.filename).relative_to(root)}:{each.lineno} in {each.name}" for each in own]
    if isinstance(error, SyntaxError) and error.filename:
        lines.append(f"at {error.filename.removeprefix(f'{root}/')}:{error.lineno}")
    return "\n".join([type(error).__name__, *lines])
