"""The house: which floor imports which, what the half that travels to hosts may use, and where each library lives."""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import statecfg

ROOT = Path(statecfg.__file__).parent
# Module or package → floor. A file imports only from its own floor and lower ones.
FLOORS = {
    "remote": 0,
    "resources": 1,
    "": 2,  # the package itself: names of others, imported when first used
    "positions": 2,
    "problems": 2,
    "graph": 2,
    "durations": 2,
    "waited": 2,
    "lookalikes": 2,
    "strict": 2,
    "host_patterns": 2,
    "inputs": 2,
    "inventory": 2,
    "types": 2,
    "validators": 2,
    "schema": 2,
    "tokens": 2,
    "opaque": 2,
    "secrets": 2,
    "kinds": 3,
    "declare": 3,
    "plays": 3,
    "service_options": 3,
    "services": 3,
    "dialects": 3,
    "templates": 3,
    "claims": 4,
    "contradictions": 4,
    "context": 4,
    "compile": 4,
    "bundle": 4,
    "transport": 4,
    "project": 4,
    "store": 4,
    "hooks": 4,
    "units": 4,
    "conversation": 5,
    "frames": 5,
    "new_login": 5,
    "outbox": 5,
    "outgoing": 5,
    "listening": 5,
    "testimony": 5,
    "fleet": 5,
    "prepare": 5,
    "project_inputs": 5,
    "saved": 5,
    "entities": 6,
    "views": 6,
    "cli": 7,
    "server": 7,
    "__main__": 7,
}
# Library → the only modules that import it.
HOMES = {
    "paramiko": r"transport/ssh(_\w+)?\.py",
    "hy": r"dialects/hy_source\.py",
    "yaml": r"dialects/yaml_text\.py",
    "jinja2": r"templates/.*\.py",
    "click": r"cli/.*\.py",
    "rich": r"views/.*\.py",
    "toposort": r"graph\.py",
    "httpx": r"(hooks/exchange|entities/webhook)\.py",
    "jsonschema": r"entities/schemas\.py",
    "starlette": r"server/.*\.py",
    "uvicorn": r"server/.*\.py",
    "sqlalchemy": r"store/.*\.py",
}
FILES = sorted(path for path in ROOT.rglob("*.py")) + sorted((ROOT / "resources").glob("*.py"))
FILES = sorted({path.resolve(): path for path in FILES}.values())


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def is_type_checking(node: ast.AST) -> bool:
    test = node.test if isinstance(node, ast.If) else None
    names = [item.id for item in ast.walk(test) if isinstance(item, ast.Name)] if test is not None else []
    return names == ["TYPE_CHECKING"]


