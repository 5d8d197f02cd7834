"""Find the modules that a host needs: the given ones and everything that they import, stripped."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import statecfg
from statecfg import resources
from statecfg.playbook.role_path import add_installed_node_types
from statecfg.problems import InvalidInput, problem
from statecfg.problems.positions import SourceLocation
from statecfg.problems.python_source import parse
from statecfg.remote import OLDEST
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.resources.index.modules import file_stem, module_of, moved
from statecfg.run.stripping import stripped
from statecfg.run.stripping_cache import cache

Module = tuple[bool, str, str]
"""Whether it is a package, the file name in tracebacks, and the source."""

# The package managers.
MANAGERS = (
    "statecfg.resources.packages.managers.apt.apt",
    "statecfg.resources.packages.managers.apt.apt_upgrade",
    "statecfg.resources.packages.managers.dnf.dnf",
    "statecfg.resources.packages.managers.dnf.dnf_program",
    "statecfg.resources.packages.managers.dnf.dnf_upgrade",
    "statecfg.resources.packages.managers.apt.dpkg",
    "statecfg.resources.packages.package_steps",
    "statecfg.resources.packages.managers.pacman.pacman",
    "statecfg.resources.packages.managers.pacman.pacman_database",
    "statecfg.resources.packages.managers.pacman.pacman_steps",
    "statecfg.resources.packages.managers.pacman.pacman_upgrade",
    "statecfg.resources.packages.managers.rpm.rpm_needs",
    "statecfg.resources.packages.managers.zypper.zypper",
    "statecfg.resources.packages.managers.zypper.zypper_program",
    "statecfg.resources.packages.managers.zypper.zypper_upgrade",
)
# What checks that the login of statecfg stays possible.
ACCOUNT = "statecfg.resources.accounts.own_login"
# Code that only some hosts need: part of the bundle → modules and packages.
PARTS = {
    "facts": ("statecfg.remote.facts",),
    "history": ("statecfg.remote.ledger.history",),
    "drift": ("statecfg.remote.run.drift",),
    "hooks": tuple(f"statecfg.remote.hooks.{name}" for name in ("calling", "firing", "order", "run", "result")),
    "units": ("statecfg.remote.units",),
    "decisions": ("statecfg.remote.run.decisions",),
    "items": tuple(f"statecfg.remote.run.{name}" for name in ("items", "item_lists", "item_nodes", "item_execution")),
    "generated": ("statecfg.remote.run.generated",),
    "values": ("statecfg.remote.run.values",),
    "reboot": ("statecfg.remote.run.rebooting", "statecfg.remote.run.resuming"),
    "secrets": ("statecfg.remote.machine.redact", "statecfg.remote.machine.fixed_text"),
    "commands": ("statecfg.resources.programs.command_attempts",),
    "modes": ("statecfg.remote.graph.symbolic_modes",),
    "account": (ACCOUNT, "statecfg.remote.run.own_account"),
    "exclusions": ("statecfg.resources.shared.exclusions",),
    "services": ("statecfg.resources.services.init_scripts",),
    "managers": MANAGERS,
}
# A part that a host gets if its node types import a certain module. The part builds on this module.
TOGETHER = {
    "services": "statecfg.resources.services.systemd",
    "managers": "statecfg.resources.packages.package_manager",
}
# A module that only the controller uses. Node types import it inside functions that only the controller calls. A host
# needs it only if one of these modules is sent, which import it when they are loaded.
_CONTROLLER = "statecfg.remote.graph.wrong_values"
_LOADING_IT = ("statecfg.remote.graph.value_rules", "statecfg.remote.values")

_PACKAGE = Path(statecfg.__file__).parent
_OURS = (f"{_PACKAGE.resolve()}{os.sep}", f"{(_PACKAGE / 'resources').resolve()}{os.sep}")
_SESSION = "statecfg.remote.session"
_TYPES = "statecfg.remote.graph.values"  # types of attributes
_RESOURCES = "statecfg.resources"
# The source of a module that node types of a project import by its former name.
_MOVED = "from {} import *\n"
_HY = ("hy", "funcparserlib")  # the runtime of Hy, which is sent unstripped


@lru_cache(maxsize=1)
def core() -> dict[str, Module]:
    """Return the modules that every host needs: those that a session imports, except `PARTS`."""
    empty = (True, "resources/__init__.py", "")
    return {"statecfg": (True, "statecfg/__init__.py", _public_names()), _RESOURCES: empty, **closure([_SESSION])}


@lru_cache(maxsize=len(PARTS))
def of_part(part: str) -> dict[str, Module]:
    """Return the modules of a part (see `PARTS`) and those that they import, without the core."""
    files = (_PACKAGE / "remote").rglob("*.py")
    names = [".".join(("statecfg", *path.relative_to(_PACKAGE).with_suffix("").parts)) for path in files]
    names = [*(name.removesuffix(".__init__") for name in names), *PARTS[part]]
    starts = _starts(PARTS[part])
    found = _without_core(closure([name for name in names if f"{name}.".startswith(starts)], with_parts=True))
    present = closure([TOGETHER[part]]) if part in TOGETHER else {}
    return {name: module for name, module in found.items() if name not in present}


@lru_cache(maxsize=64)
def parts_of_types(modules: frozenset[str]) -> frozenset[str]:
    """Return the parts that belong to node types, which these modules define (see `TOGETHER`)."""
    found = of_types(modules)
    return frozenset(part for part, module in TOGETHER.items() if module in found)


def of_types(modules: Iterable[str], with_parts: bool = False) -> dict[str, Module]:
    """Return the modules that define node types and those that they import, without the core.

    :param modules: names of modules. Playbooks and modules written in Hy must be loaded.
    :param with_parts: whether to include imported modules of `PARTS`
    :raises InvalidInput: if a module can't be sent
    """
    from statecfg.dialects.host_source import bundle_modules

    names: list[str] = []
    own: dict[str, Module] = {}
    for module in modules:
        if _path(module) is not None:
            names.append(module)
            continue
        for name, (package, file, text) in bundle_modules(module).items():
            if name.partition(".")[0] not in _HY:
                text, imported = cache().get(text)
                names += _absolute(name, package, imported)
            own[name] = (package, file, text)
    return {**_without_core(closure(names, with_parts)), **own}


def type_modules(types: Iterable[str]) -> dict[str, str]:
    """Return node type → the module that defines it, for the types that exist.

    :raises InvalidInput: if a file written in Hy is wrong
    """
    modules = {}
    names, available = list(types), resources.available()
    if not {*available, *REGISTRY}.issuperset(names) and add_installed_node_types():
        available = resources.available()
    for name in names:
        module = module_of(name)
        if name in available and name not in REGISTRY and _path(module) is None:
            getattr(resources, name)
        if name in REGISTRY:
            modules[name] = REGISTRY[name].module
        elif name in available:
            modules[name] = module
    return modules


def python_types() -> dict[str, str]:
    """Return node type → module for all types written in Python. The others would have to be loaded."""
    modules = {name: module_of(name) for name in resources.available()}
    return {name: module for name, module in modules.items() if _path(module) is not None}


def check_syntax() -> None:
    """Check that every Python file among the project's node types compiles on hosts.

    :raises InvalidInput: if one does not
    """
    for folder in resources.__path__:
        if f"{os.path.realpath(folder)}{os.sep}" in _OURS:
            continue
        for path in sorted(Path(folder).glob("*.py")):
            try:
                _source(path)
            except InvalidInput:
                if _parses(path):
                    raise


def _parses(path: Path) -> bool:
    """Return whether this Python can parse a file. If not, loading the file reports the error."""
    try:
        parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return False
    return True


def closure(names: Iterable[str], with_parts: bool = False) -> dict[str, Module]:
    """Return modules that run on hosts and everything that they import.

    :param names: full names; names that don't belong to such a module are ignored
    :param with_parts: whether to follow imports to the modules of `PARTS`
    """
    modules: dict[str, Module] = {}
    waiting, seen = list(names), set()
    skipped = _starts(() if with_parts else (name for names in PARTS.values() for name in names))
    while waiting:
        name = _home(waiting.pop())
        if name in seen:
            continue
        seen.add(name)
        present = moved(name)
        if present:
            modules[name] = (False, f"resources/{name.rpartition('.')[2]}.py", _MOVED.format(present))
            waiting.append(present)
            continue
        path = _path(name) if not f"{name}.".startswith(skipped) else None
        if path is None:
            continue
        package = path.stem == "__init__"
        text, imported = _source(path)
        folder = name if package else name.rpartition(".")[0]
        directory = folder.replace(".", "/").removeprefix("statecfg/" if folder.startswith(_RESOURCES) else "")
        modules[name] = (package, f"{directory}/{path.name}", text)
        waiting += [
            *(one for one in _absolute(name, package, imported) if name in _LOADING_IT or one != _CONTROLLER),
            name.rpartition(".")[0],
        ]
    return modules


def _without_core(modules: dict[str, Module]) -> dict[str, Module]:
    return {name: module for name, module in modules.items() if name not in core()}


def _starts(modules: Iterable[str]) -> tuple[str, ...]:
    """Return how the names of the modules, and of everything inside them, start if they end with a period."""
    return tuple(f"{module}." for module in modules)


def _home(name: str) -> str:
    """Return the module that defines a name; public names of `statecfg` are defined elsewhere."""
    package, _, last = name.rpartition(".")
    return statecfg._HOMES.get(last, name) if package == "statecfg" else name


def _path(name: str) -> Path | None:
    """Return the Python file of a module that runs on hosts, None for any other name."""
    package, *below = name.split(".")
    if package != "statecfg" or not below or not all(part.isidentifier() for part in below):
        return None
    if below[0] not in ("remote", "resources"):
        return None
    if below == ["resources"]:
        return None
    if len(below) == 2 and file_stem(below[1]) != below[1]:
        files = (Path(folder, f"{file_stem(below[1])}.py") for folder in resources.__path__)
        return next((file for file in files if file.is_file()), None)
    # Every name that a module imports is looked up here, so this uses strings: paths as objects take ten times as long.
    for folder in [os.path.join(_PACKAGE, "remote")] if below[0] == "remote" else resources.__path__:
        inside = os.path.join(folder, *below[1:])
        for file in (f"{inside}.py", os.path.join(inside, "__init__.py")):
            if os.path.isfile(file):
                return Path(file)
    return None


def _absolute(module: str, package: bool, imported: Iterable[str]) -> list[str]:
    """Return the full names of the modules that a module imports."""
    full_names = []
    for name in imported:
        relative = name.lstrip(".")
        up = len(name) - len(relative) - package
        above = module.split(".")[: -up or None] if up >= 0 and relative != name else []
        full_names.append(".".join([*above, *filter(None, [relative])]))
    return full_names


def _source(path: Path) -> tuple[str, list[str]]:
    """Return a file's source as hosts receive it, and the names that it imports.

    :raises InvalidInput: if a file of the project does not compile for the oldest supported Python on hosts
    """
    text = path.read_text(encoding="utf-8")
    try:
        short, imported = cache().get(text)
        if not os.path.realpath(path).startswith(_OURS):
            _check_version(text, short)
    except SyntaxError as error:
        help = "node types run on hosts: use the syntax of Python 3.8"
        where = SourceLocation(os.path.relpath(path), error.lineno or 1, error.offset)
        raise InvalidInput([problem("SC0516", str(error.msg), help, where)]) from None
    return short, imported


def _check_version(text: str, short: str) -> None:
    """Check that source compiles for the oldest supported Python on hosts.

    :raises SyntaxError: if it does not; line and column are those of the original text
    """
    try:
        parse(short, feature_version=OLDEST)
    except SyntaxError:
        parse(stripped(text), feature_version=OLDEST)
        raise


def _public_names() -> str:
    """Return the source of `statecfg` on hosts: those of its public names that exist there, imported on first use.

    It is short, because every host gets it. So it lists no types of attributes: most hosts lack their module.
    """
    prefix = "statecfg.remote."
    names: dict[str, list[str]] = {}
    for name, home in sorted(statecfg._HOMES.items()):
        if home.startswith(prefix) and home != _TYPES:
            names.setdefault(home.removeprefix(prefix), []).append(name)
    lists = {home: " ".join(here) for home, here in names.items()}
    renamed = {old: new for old, new in statecfg._RENAMED.items() if statecfg._HOMES[new].startswith(prefix)}
    return f"""from importlib import import_module
_HOMES = {{name: {prefix!r} + home for home, names in {lists!r}.items() for name in names.split()}}
def __getattr__(name):
    name = {renamed!r}.get(name, name)
    try:
        return getattr(import_module(_HOMES.get(name, {_TYPES!r})), name)
    except (AttributeError, ImportError):
        raise AttributeError("statecfg has no %s on hosts" % name)
"""
