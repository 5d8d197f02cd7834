"""Locales: which ones the host has, the ops that generate and remove one, the default locale, and the undo."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import entries, paths, records, sources

if TYPE_CHECKING:
    from typing import TypedDict

    from statecfg.resources.shared import line_edits

    class LocaleMemory(TypedDict):
        """The memory of a `locale`: whether the host had it, its line in the list, and the lines of the default."""

        present: bool
        charset: str
        listing: line_edits.LineMemory | None
        defaults: dict[str, line_edits.LineMemory]


VARIABLES = (
    "LANG", "LC_ADDRESS", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_MESSAGES",
    "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME",
)  # fmt: skip
BUILT_IN = ("C", "POSIX", "C.UTF-8")
LIST = "/etc/locale.gen"  # Debian's list of the locales to generate
SUPPORTED = ("/usr/local/share/i18n/SUPPORTED", "/usr/share/i18n/SUPPORTED")
DIRECTORY = "/usr/lib/locale"
DEBIAN_DEFAULT, DEFAULT = "/etc/default/locale", "/etc/locale.conf"
ENVIRONMENT = "/etc/environment"  # pam_env reads it in each session
TIMEOUT = 300.0


def listed(name: str) -> str:
    """Return a locale's name as ``locale --all-locales`` lists it. Source: _nl_normalize_codeset of glibc."""
    language, dot, rest = name.partition(".")
    charset, at, modifier = rest.partition("@")
    plain = re.sub("[^a-z0-9]", "", charset.lower())
    return language + dot + ("iso" + plain if plain.isdigit() else plain) + at + modifier


@facet("locale")
def available(host: World) -> dict[str, records.Fields]:
    """Load the locales that programs can use: name, as `listed` returns it → `present`.

    :raises CheckError: if the host can't list them
    """
    probe = host.probe(["locale", "--all-locales"])
    names = probe.text.split()
    if probe.status != 0 or not names:
        raise CheckError("the host does not list its locales: locale --all-locales failed")
    return {name: {"present": True} for name in names}


@op(mutex="locales")
def generate(machine: Machine, name: str, charset: str) -> Result:
    """Generate a locale, as locale-gen of Debian does."""
    language, _, rest = name.partition(".")
    source = language + ("@" + rest.partition("@")[2] if "@" in rest else "")
    argv = ["localedef", "-c", "-i", source, "-f", charset, "-A", "/usr/share/locale/locale.alias", name]
    # Source of the codes: localedef(1). With 1, the locale was generated and there were warnings.
    return machine.run(argv, {"locale": {listed(name): {"present": True}}}, timeout=TIMEOUT, codes=(0, 1))


