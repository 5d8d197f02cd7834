"""Automatic requirements: what a node needs on the host, if another node of the graph provides it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pyrsistent import PVector

from statecfg.graph import host_conditions, host_items, schema
from statecfg.graph.identity import normal
from statecfg.graph.nodes import EMPTY_MAP, Node
from statecfg.graph.references import MAX_EXPANDED
from statecfg.problems import InvalidInput, Problem, problem
from statecfg.remote.graph.nodetype import REGISTRY
from statecfg.remote.graph.wrong_values import show

Automatic = dict[str, dict[str, str]]  # name of a node → name of the node that it requires → the reason

# Attribute → what its value names, and the reason of the requirement. A node type can override them with `needs`.
ATTRIBUTES = {
    "path": ("file", "its path"),
    "host_source": ("path", "its source"),
    "cwd": ("path", "its working directory"),
    "owner": ("user", "its owner"),
    "user": ("user", "its user"),
    "group": ("group", "its group"),
    "groups": ("group", "its group"),
    "members": ("user", "its member"),
    "argv": ("program", "its program"),
    "validate": ("program", "its program"),
    "interpreter": ("program", "its program"),
    "pathname": ("program", "its program"),
}
REASONS = {
    "inside": "its directory",
    "path": "its path",
    "user": "its user",
    "group": "its group",
    "package": "its package",
    "program": "its program",
    "unit": "its unit",
    "unit_file": "its unit",
    "repository": "its repository",
    "answers": "its answers",
    "module": "its module",
}
MOUNT = "its mount"
USER_UNITS = "/.config/systemd/user/"  # in the home directory
SHARED_USER_UNITS = tuple(f"{root}/systemd/user/" for root in ("/etc", "/run", "/usr/local/lib", "/usr/lib"))
UNIT_DIRECTORIES = tuple(f"{root}/systemd/system/" for root in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"))
# Files from which a package manager learns about its repositories and which versions it prefers.
REPOSITORIES = (
    "/etc/apt/sources.list",
    "/etc/apt/sources.list.d/",
    "/etc/apt/keyrings/",
    "/etc/apt/trusted.gpg.d/",
    "/etc/apt/preferences",
    "/etc/apt/preferences.d/",
    "/etc/yum.repos.d/",
    "/etc/dnf/dnf.conf",
    "/etc/dnf/vars/",
    "/etc/zypp/repos.d/",
    "/etc/zypp/zypp.conf",
    "/etc/zypp/vars.d/",
    "/etc/pacman.conf",
    "/etc/pacman.d/",
)
REPOSITORY_DIRECTORIES = tuple(path for path in REPOSITORIES if path[-1] == "/")
MODULES = "/etc/dnf/modules.d/"  # which stream of each module dnf uses
PROVIDES = ("provides_units", "provides_programs")
REMOVE = "remove"  # nodes of this type are always absent, so it has no attribute `absent`
CONTENT = ("content", "source", "template")
MANY = 20  # with more requirements, searching a set is faster


class _Need(NamedTuple):
    """What a node needs.

    :param type: a key of `REASONS`
    """

    type: str
    name: str
    reason: str


def find(nodes: list[Node], owners: Mapping[str, list[Node]]) -> tuple[Automatic, list[Problem]]:
    """Return the automatic requirements of a graph, and problems. This takes linear time.

    A node that is absent neither has automatic requirements nor provides anything. The requirements can contain cycles:
    see `statecfg.graph.automatic_cycles`.

    :param nodes: all nodes of the graph, without references to many nodes
    :param owners: identity → the nodes that have it (`statecfg.graph.identity.owners`)
    """
    providers = _Providers(nodes, owners)
    by_identity = _of_identities(owners)
    methods: dict[str, Callable[[Any], Iterable[str]] | None] = {}
    required: Automatic = {}
    total = 0
    for node in nodes:
        if node.type not in methods:
            node_type = REGISTRY.get(node.type)
            methods[node.type] = None if node_type is None else node_type.methods.get("needs")
        if node.broken:
            continue
        method = methods[node.type]
        found = providers.of_attributes(node) if method is None else providers.of_method(node, method)
        if found is None:
            continue
        conditions = node.options.get("when_host") if node.options is not EMPTY_MAP else None
        for identity_type, name in host_conditions.needs(conditions) if conditions else ():
            found += providers.of(_Need(identity_type, name, host_conditions.REASON))
        items = node.options.get(host_items.OPTION) if node.options is not EMPTY_MAP else None
        for identity_type, name in host_items.needs(items) if items else ():
            found += providers.of(_Need(identity_type, name, host_items.REASON))
        for need in by_identity.get(node.provides, ()):
            found.extend((name, need.reason) for name, _ in providers.of(need))
        if len(found) > 1:
            found.sort()  # the order of the attributes differs in each process
        written = node.requires if len(node.requires) < MANY else frozenset(node.requires)
        for name, reason in found:
            if name != node.provides and name not in written:
                required.setdefault(node.provides, {}).setdefault(name, reason)
        total += len(found)
        if total > MAX_EXPANDED:
            detail = f"the graph has more than {MAX_EXPANDED:,} automatic requirements; one is of {node.provides}"
            return {}, [problem("SC0115", detail, "split the playbook", node.position)]
    return required, []


def _of_identities(owners: Mapping[str, list[Node]]) -> dict[str, list[_Need]]:
    """Return what nodes need because of the paths that they manage, if they have no attribute `path`."""
    by_path = {type_name: "path" in _fields(type_name) for type_name in REGISTRY}
    needs: dict[str, list[_Need]] = {}
    for identity, group in owners.items():
        identity_type, _, name = identity.partition(":")
        for node in group if identity_type in ("path", "mount") else ():
            if identity_type == "mount" or not by_path.get(node.type):
                wanted = "path" if identity_type == "mount" else "inside"
                need = _Need(wanted, name, REASONS[wanted])
                needs.setdefault(node.provides, []).append(need)
    return needs


class _Providers:
    """Finds the nodes that provide something on the host."""

    def __init__(self, nodes: list[Node], owners: Mapping[str, list[Node]]) -> None:
        self._owners = owners
        self._nearest: dict[str, tuple[tuple[str, str], ...]] = {}
        self._found: dict[_Need, Sequence[tuple[str, str]]] = {}
        self._provided: dict[str, list[Node]] = {}  # `unit:NAME` or `program:NAME`
        self._packages: dict[str, list[Node]] = {}  # by name, without the architecture
        self._repositories: list[str] = []
        self._modules: list[str] = []
        self._drop_ins: dict[str, list[Node]] = {}  # by the name of the unit
        for identity, group in owners.items():
            if identity.startswith("package:"):
                self._packages.setdefault(identity.split(":")[1], []).extend(group)
            elif identity.startswith("path:"):
                self._add_path(identity[5:], group)
        self._add_declared(nodes)

    def _add_path(self, path: str, group: list[Node]) -> None:
        if path.startswith(UNIT_DIRECTORIES) or "/systemd/user/" in path:
            directory, _, file = path.rpartition("/")
            if directory.endswith(".d") and file.endswith(".conf"):
                self._drop_ins.setdefault(directory[:-2], []).extend(group)
        elif _is_repository(path):
            self._repositories += _present(group)
        elif path.startswith(MODULES):
            self._modules += _present(group)

    def _add_declared(self, nodes: list[Node]) -> None:
        fields: dict[str, tuple[str, ...]] = {}
        for node in nodes:
            if node.type not in fields:
                fields[node.type] = tuple(name for name in PROVIDES if name in _fields(node.type))
            for field in fields[node.type]:
                identity_type = field.removeprefix("provides_").removesuffix("s")
                for name in node.attrs.get(field) or ():
                    full = f"{identity_type}:{name if identity_type == 'program' or '.' in name else name + '.service'}"
                    self._provided.setdefault(full, []).append(node)

    def of_attributes(self, node: Node) -> list[tuple[str, str]] | None:
        """Return the names of the nodes that a node's attributes need, with reasons; None if the node is absent."""
        found: list[tuple[str, str]] = []
        if node.type == REMOVE:
            return None
        for field, value in node.attrs.iteritems():
            if field in ATTRIBUTES:
                identity_type, reason = ATTRIBUTES[field]
                if identity_type == "file":
                    found += self._at(node, value) if type(value) is str else ()
                elif type(value) is str:
                    found += self.of(_Need(identity_type, value, reason))
                elif isinstance(value, PVector):
                    values = value[:1] if identity_type == "program" else value
                    for item in values:
                        found += self.of(_Need(identity_type, item, reason)) if type(item) is str else ()
            elif field == "absent" and value:
                return None
        return found

    def _at(self, node: Node, path: str) -> Sequence[tuple[str, str]]:
        """Return the nodes that provide the path of a node: another one that manages it, or its directory."""
        path = normal(path)
        owners = self._owners.get(f"path:{path}", ())
        if owners and not any(owner is node for owner in owners):
            return self.of(_Need("path", path, REASONS["path"]))
        return self._directory(path.rpartition("/")[0]) if path != "/" else ()

    def of_method(self, node: Node, method: Callable[[Any], Iterable[str]]) -> list[tuple[str, str]] | None:
        """Return the names of the nodes that a node needs according to `needs` of its type, with reasons.

        :raises InvalidInput: the node type names something of an unknown kind
        """
        attrs = dict(node.attrs.iteritems())
        if attrs.get("absent"):
            return None
        found: list[tuple[str, str]] = []
        for text in method(attrs):
            identity_type, _, name = text.partition(":") if isinstance(text, str) else ("", "", "")
            if identity_type not in REASONS:
                detail = f"needs of {node.type} returned {show(text)} for {node.provides}"
                help_text = f'return names such as "user:app"; the kinds are {", ".join(REASONS)}'
                raise InvalidInput([problem("SC0119", detail, help_text, node.position)])
            found += self.of(_Need(identity_type, name, REASONS[identity_type]))
        return found

    def of(self, need: _Need) -> Sequence[tuple[str, str]]:
        """Return the names of the nodes that provide something, each with the reason."""
        if need.type == "inside":
            return self._directory(normal(need.name).rpartition("/")[0]) if need.name != "/" else ()
        found = self._found.get(need)
        if found is None:
            found = self._found[need] = self._search(need)
        return found

    def _search(self, need: _Need) -> Sequence[tuple[str, str]]:
        if need.type == "path":
            providing = filter(_provides, self._owners.get(f"path:{normal(need.name)}", ()))
            at = [(name, need.reason) for name in _present(providing)]
            return at or self.of(need._replace(type="inside"))
        if need.type == "repository":
            return [(name, need.reason) for name in self._repositories]
        if need.type == "module":
            return [(name, need.reason) for name in self._modules]
        if need.type in ("unit", "unit_file"):
            group = self._unit(need.name, need.type == "unit")
        elif need.type == "program":
            group = self._program(need.name)
        elif need.type == "package":
            group = self._packages.get(need.name, [])
        else:
            group = self._owners.get(f"{need.type}:{need.name}", [])
        return [(name, need.reason) for name in _present(group)]

    def _directory(self, path: str) -> tuple[tuple[str, str], ...]:
        """Return the nodes of the nearest directory at or above a path; "" is the root directory."""
        passed = []
        while (known := self._nearest.get(path)) is None:
            passed.append(path)
            mounts = _present(self._owners.get(f"mount:{path or '/'}", []))
            known = tuple((name, MOUNT) for name in mounts) or tuple(
                (name, REASONS["inside"]) for name in _present(self._owners.get(f"path:{path or '/'}", []))
            )
            if known or not path:
                break
            path = path.rpartition("/")[0]
        for each in passed:
            self._nearest[each] = known
        return known

    def _unit(self, name: str, drop_ins: bool) -> list[Node]:
        """Return the nodes of a unit's file, or of its package.

        :param name: its full name, for a unit of a user with this user: `deploy/app.service`
        :param drop_ins: whether to add those of its drop-ins
        """
        user, _, name = name.rpartition("/")
        directories = self._user_directories(user) if user else UNIT_DIRECTORIES
        stem, at, rest = name.partition("@")
        template = f"{stem}@.{rest.rpartition('.')[2]}" if at else name
        names = dict.fromkeys((name, template))
        places = [f"{directory}{each}" for directory in directories for each in names]
        files = (self._owners.get(f"path:{place}") for place in places)
        provided = (self._provided.get(f"unit:{each}") for each in names)
        package = self._packages.get(stem if at else name.rpartition(".")[0], [])
        group = next(filter(None, (*files, *provided)), package)
        return [*group, *(node for place in places for node in self._drop_ins.get(place, ()))] if drop_ins else group

    def _user_directories(self, user: str) -> Iterable[str]:
        """Return the directories with a user's units, in the usual home directory and in that of the user's node."""
        homes = [f"/home/{user}" if user != "root" else "/root"]
        declared = (node.attrs.get("home") for node in self._owners.get(f"user:{user}", ()))
        homes += [home for home in declared if isinstance(home, str)]
        return (*(normal(home) + USER_UNITS for home in homes), *SHARED_USER_UNITS)

    def _program(self, name: str) -> list[Node]:
        group = self._owners.get(f"path:{normal(name)}") if name[:1] == "/" else None
        last = name.rpartition("/")[2]
        provided = self._provided.get(f"program:{name}") or self._provided.get(f"program:{last}")
        return group or provided or self._packages.get(last, [])


def _present(group: Iterable[Node]) -> list[str]:
    return [node.provides for node in group if node.type != REMOVE and not node.attrs.get("absent")]


def _provides(node: Node) -> bool:
    """Return whether a node that manages a path also makes it, unlike a `file` that only sets its mode or owner."""
    return node.type != "file" or any(node.attrs.get(name) is not None for name in CONTENT)


def _is_repository(path: str) -> bool:
    return path in REPOSITORIES or path.startswith(REPOSITORY_DIRECTORIES)


def _fields(type_name: str) -> Iterable[str]:
    node_type = REGISTRY.get(type_name)
    try:
        return schema.of(node_type).fields if node_type is not None else ()
    except InvalidInput:
        return ()  # already reported where the type was first used
