"""The source files of statecfg as trees, for the tests of the architecture."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import statecfg

ROOT = Path(statecfg.__file__).parent
# The rooms, from the lowest floor to the highest. Each room is on a separate floor and imports only from lower floors.
ROOMS = (
    "remote.graph",
    "remote.machine",
    "remote.wire",
    "remote.ledger",
    "remote.hooks",
    "remote.run",
    "remote.units",
    "remote.facts",
    "remote",
    "resources.shared",
    "resources.files",
    "resources.text",
    "resources.services",
    "resources.programs",
    "resources.packages",
    "resources.containers",
    "resources.storage",
    "resources.system",
    "resources.databases",
    "resources.network",
    "resources.tls",
    "resources.ssh",
    "resources.accounts",
    "resources",
    "problems",
    "graph",
    "facts",
    "templates.filters",
    "templates",
    "playbook",
    "dialects",
    "editors",
    "transport",
    "engines",
    "unit_rules",
    "store",
    "run",
    "testing",
    "units",
    "hooks",
    "entities",
    "views",
    "server",
    "cli",
    "__main__",
)
FLOORS = {room: floor for floor, room in enumerate(ROOMS)}
# The packages inside a room. They are on the floor of their room.
SUB_PACKAGES = (
    "remote.units.tools",
    "resources.files.downloads",
    "resources.packages.languages",
    "resources.packages.managers",
    "resources.packages.managers.apt",
    "resources.packages.managers.dnf",
    "resources.packages.managers.pacman",
    "resources.packages.managers.rpm",
    "resources.packages.managers.zypper",
    "resources.packages.repositories",
    "resources.databases.mariadb",
    "resources.databases.postgresql",
    "resources.databases.redis",
    "resources.index",
    "dialects.inventories",
    "store.entities",
    "store.hooks",
    "store.units",
    "run.host",
    "run.saved",
    "hooks.exec",
    "hooks.http",
    "hooks.registration",
    "cli.entity",
    "cli.hook",
)
# Directories of packages with files that the code reads as data. They contain no modules.
DATA = ("hooks.shipped", "server.static")
# The package `statecfg` contains only a table of names. An import of a name is an import of its module in the table.
TABLE = statecfg._HOMES
FILES = sorted(path for path in ROOT.rglob("*.py")) + sorted((ROOT / "resources").rglob("*.py"))
FILES = sorted({path.resolve(): path for path in FILES}.values())

IMPORTS = (ast.Import, ast.ImportFrom, ast.Call)  # the nodes that may import a module
# Type of nodes → its fields that may contain nodes. A context is `Load` or `Store`.
PLAIN = {"ctx", "id", "attr", "kind", "type_comment", "level", "module"}
CHILDREN = {
    found: [field for field in found._fields if field not in PLAIN]
    for found in vars(ast).values()
    if isinstance(found, type) and issubclass(found, ast.AST)
}
Node = TypeVar("Node", bound=ast.AST)


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def is_type_checking(node: ast.AST) -> bool:
    test = node.test if isinstance(node, ast.If) else None
    names = [item.id for item in ast.walk(test) if isinstance(item, ast.Name)] if test is not None else []
    return names == ["TYPE_CHECKING"]


def run_time(nodes: Sequence[ast.AST]) -> Sequence[ast.AST]:
    """Return the nodes of a tree without those under `if TYPE_CHECKING`."""
    only_types = {
        id(node)
        for check in nodes
        if isinstance(check, ast.If) and is_type_checking(check)
        for statement in check.body
        for node in walk(statement)
    }
    return [node for node in nodes if id(node) not in only_types] if only_types else nodes


def walk(tree: ast.AST) -> list[ast.AST]:
    """Return all nodes of a tree except contexts, as `ast.walk` does, which takes several times as long."""
    found = [tree]
    for node in found:
        for field in CHILDREN[type(node)]:
            value = getattr(node, field)
            if isinstance(value, list):
                found += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
    return found


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def by_type(path: Path) -> Mapping[type[ast.AST], Sequence[ast.AST]]:
    """Return all nodes of a file's tree by their type."""
    found: dict[type[ast.AST], list[ast.AST]] = {}
    for node in walk(parsed(path)):
        found.setdefault(type(node), []).append(node)
    return found


