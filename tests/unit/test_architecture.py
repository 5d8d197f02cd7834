"""The architecture: imports between floors, imports of the code that runs on hosts, and users of each library."""

from __future__ import annotations

import ast
import gc
import graphlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from statecfg.remote.graph import names
from statecfg.remote.graph.above import Above
from statecfg.run import bundle
from tests import ROOT as CHECKOUT
from tests.each import each
from tests.unit.literals import USES, literals, parameters
from tests.unit.sources import (
    FILES,
    FLOORS,
    MODULES,
    ROOT,
    SOURCES,
    TRAVELS,
    absolute,
    all_imports,
    by_type,
    dotted,
    imports,
    looked_up,
    module_name,
    nodes,
    parsed,
    part,
    part_of,
    registered,
    run_time,
    shown,
    walk,
)

# Library → the only modules that import it.
HOMES = {
    "paramiko": r"transport/ssh(_\w+)?\.py",
    "hy": r"dialects/hy_source\.py",
    "yaml": r"(dialects/(yaml_\w+|inventories/foreign_yaml)|templates/filters/data|playbook/secret_sources)\.py",
    "pytest": r"testing/plugin\.py",
    "regex": r"templates/filters/patterns\.py",
    "passlib": r"templates/filters/passwords\.py",
    "jinja2": r"templates/.*\.py",
    "click": r"cli/.*\.py",
    "rich": r"views/.*\.py",
    "toposort": r"graph/(layers|depths)\.py",
    "httpx": r"(hooks/http/exchange|entities/webhook)\.py",
    "jsonschema": r"entities/schemas\.py",
    "starlette": r"server/.*\.py",
    "cryptography": r"(playbook/ansible_vault|engines/tls)\.py",
    "dask": r"engines/dask\.py",
    "distributed": r"engines/dask\.py",
    "uvicorn": r"server/.*\.py",
    "ansible": r"playbook/ansible_modules\.py",
    "sqlalchemy": r"store/.*\.py",
}
# Files that import modules whose names they compute. The test of floors can't follow these imports.
COMPUTED = {
    "__init__.py": "the public names load their modules on first use",
    "dialects/host_source.py": "finds the directory of a user's package",
    "dialects/node_types.py": "loads the module of the node type with a name",
    "playbook/user_code.py": "looks at what a user's code could not import",
    "remote/facts/__init__.py": "each fact loads its own module of this room",
    "remote/graph/sha256.py": "a module of Python, whose name depends on its version",
    "remote/run/management.py": "loads the node types of orphans, which the controller sends by name",
    "remote/run/own_account.py": "the module that judges whether the login of the run stays possible",
    "remote/session.py": "loads the node types of the run, which the controller sends by name",
    "resources/__init__.py": "finds a package in itself by its name",
    "resources/index/modules.py": "finds the modules of node types by the names of the types",
    "transport/__init__.py": "each transport loads its own module of this room",
}
FOREIGN = {"store/marks.py", "remote/units/context.py"}  # tasks of entities, and units of juju, have other statuses


@pytest.fixture(scope="module", autouse=True)
def _trees() -> Iterator[None]:
    """Keep the trees of all files only during these tests, and out of the garbage collector: they have no cycles."""
    gc.disable()
    yield
    parsed.cache_clear()
    by_type.cache_clear()
    gc.enable()


def test_every_file_is_in_a_room_with_a_floor() -> None:
    assert [shown(path) for path in SOURCES if part_of(path) not in FLOORS] == []


def test_a_file_imports_only_from_its_floor_and_lower_ones() -> None:
    """Imports in functions, imports under `if TYPE_CHECKING` and calls of `import_module` count too."""
    above = [
        f"{shown(path)}:{line} ({part_of(path)}) imports {module}, which is on a higher floor"
        for path in SOURCES
        for module, line in all_imports(path)
        if module.partition(".")[0] == "statecfg" and part(module) and FLOORS[part(module)] > FLOORS[part_of(path)]
    ]
    assert not above


