"""Virtual environments of Python: what is installed in one, the ops that change it, and the undo."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.packages.languages import venv_extras
from statecfg.resources.packages.languages.venv_extras import normal
from statecfg.resources.shared import paths, places, records

if TYPE_CHECKING:
    from typing import TypedDict

    class VenvContext(TypedDict):
        """The other distributions of a virtual environment."""

        others: list[str]

    class VenvMemory(TypedDict):
        """The memory of a `python_venv`.

        :ivar exists: whether there was an environment
        :ivar directory: whether the directory existed
        :ivar packages: the distributions of the node that were installed: name → version
        """

        path: str
        exists: bool
        directory: bool
        packages: dict[str, str]
        context: VenvContext


# Metadata of an installed distribution: its name, with `_` for other characters, and its version.
_INSTALLED = re.compile(r"(.+?)-([^-]+)\.(?:dist|egg)-info\Z")
_ALWAYS = ("pip", "setuptools", "wheel")  # a new environment can have them


def parsed(requirement: str) -> tuple[str, str | None]:
    """Return the normalized name of a requirement such as `name[extra]==1.0`, and its version, None for any."""
    name, _, version = requirement.partition("==")
    return normal(name.partition("[")[0]), version or None


def installed(world: World, path: str) -> dict[str, str]:
    """Return the distributions in an environment: normalized name → version.

    :raises Unknown: if a required node may change them
    """
    return {name: version for name, (version, _) in _found(world, path, version_of(world, path)).items()}


def _found(world: World, path: str, python: str) -> dict[str, tuple[str, str]]:
    """Return the distributions for a version of Python: normalized name → version, directory with its metadata."""
    found = {}
    library = posixpath.join(path, "lib")
    versions = world.listdir(library) if world.stat(library) is not None else []
    if "python" + python in versions:  # another one has been left by a former Python
        versions = ["python" + python]
    for version in versions:
        site_packages = posixpath.join(library, version, "site-packages")
        for entry in world.listdir(site_packages) if world.stat(site_packages) is not None else ():
            match = _INSTALLED.match(entry)
            if match is not None:
                found[normal(match.group(1))] = match.group(2), posixpath.join(site_packages, entry)
    return found


def version_of(world: World, path: str) -> str:
    """Return the version of an environment's Python, such as `3.11`; "" if it is not known."""
    stat = world.stat(path + "/pyvenv.cfg")
    if stat is None or stat.file_type != "file" or (stat.size or 0) > venv_extras.LARGEST:
        return ""
    match = re.search(rb"^version(?:_info)?\s*=\s*(\d+\.\d+)", world.read(path + "/pyvenv.cfg"), re.M)
    return match.group(1).decode() if match is not None else ""


def broken(world: World, path: str) -> bool:
    """Return whether the Python of an environment is gone: a link leads nowhere."""
    program = posixpath.join(path, "bin/python")
    for _ in range(paths.LINKS):
        stat = world.stat(program)
        if stat is None:
            return program != posixpath.join(path, "bin/python")
        if stat.file_type != "symlink":
            return False
        program = posixpath.normpath(posixpath.join(posixpath.dirname(program), stat.target))
    return True


@op(name="repair")
def repair(
    machine: Machine, path: str, python: str, system_site_packages: bool = False, user: str | None = None
) -> Result:
    """Give an environment whose Python is gone another one. Its distributions of the same version stay."""
    for name in ("python", "python3"):
        link = posixpath.join(path, "bin", name)
        stat = machine.stat(link)
        if stat is not None and stat.file_type == "symlink":  # venv would write through a link that leads nowhere
            result = machine.remove(link)
            if result["status"] != "ok":
                return result
    return _make(machine, path, python, system_site_packages, user)


class Distributions:
    """The facet: the distributions of environments, read when a plan shows one."""

    def __init__(self, host: World) -> None:
        self.host = host

    def get(self, key: str) -> records.Fields | None:
        """Return the version of a distribution; None if it is not installed."""
        name, _, path = key.partition(" in ")
        version = installed(self.host, path).get(name)
        return {"version": version} if version is not None else None


@facet("venv")
def distributions(host: Any) -> Any:
    """Read distributions on demand: name and path of the environment → `version`."""
    return Distributions(host)