def nodes(path: Path, *types: type[Node]) -> list[Node]:
    """Return the nodes of these types in a file's tree."""
    found = by_type(path)
    return [node for one in types for node in found.get(one, ())]  # type: ignore[misc]  # they have this type


@functools.cache
def imports(path: Path) -> tuple[tuple[str, int], ...]:
    """Return the full name and the line of each module that a file imports at run time."""
    return tuple(imported(path, run_time(nodes(path, ast.If, *IMPORTS))))


@functools.cache
def all_imports(path: Path) -> tuple[tuple[str, int], ...]:
    """Return the same, including the imports under `if TYPE_CHECKING`."""
    return tuple(imported(path, nodes(path, *IMPORTS)))


def imported(path: Path, nodes: Iterable[ast.AST]) -> Iterator[tuple[str, int]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((item.name, node.lineno) for item in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = absolute(path, node)
            for item in node.names:
                whole = f"{module}.{item.name}"
                home = TABLE.get(item.name, "") if module == "statecfg" else ""
                yield home or (whole if whole in MODULES else module), node.lineno
        elif isinstance(node, ast.Call) and dotted(node.func).endswith("import_module"):
            yield named(node.args[0]), node.lineno


def looked_up(path: Path) -> Iterator[tuple[str, int]]:
    """Yield each loaded module that a file uses without an import, and the line; "" for a name that it computes."""
    for node in nodes(path, ast.Subscript, ast.Call, ast.Attribute):
        if isinstance(node, ast.Subscript) and dotted(node.value).endswith("sys.modules"):
            if dotted(node.slice) != "__name__":
                yield named(node.slice), node.lineno
        elif isinstance(node, ast.Call) and dotted(node.func).endswith(("sys.modules.get", "sys.modules.pop")):
            yield named(node.args[0]), node.lineno
        elif isinstance(node, ast.Call) and dotted(node.func) == "getattr" and dotted(node.args[0]) == "statecfg":
            yield "statecfg", node.lineno
        elif isinstance(node, ast.Call) and dotted(node.func).endswith("import_module"):
            if named(node.args[0]) == "statecfg":
                yield "statecfg", node.lineno
        elif isinstance(node, ast.Attribute) and dotted(node.value) == "statecfg" and node.attr in TABLE:
            yield TABLE[node.attr], node.lineno


def registered(path: Path) -> set[str]:
    """Return the names of the functions that a file registers for lower floors, in `remote.graph.above`."""
    stored = (node for node in nodes(path, ast.Attribute) if isinstance(node.ctx, ast.Store))
    return {node.attr for node in stored if dotted(node.value) in ("above", "_above")}


def dotted(node: ast.expr) -> str:
    """Return a dotted name such as `sys.exit`, or "" for any other expression."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def named(argument: ast.expr) -> str:
    """Return the constant start of the argument of `import_module`, or "" if the code does not contain it."""
    if isinstance(argument, ast.JoinedStr):
        argument = argument.values[0]
    return str(argument.value).rstrip(".") if isinstance(argument, ast.Constant) else ""


def absolute(path: Path, node: ast.ImportFrom) -> str:
    """Return the full name of the module in a `from … import` of a file."""
    if not node.level:
        return node.module or ""
    package = ("statecfg", *path.relative_to(ROOT).parent.parts)
    return ".".join((*package[: len(package) - node.level + 1], *filter(None, [node.module])))


def part(module: str) -> str:
    """Return the room of a module of statecfg, or "" for the package itself."""
    below = module.split(".")[1:]
    within = ".".join(below[:2])
    return within if within in FLOORS else below[0] if below else ""


def part_of(path: Path) -> str:
    return part(module_name(path))


def module_name(path: Path) -> str:
    parts = ("statecfg", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path) for path in FILES}
SOURCES = [path for path in FILES if part_of(path)]
TRAVELS = [path for path in FILES if FLOORS.get(part_of(path), 99) <= FLOORS["resources"]]