def run_time(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a tree that run, leaving out what stands under `if TYPE_CHECKING`."""
    yield node
    for field, value in ast.iter_fields(node):
        if field == "body" and is_type_checking(node):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from run_time(child)


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def imports(path: Path) -> tuple[tuple[str, int], ...]:
    """Return the full name of every module that a file imports when it runs, and the line."""
    return tuple(imported(path))


def imported(path: Path) -> Iterator[tuple[str, int]]:
    for node in run_time(parsed(path)):
        if isinstance(node, ast.Import):
            yield from ((item.name, node.lineno) for item in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = absolute(path, node)
            if module == "statecfg":
                yield from ((f"statecfg.{item.name}", node.lineno) for item in node.names)
            else:
                yield module, node.lineno


def absolute(path: Path, node: ast.ImportFrom) -> str:
    """Return the full name of the module that `from … import` names in a file."""
    if not node.level:
        return node.module or ""
    package = ("statecfg", *path.relative_to(ROOT).parent.parts)
    return ".".join((*package[: len(package) - node.level + 1], *filter(None, [node.module])))


def part(module: str) -> str:
    """Return the key of FLOORS for a module of ours: its first name below statecfg."""
    below = module.split(".")[1:]
    return below[0] if below and below[0] in FLOORS else ""


def part_of(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=shown)
def test_a_file_imports_only_from_its_floor_and_lower_ones(path: Path) -> None:
    assert part_of(path) in FLOORS, f"{shown(path)} has no floor yet: give it one"
    floor = FLOORS[part_of(path)]
    above = [
        f"{shown(path)}:{line} (floor {floor}) imports {module} (floor {FLOORS[part(module)]})"
        for module, line in imports(path)
        if module.partition(".")[0] == "statecfg" and FLOORS[part(module)] > floor
    ]
    assert not above


def test_every_floor_is_that_of_something() -> None:
    assert set(FLOORS) == {part_of(path) for path in FILES}


@pytest.mark.parametrize("path", [path for path in FILES if FLOORS.get(part_of(path), 9) <= 1], ids=shown)
def test_what_travels_to_hosts_uses_the_standard_library_alone(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 8))
    for module, line in imports(path):
        top = module.partition(".")[0]
        assert top == "statecfg" or top in sys.stdlib_module_names, f"{shown(path)}:{line} imports {module}"
        # Slow to import on a host, and nothing there needs them; `values` is what annotations of types are made of.
        heavy = top in ("dataclasses", "logging", "inspect") or (top == "typing" and path.name != "values.py")
        assert not heavy, f"{shown(path)}:{line} imports {module}"


@pytest.mark.parametrize("library", HOMES)
def test_a_library_has_one_home(library: str) -> None:
    users = {shown(path) for path in FILES for module, _ in imports(path) if module.partition(".")[0] == library}
    assert users, f"nothing imports {library}"
    assert {user for user in users if not re.fullmatch(HOMES[library], user)} == set()


def calls(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node.lineno


@pytest.mark.parametrize("path", FILES, ids=shown)
def test_only_the_command_line_leaves_and_only_views_print(path: Path) -> None:
    # Programs that hosts start by themselves end by exit status: the executor's start, and scripts that ops run.
    host_program = part_of(path) in ("remote", "resources")
    for name, line in calls(path):
        if name in ("sys.exit", "exit", "quit", "os._exit") and not host_program:
            assert part_of(path) in ("cli", "__main__"), f"{shown(path)}:{line} calls {name}"
        if name == "print":
            assert part_of(path) == "views", f"{shown(path)}:{line} prints"


def test_nothing_is_swallowed() -> None:
    for path in FILES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ExceptHandler) and [type(item) for item in node.body] == [ast.Pass]:
                caught = ast.unparse(node.type) if node.type is not None else "everything"
                assert caught not in ("everything", "Exception", "BaseException"), f"{shown(path)}:{node.lineno}"


def test_no_shell_and_no_pickle() -> None:
    for path in FILES:
        for module, line in imports(path):
            # Bytecode is marshalled: what the host itself compiled, the executor (checked by digest) and its tools.
            allowed = module == "marshal" and shown(path) in ("remote/bootstrap.py", "remote/tool_files.py")
            assert allowed or module.partition(".")[0] not in ("pickle", "marshal", "shelve"), f"{shown(path)}:{line}"
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.keyword) and node.arg == "shell":
                assert ast.unparse(node.value) != "True", f"{shown(path)}:{node.value.lineno}"


def test_no_import_cycles() -> None:
    """At import time, that is; a function may import a neighbour when it runs."""
    import graphlib

    edges: dict[str, set[str]] = {}
    names = {module_name(path) for path in FILES}
    for path in FILES:
        found = edges.setdefault(module_name(path), set())
        for node in top_level(parsed(path)):
            modules = [item.name for item in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                source = absolute(path, node)
                modules = [f"{source}.{item.name}" for item in node.names]
                modules = [module if module in names else source for module in modules]
            found.update(module for module in modules if module in names and module != module_name(path))
    graphlib.TopologicalSorter(edges).prepare()


def module_name(path: Path) -> str:
    parts = ("statecfg", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def top_level(node: ast.AST) -> Iterator[ast.AST]:
    for child in run_time(node):
        if isinstance(child, ast.Import | ast.ImportFrom) and child.col_offset == 0:
            yield child


def test_files_are_short() -> None:
    sizes = sorted(len(path.read_text().splitlines()) for path in FILES)
    assert sizes[len(sizes) // 2] <= 150
    assert [shown(path) for path in FILES if len(path.read_text().splitlines()) > 500] == []