def _key(path: str, name: str) -> str:
    return f"{name} in {path}"


@op(name="create")
def create(
    machine: Machine, path: str, python: str, system_site_packages: bool = False, user: str | None = None
) -> Result:
    """Create an environment."""
    result = machine.mkdir(path, 0o755, user)
    if result["status"] != "ok":
        return result
    return _make(machine, path, python, system_site_packages, user)


def _make(machine: Machine, path: str, python: str, system_site_packages: bool, user: str | None) -> Result:
    options = ["--system-site-packages"] if system_site_packages else []
    argv = [python, "-m", "venv", *options, path]
    return places.run(machine, argv, path, user, [*_obeyed(machine, path), python], effect={"files": [path]})


@op(name="install")
def install(
    machine: Machine,
    path: str,
    packages: list[str],
    index: str | None = None,
    find_links: str | None = None,
    ca: str | None = None,
    user: str | None = None,
    timeout: float = 600.0,
) -> Result:
    """Install distributions with pip."""
    options = ["--index-url", index] if index is not None else ["--no-index"] if find_links is not None else []
    options += ["--find-links", find_links] if find_links is not None else []
    options += ["--cert", ca] if ca is not None else []
    after = {_key(path, name): {"version": version or "newest"} for name, version in map(parsed, packages)}
    return _pip(machine, path, ["install", "--quiet", *options, "--", *packages], user, after, timeout)


@op(name="uninstall")
def uninstall(machine: Machine, path: str, packages: list[str], user: str | None = None) -> Result:
    """Remove distributions with pip."""
    after = dict.fromkeys(_key(path, name) for name in packages)
    return _pip(machine, path, ["uninstall", "--quiet", "--yes", "--", *packages], user, after, 600.0)


def _pip(
    machine: Machine,
    path: str,
    words: Sequence[str],
    user: str | None,
    after: Mapping[str, records.Fields | None],
    timeout: float,
) -> Result:
    """Run pip.

    :param after: what differs after it, for the plan
    """
    argv = [posixpath.join(path, "bin/python"), "-m", "pip", "--isolated", "--no-input"]
    argv += ["--disable-pip-version-check", "--no-cache-dir", *words]
    effect = {"files": [path], "venv": after}
    return places.run(machine, argv, path, user, _obeyed(machine, path), effect=effect, timeout=timeout)


def exists(world: World, path: str) -> bool:
    """Return whether there is an environment.

    :raises CheckError: if something else is there
    """
    stat = paths.look(world, path)
    if stat is None:
        return False
    if stat.file_type != "directory":
        paths.refuse(path, stat, "a directory")
    if world.stat(path + "/pyvenv.cfg") is not None:
        return True
    if world.listdir(path):
        raise CheckError("%s contains files, but is not a virtual environment; move them away" % path)
    return False


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Create a missing environment, and install distributions that are missing or have another version.

    :raises CheckError: if something else is at the path, or there is no such Python
    """
    attrs, path = node.attrs, node.attrs["path"]
    present = exists(world, path)
    if attrs.get("absent"):
        return [paths.remove(path, True)] if present else []
    paths.account(world, "users", attrs.get("user"), node, nodes)
    user, actions = _user(attrs, world), []
    version = version_of(world, path) if present else ""
    gone = present and broken(world, path)
    if not present or gone:
        paths.require_parent(world, path, node, nodes)
        python = attrs["python"]
        if world.is_known(python) and world.stat(python) is None:
            raise CheckError("%s does not exist; require the package of this Python" % python)
        make = repair if gone else create
        actions.append(make(path, python, bool(attrs.get("system_site_packages")), user))
        version = _version(world, python) if gone else ""
    found = (
        _found(world, path, version) if present and ("python" + version in _libraries(world, path) or not gone) else {}
    )
    wrong = missing(world, attrs.get("packages") or (), found, version)
    if wrong:
        options = {name: attrs.get(name) for name in ("index", "find_links", "ca")}
        actions.append(install(path, wrong, user=user, timeout=attrs["timeout"], **options))
    return actions


def _libraries(world: World, path: str) -> Sequence[str]:
    library = posixpath.join(path, "lib")
    return world.listdir(library) if world.stat(library) is not None else []


def _version(world: World, python: str) -> str:
    """Return the version of a Python, such as `3.11`."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    return world.probe([python, "-I", "-S", "-c", code], inputs=("packages", [python])).text.strip()