@op(mutex="locales")
def delete(machine: Machine, name: str) -> Result:
    """Remove a generated locale."""
    argv = ["localedef", "--delete-from-archive", listed(name)]
    return machine.run(argv, {"locale": {listed(name): None}}, timeout=TIMEOUT)


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the list of locales, the generated locales and the default with the wanted ones.

    :raises CheckError: if the host has no data to generate the locale
    """
    name = node.attrs["name"]
    present = world.entry("locale", listed(name)) is not None
    if node.attrs.get("absent"):
        lines = entries.check(_listing(node, ""), nodes, world) if world.stat(LIST) is not None else []
        return [*lines, *(_deletion(world, name) if present else [])]
    actions: list[Action] = []
    if name not in BUILT_IN or not present:
        if world.stat(LIST) is not None:
            known = _supported(world)
            if name not in known:
                text = "this host can't generate the locale %s%s; %s lists those that it can generate"
                raise CheckError(text % (name, paths.nearest(name, known), SUPPORTED[1]))
            charset = known[name]
            actions += entries.check(_listing(node, charset), nodes, world)
            actions += [] if present else [generate(name, charset)]
        elif not present:
            text = "this host does not have the locale %s, and no %s to generate it; require the package that brings it"
            raise CheckError((text + " (on Debian: locales)") % (name, LIST))
    for variable in node.attrs.get("default_for") or ():
        actions += entries.check(_default(node, variable, _file(world)), nodes, world)
    return actions


def _supported(world: World) -> dict[str, str]:
    """Return the locales that the host can generate: name → charset."""
    known: dict[str, str] = {}
    for path in reversed(SUPPORTED):
        if world.stat(path) is not None:
            rows = [line.split() for line in world.read(path).decode("utf-8", "replace").splitlines()]
            known.update((row[0], row[1]) for row in rows if len(row) == 2)
    return known


def _deletion(world: World, name: str) -> list[Action]:
    """Return what removes a locale.

    :raises CheckError: if it was not generated, but is part of a package
    """
    path = posixpath.join(DIRECTORY, listed(name))
    if world.stat(path) is not None:
        raise CheckError(f"{path} is not a generated locale; remove the package that brings it")
    return [delete(name)]


def _listing(node: HostNode, charset: str) -> HostNode:
    """Return the line of the locale in the list. A line that is commented out is used again."""
    name = re.escape(node.attrs["name"])
    match = rf"^\s*{name}\s" if node.attrs.get("absent") else rf"^\s*(#\s*)?{name}\s+{re.escape(charset)}\s*$"
    return entries.entry(node, LIST, f"{node.attrs['name']} {charset}", match)


def _file(world: World) -> str:
    """Return the path of the file with the default locale. Newer versions of Debian link their own one to the other."""
    stat = world.stat(DEBIAN_DEFAULT)
    debian = stat.file_type == "file" if stat is not None else world.stat(posixpath.dirname(DEBIAN_DEFAULT)) is not None
    return DEBIAN_DEFAULT if debian and world.stat("/etc/debian_version") is not None else DEFAULT


def _default(node: HostNode, variable: str, path: str) -> HostNode:
    """Return the line of a variable in the file with the default locale."""
    line = f"{variable}={node.attrs['name']}"
    return entries.entry(node, path, line, rf"^\s*{variable}\s*=", mode="0644")


def effect(node: HostNode, world: World) -> str:
    """Return the line that wins over the default of the node in new sessions; "" if none does."""
    name, file = node.attrs["name"], _file(world)
    for path in dict.fromkeys((file, ENVIRONMENT)):
        for place in sources.places(world, path):
            found = re.match(r"\s*(?:export\s+)?(\w+)\s*=\s*[\"']?([^\"'\s#]+)", place.text)
            if found is None or listed(found[2]) == listed(name):
                continue
            for variable in node.attrs.get("default_for") or ():
                # Debian's sessions read their file after this one; elsewhere, only systemd reads the file, before it.
                later = found[1] == variable and path == ENVIRONMENT and file == DEFAULT
                if later or (found[1] == "LC_ALL" and variable != "LC_ALL"):
                    return f"sessions use {found[2]} for {variable}: {place} wins"
    return ""


def remember(node: HostNode, world: World) -> LocaleMemory:
    """Record whether the host has the locale, its line in the list, and the lines of the default."""
    name, file = node.attrs["name"], _file(world)
    listed_here = name not in BUILT_IN and world.stat(LIST) is not None
    charset = _supported(world).get(name, "") if listed_here else ""
    return {
        "present": world.entry("locale", listed(name)) is not None,
        "charset": charset,
        "listing": entries.remember(_listing(node, charset), world) if listed_here else None,
        "defaults": {variable: entries.remember(_default(node, variable, file), world) for variable in VARIABLES},
    }


def undo(node: HostNode, memory: LocaleMemory, world: World) -> ActionSpec:
    """Restore the lines of the list and of the default, and remove or generate the locale."""
    attrs, name, charset = node.attrs, node.attrs["name"], memory["charset"]
    actions: list[Action] = []
    left: list[str] = []
    for variable in attrs.get("default_for") or ():
        was = memory["defaults"][variable]
        spec = entries.undo(_default(node, variable, was["path"]), was, world)
        actions, left = [*actions, *spec.actions], [*left, *spec.left]
    if memory["listing"] is not None:
        spec = entries.undo(_listing(node, charset), memory["listing"], world)
        actions, left = [*actions, *spec.actions], [*left, *spec.left]
    present = world.entry("locale", listed(name)) is not None
    if present and not memory["present"] and not attrs.get("absent"):
        actions.append(delete(name))
    elif not present and memory["present"] and attrs.get("absent"):
        actions.append(generate(name, charset))
    return ActionSpec(actions, left=left)