def test_a_file_looks_up_nothing_on_a_higher_floor() -> None:
    """A look-up in `sys.modules`, or in the table of `statecfg`, is an import that the other tests can't see.

    The package `statecfg` itself is above all floors. The code for hosts does not import it as a whole either, and
    computes no name of a module that it looks up. `user_code` reads the signature of a public function that a user's
    code called, for an error message.
    """
    above = [
        f"{shown(path)}:{line} ({part_of(path)}) looks up {module or 'a module whose name it computes'}"
        for path in SOURCES
        if shown(path) != "playbook/user_code.py"
        for module, line in looked_up(path)
        if module == "statecfg"
        or (not module and path in TRAVELS)
        or (module.startswith("statecfg.") and FLOORS[part(module)] > FLOORS[part_of(path)])
    ]
    assert not above
    assert [shown(path) for path in TRAVELS for module, _ in all_imports(path) if module == "statecfg"] == []


@each(
    ("code", "found"),
    [
        ("getattr(sys.modules['statecfg'], name)", "statecfg"),
        ("_sys.modules['statecfg.graph.declare'].declare", "statecfg.graph.declare"),
        ("sys.modules.get(name)", ""),
        ("getattr(statecfg, name)", "statecfg"),
        ("getattr(import_module('statecfg'), name)", "statecfg"),
        ("statecfg.merge_graphs(*graphs)", "statecfg.graph.graph"),
        ("statecfg.__file__, sys.modules[__name__], 'hashlib' in sys.modules", None),
    ],
)
def test_looked_up_finds_modules_that_are_not_imported(code: str, found: str | None, tmp_path: Path) -> None:
    path = tmp_path / "code.py"
    path.write_text(code)
    assert [module for module, _ in looked_up(path)] == ([] if found is None else [found])


def test_higher_floors_register_what_lower_ones_call() -> None:
    """`import statecfg` registers all of it on the controller. A host has only the machine, which registers itself."""
    registering = {shown(path): registered(path) for path in FILES if registered(path)}
    assert registering == {
        "__init__.py": {*Above.__annotations__, "renamed"},
        "remote/machine/real.py": {"this_machine"},
    }


def test_only_a_few_explained_imports_have_computed_names() -> None:
    assert {shown(path) for path in FILES if any(not module for module, _ in all_imports(path))} == set(COMPUTED)