def missing(world: World, wanted: Sequence[str], found: Mapping[str, tuple[str, str]], python: str) -> list[str]:
    """Return the requirements that are not installed.

    :param found: the distributions: name → version, directory with its metadata
    :param python: the version of Python
    :raises CheckError: if an installed distribution does not have an extra
    """
    wrong = []
    needs = venv_extras.Extras(world, python, {name: place for name, (_, place) in found.items()})
    for requirement in wanted:
        name, version = parsed(requirement)
        extras = venv_extras.of(requirement)
        there = name in found and version in (None, found[name][0])
        if not there or (extras and needs.missing(name, extras)):
            wrong.append(requirement)
    return wrong


def _user(attrs: records.Attrs, world: World) -> str | None:
    """Return the user who runs Python and pip: root never runs what another user can have put into the environment.

    :raises CheckError: see `places.runner`
    """
    path, new = attrs["path"], [attrs["python"]] if not attrs.get("absent") else []
    return places.runner(world, path, attrs.get("user"), "pip", [*_obeyed(world, path), *new], path)


def _obeyed(world: World, path: str) -> list[str]:
    """Return the paths of an environment that decide what its Python runs."""
    found, library = (
        [path + name for name in ("/bin", "/bin/python", "/bin/pip", "/pyvenv.cfg", "/pip.conf")],
        path + "/lib",
    )
    stat = world.apparent(library)
    if stat is None or stat.file_type != "directory" or not world.is_known(library):
        return [*found, library]
    return [*found, *(f"{library}/{name}/site-packages" for name in world.listdir(library))]


def remember(node: HostNode, world: World) -> VenvMemory:
    """Record which distributions are installed."""
    path = node.attrs["path"]
    there = world.stat(path + "/pyvenv.cfg") is not None
    wanted = {parsed(requirement)[0] for requirement in node.attrs.get("packages") or ()}
    present = installed(world, path) if there else {}
    return {
        "path": path,
        "exists": there,
        "directory": world.stat(path) is not None,
        "packages": {name: version for name, version in present.items() if name in wanted},
        "context": {"others": sorted(set(present) - wanted)},
    }


def undo(node: HostNode, memory: VenvMemory, world: World) -> ActionSpec:
    """Remove an environment that the node created, or restore the former versions of its distributions."""
    attrs, path = node.attrs, memory["path"]
    there = exists(world, path)
    if attrs.get("absent"):
        left = ["the virtual environment %s is not restored" % path] if memory["exists"] and not there else []
        return ActionSpec(left=left)
    if not there:
        return ActionSpec()
    if not memory["exists"]:
        inside = [posixpath.join(path, name) for name in world.listdir(path)]
        return ActionSpec([paths.remove(name, True) for name in (inside if memory["directory"] else [path])])
    present, was = installed(world, path), memory["packages"]
    versions = dict(map(parsed, attrs.get("packages") or ()))
    # Others have installed these versions since: neither the node's nor the former ones.
    changed = [
        name
        for name, version in versions.items()
        if version is not None and present.get(name, version) not in (version, was.get(name))
    ]
    names = [name for name in versions if name not in changed]
    gone = [name for name in names if name in present and name not in was and name not in _ALWAYS]
    back = ["%s==%s" % (name, was[name]) for name in names if name in was and present.get(name) != was[name]]
    user, actions = _user(attrs, world), []
    if gone:
        actions.append(uninstall(path, gone, user))
    if back:
        options = {name: attrs.get(name) for name in ("index", "find_links", "ca")}
        actions.append(install(path, back, user=user, timeout=attrs["timeout"], **options))
    more = sorted(set(present) - set(versions) - set(memory["context"]["others"]) - set(_ALWAYS))
    left = ["%s of %s stays at %s: others installed it" % (name, path, present[name]) for name in changed]
    left += ["%s of %s stay: they came as dependencies" % (", ".join(more), path)] if more else []
    return ActionSpec(actions, left=left)