def test_modules_do_not_import_each_other_in_a_cycle() -> None:
    """Imports in functions and under `if TYPE_CHECKING` count too, also inside a room."""
    graph = {
        module_name(path): {home(module) for module, _ in all_imports(path)} - {module_name(path)} for path in FILES
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        raise AssertionError(" → ".join(error.args[1])) from None


def home(module: str) -> str:
    """Return the module of statecfg that an imported name belongs to; "" for a name of the package, or of others."""
    while module and module not in MODULES:
        module = module.rpartition(".")[0]
    return "" if module == "statecfg" else module


def test_only_the_package_and_its_command_are_outside_rooms() -> None:
    assert sorted(path.name for path in ROOT.glob("*.py")) == ["__init__.py", "__main__.py"]


def test_every_room_has_files() -> None:
    assert set(FLOORS) == {part_of(path) for path in SOURCES}


@each("library", HOMES)
def test_each_library_is_imported_only_by_its_home_modules(library: str) -> None:
    users = {shown(path) for path in FILES for module, _ in imports(path) if module.partition(".")[0] == library}
    assert users, f"nothing imports {library}"
    assert {user for user in users if not re.fullmatch(HOMES[library], user)} == set()


PACKAGE_PROGRAMS = re.compile(
    r"(?<![\w.-])(apt|apt-cache|apt-get|apt-mark|dnf|dpkg|dpkg-(deb|divert|query)|pacman|rpm|vercmp|zypper)(?![\w.-])"
)
# Only systems with dpkg have diversions, whatever installs their packages. `package_manager` and `package_steps` have
# the names of all managers. The fact about packages reads the databases without a node type.
PACKAGE_MANAGERS = {
    "remote/facts/installed.py",
    "resources/packages/managers/apt/apt.py",
    "resources/packages/repositories/apt_lists.py",
    "resources/packages/repositories/apt_pins.py",
    "resources/packages/repositories/apt_sources.py",
    "resources/system/diversions.py",
    "resources/packages/managers/dnf/dnf.py",
    "resources/packages/dnf_groups.py",
    "resources/packages/repositories/dnf_lists.py",
    "resources/packages/dnf_modules.py",
    "resources/packages/dnf_profiles.py",
    "resources/packages/managers/dnf/dnf_program.py",
    "resources/packages/managers/dnf/dnf_upgrade.py",
    "resources/packages/managers/apt/dpkg.py",
    "resources/packages/package_manager.py",
    "resources/packages/package_steps.py",
    "resources/packages/managers/pacman/pacman.py",
    "resources/packages/managers/pacman/pacman_database.py",
    "resources/packages/repositories/pacman_repositories.py",
    "resources/packages/managers/pacman/pacman_steps.py",
    "resources/packages/managers/pacman/pacman_upgrade.py",
    "resources/packages/managers/rpm/rpm.py",
    "resources/packages/managers/zypper/zypper.py",
    "resources/packages/repositories/zypper_lists.py",
    "resources/packages/managers/zypper/zypper_program.py",
}


def arguments(path: Path) -> Iterator[tuple[str, int]]:
    """Yield each text in a list or tuple, where argument lists and scripts are; in Hy, each text in brackets."""
    if path.suffix == ".hy":
        for number, line in enumerate(path.read_text().splitlines(), 1):
            yield from ((text, number) for text in re.findall(r"\[([^]]*)", line))
    for node in nodes(path, ast.List, ast.Tuple) if path.suffix == ".py" else ():
        for item in node.elts:
            yield from ((part.value, part.lineno) for part in walk(item) if isinstance(part, ast.Constant))


def test_only_the_package_manager_names_programs_of_packages() -> None:
    """All other code uses the interface in `package_manager.py`, so that another manager can be added."""
    found: dict[str, list[int]] = {}
    for path in [*TRAVELS, *(ROOT / "resources").rglob("*.hy")]:
        for text, line in arguments(path):
            if isinstance(text, str) and PACKAGE_PROGRAMS.search(text):
                found.setdefault(shown(path), []).append(line)
    assert found.keys() == PACKAGE_MANAGERS, found
    assert len(found["resources/packages/managers/apt/apt.py"]) > 8  # otherwise, the test overlooks argument lists


def calls(path: Path) -> Iterator[tuple[str, int]]:
    for node in nodes(path, ast.Call):
        yield dotted(node.func), node.lineno


def test_only_the_command_line_exits_and_only_views_print() -> None:
    for path, name, line in ((file, *item) for file in FILES for item in calls(file)):
        # Hosts start these as separate programs, which may exit: the bootstrap of the executor, and scripts of ops.
        if name in ("sys.exit", "exit", "quit", "os._exit") and path not in TRAVELS:
            assert part_of(path) in ("cli", "__main__"), f"{shown(path)}:{line} calls {name}"
        if name == "print":
            assert part_of(path) == "views", f"{shown(path)}:{line} prints"


def test_no_handler_silently_ignores_all_exceptions() -> None:
    for path in FILES:
        for node in nodes(path, ast.ExceptHandler):
            if [type(item) for item in node.body] == [ast.Pass]:
                caught = ast.unparse(node.type) if node.type is not None else "everything"
                assert caught not in ("everything", "Exception", "BaseException"), f"{shown(path)}:{node.lineno}"


def test_code_uses_neither_shell_nor_pickle() -> None:
    for path in FILES:
        for module, line in imports(path):
            # `marshal` is only for bytecode that the host compiled, for the executor (with a digest) and for its tools.
            allowed = module == "marshal" and shown(path) in ("remote/bootstrap.py", "remote/units/tools/install.py")
            assert allowed or module.partition(".")[0] not in ("pickle", "marshal", "shelve"), f"{shown(path)}:{line}"
        for node in nodes(path, ast.keyword):
            if node.arg == "shell":
                assert ast.unparse(node.value) != "True", f"{shown(path)}:{node.value.lineno}"


def test_modules_have_no_import_cycles() -> None:
    """This is about imports at the top of modules. Functions may import any module when they run."""
    import graphlib

    edges: dict[str, set[str]] = {}
    for path in FILES:
        found = edges.setdefault(module_name(path), set())
        for node in top_level(path):
            modules = [item.name for item in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                source = absolute(path, node)
                modules = [f"{source}.{item.name}" for item in node.names]
                modules = [module if module in MODULES else source for module in modules]
            found.update(module for module in modules if module in MODULES and module != module_name(path))
    graphlib.TopologicalSorter(edges).prepare()


def top_level(path: Path) -> Iterator[ast.AST]:
    for child in run_time(nodes(path, ast.Import, ast.ImportFrom, ast.If)):
        if isinstance(child, ast.Import | ast.ImportFrom) and child.col_offset == 0:
            yield child


def test_dictionaries_of_anything_are_rare() -> None:
    """They are for the user's own JSON. Data of statecfg has types."""
    found = [shown(path) for path in FILES for node in nodes(path, ast.Subscript) if is_dict_of_anything(node)]
    assert 100 <= len(found) <= 200


def is_dict_of_anything(node: ast.Subscript) -> bool:
    return dotted(node.value) in ("dict", "Dict") and ast.unparse(node.slice) == "(str, Any)"


# The limits that `docs/contributing.md` names, in lines.
LONGEST_FILE, LONGEST_MEDIAN = 400, 120
MOST_ATTRIBUTES = 15
MOST_FILES = 25  # in a package of `resources/`


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_source_files_are_short() -> None:
    sizes = {shown(path): lines(path) for path in FILES}
    long = {name: size for name, size in sizes.items() if size > LONGEST_FILE}
    assert not long, f"a source file has at most {LONGEST_FILE} lines"
    median = sorted(sizes.values())[len(sizes) // 2]
    assert median <= LONGEST_MEDIAN, f"half of the source files have at most {LONGEST_MEDIAN} lines, not {median}"


def test_the_page_for_contributors_names_the_size_limits() -> None:
    page = (CHECKOUT / "docs/contributing.md").read_text(encoding="utf-8")
    row = f"at most {LONGEST_FILE} lines; half of all files at most {LONGEST_MEDIAN}"
    assert all(limit in page for limit in (row, f"{MOST_ATTRIBUTES} attributes", f"{MOST_FILES} files"))


def test_packages_of_node_types_are_small() -> None:
    counts = Counter(shown(path.parent) for path in FILES if part_of(path).startswith("resources"))
    assert len(counts) > 20
    assert {folder: count for folder, count in counts.items() if count > MOST_FILES} == {}


def test_shared_modules_have_users_in_three_families() -> None:
    """What one or two families use is in the lower of them. What only modules of `shared` use may stay there, too."""
    users: dict[str, set[str]] = {}
    for path in FILES:
        if part_of(path).startswith("resources."):
            for module, _ in all_imports(path):
                users.setdefault(home(module), set()).add(part_of(path))
    shared = [module for module in MODULES if module.startswith("statecfg.resources.shared.")]
    few = [one for one in shared if len(users.get(one, set())) < 3 and "resources.shared" not in users.get(one, set())]
    assert len(shared) > 15 and few == []


# Size limits in bytes: of the core that every host gets, and of the core with these ten node types. `script/bench`
# shows what the size costs: the first contact with a host.
LARGEST_CORE, LARGEST_BUNDLE = 90_000, 130_000
TEN = ["command", "directory", "file", "group", "line_in_file", "package", "process", "service", "symlink", "user"]


@each("what, types, limit", [("the core", [], LARGEST_CORE), ("the core with ten node types", TEN, LARGEST_BUNDLE)])
def test_the_bundle_is_small(
    what: str, types: list[str], limit: int, record_property: Callable[[str, object], None]
) -> None:
    """The end of pytest's output shows the sizes."""
    size = len(bundle.build(types).data)
    record_property("bundle", f"{what}: {size:,} bytes, limit {limit:,}")
    assert size <= limit


def attributes(definition: ast.ClassDef) -> set[str]:
    """Return the fields of a class, and what its methods assign to `self`."""
    fields = {node.target.id for node in definition.body if isinstance(node, ast.AnnAssign) and dotted(node.target)}
    of_objects = (node for node in walk(definition) if isinstance(node, ast.Attribute))
    return fields | {
        node.attr for node in of_objects if dotted(node.value) == "self" and isinstance(node.ctx, ast.Store)
    }


def is_document(path: Path, definition: ast.ClassDef) -> bool:
    """Return whether a class has the keys of a JSON document. A split would not change what users and hosts see.

    These are dictionaries with types, the frames that hosts send (`Strict`), the facts of a host (`FactDocument`), and
    the responses of statecfg's own API.
    """
    responses = shown(path).startswith("server/api_") and definition.name.endswith("Response")
    return responses or not {dotted(base) for base in definition.bases}.isdisjoint(
        ("TypedDict", "Strict", "Frame", "FactDocument")
    )


def is_list_of_names(definition: ast.ClassDef) -> bool:
    """Return whether a class has constants and nothing else, as `RunEvent`."""
    _, *body = definition.body  # the first is the docstring
    return all(isinstance(node, ast.AnnAssign) and dotted(node.annotation) == "Final" for node in body)


def test_a_class_has_few_attributes() -> None:
    """A class with more of them can be split into classes that have a meaning of their own."""
    large = [
        f"{shown(path)}:{node.lineno} {node.name}: {sorted(attributes(node))}"
        for path in FILES
        for node in nodes(path, ast.ClassDef)
        if len(attributes(node)) > MOST_ATTRIBUTES
        if not is_document(path, node) and not is_list_of_names(node)
    ]
    assert not large, f"a class has at most {MOST_ATTRIBUTES} attributes"


def test_each_class_has_a_name_of_its_own() -> None:
    """One name has one meaning. This includes private classes, and classes in functions and under `TYPE_CHECKING`."""
    found: dict[str, list[str]] = {}
    for path in FILES:
        for node in nodes(path, ast.ClassDef):
            found.setdefault(node.name, []).append(f"{shown(path)}:{node.lineno}")
    assert len(found) > 900
    assert {name: classes for name, classes in found.items() if len(classes) > 1} == {}


def test_one_function_asks_what_a_misspelled_name_means() -> None:
    asking = {shown(path) for path in FILES if re.search(r"(?i)did you mean [`{%]", path.read_text())}
    assert asking == {"problems/suggestions.py", "remote/graph/suggestions.py"}


def test_code_uses_names_instead_of_strings() -> None:
    positions = parameters([found for path in FILES for found in nodes(path, ast.FunctionDef, ast.ClassDef)])
    wrong = [
        f"{shown(path)}:{line}: {text!r}"
        for path in FILES
        if shown(path) not in FOREIGN and "resources" not in path.parts and path != Path(names.__file__)
        for line, text in literals(nodes(path, *USES), positions)
    ]
    assert wrong == []


@each(
    ("code", "found"),
    [
        ('host["status"] == "ok" or node.outcome in ("changed", "x")', {"ok", "changed"}),
        ('said.get("mode") != "plan" or mode == MODE', {"plan"}),
        ('path, mode = "apply", "plan" if dry_run else "verify"', {"plan", "verify"}),
        ('host["status"]: str = why or "failed"', {"failed"}),
        ('{"status": "refused", "apply": True, **host}', {"refused"}),
        ('run(work, "prune")', {"prune"}),
        ('session.run("prune", "verify")', {"verify"}),
        ('Run("destroy")', {"destroy"}),
        ('end(status="unknown", name="failed")', {"unknown"}),
        ('def run(work, mode="facts", *, state="cut off"): pass', {"facts", "cut off"}),
        ('WORST = ("failed", "unknown", "ok")', {"failed, unknown, ok"}),
        ('("failed", "detail")', set()),
        ('print("failed")', set()),
    ],
)
def test_literals_finds_strings_that_have_names(code: str, found: set[str]) -> None:
    functions = walk(ast.parse("def run(work, mode): pass\nclass Run:\n  def __init__(self, mode): pass"))
    positions = parameters([one for one in functions if isinstance(one, ast.FunctionDef | ast.ClassDef)])
    uses = [node for node in walk(ast.parse(code)) if isinstance(node, USES)]
    assert {text for _, text in literals(uses, positions)} == found
