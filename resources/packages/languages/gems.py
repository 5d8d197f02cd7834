"""Gems of Ruby: which versions are installed, the ops that change them, and the undo."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import paths, places, records

if TYPE_CHECKING:
    from typing import TypedDict

    class GemMemory(TypedDict):
        """The memory of a `gem`.

        :ivar versions: the versions that were installed before
        :ivar installed: the versions that the node installed
        """

        versions: list[str]
        installed: list[str]


# The directories of gems, each with its directory of programs: Ruby's, and the user's.
_DIRECTORIES = "puts Gem.default_dir, Gem.bindir(Gem.default_dir), Gem.user_dir, Gem.bindir(Gem.user_dir)"
RUBY = ["ruby", "--disable=rubyopt", "-e", _DIRECTORIES]
_STUB = re.compile(rb"^# stub: (\S+) (\S+) ", re.MULTILINE)  # gem writes this line: name and version


def _obeyed(directory: str, programs: str) -> list[str]:
    """Return the paths of a directory of gems that decide what gem runs."""
    names = ("specifications", "plugins", "extensions", "gems")
    return [programs, *(posixpath.join(directory, name) for name in names)]


def _effect(directory: str, programs: str) -> records.Effect:
    return {"files": [directory, programs]}


@op(mutex="gem")
def install(
    machine: Machine,
    gem: str,
    version: str | None,
    directory: str,
    bin: str,
    source: str | None = None,
    ca: str | None = None,
    user: str | None = None,
    timeout: float = 600.0,
) -> Result:
    """Install a gem, and the gems that it needs.

    :param version: the exact version; None: the newest
    """
    words = ["gem", "install", gem, "--install-dir", directory, "--bindir", bin, "--no-document", "--quiet"]
    words += ["--version", version] if version else []
    words += ["--clear-sources", "--source", source] if source else []
    env = {"SSL_CERT_FILE": ca} if ca else None
    options: dict[str, Any] = {"effect": _effect(directory, bin), "env": env, "timeout": timeout}
    return places.run(machine, words, directory, user, _obeyed(directory, bin), **options)


@op(mutex="gem")
def uninstall(
    machine: Machine, gem: str, versions: list[str], directory: str, bin: str, user: str | None = None
) -> Result:
    """Remove versions of a gem, and its programs with the last one. It fails if another gem needs one of them."""
    result: Result = {"status": "ok"}
    home = {"GEM_HOME": directory, "GEM_PATH": directory}  # gem finds only the gems in these
    for version in versions:
        words = ["gem", "uninstall", gem, "--version", version, "--install-dir", directory, "--bindir", bin]
        words += ["--executables", "--abort-on-dependent", "--quiet"]
        options: dict[str, Any] = {"effect": _effect(directory, bin), "env": home}
        result = places.run(machine, words, directory, user, _obeyed(directory, bin), **options)
        if result["status"] != "ok":
            return result
    return result


def directories(attrs: records.Attrs, world: World) -> tuple[str, str]:
    """Return the directory of gems and the directory of programs of a node.

    :raises Unknown: if a required node may install Ruby
    :raises CheckError: if there is no Ruby
    """
    if attrs.get("directory"):
        return attrs["directory"], attrs.get("bin") or posixpath.join(attrs["directory"], "bin")
    home: str | None = None
    if attrs.get("user_install") and attrs.get("user"):
        home = (world.entry("users", attrs["user"]) or {}).get("home")
        if not home:
            raise CheckError(f"the user {attrs['user']} has no home, so it has no gems")
    # The answers for several homes differ, so they are told apart by an argument that the program ignores.
    argv, env = [*RUBY, *([home] if home else [])], {"HOME": home} if home else None
    options = {"user": attrs["user"]} if home else {}
    answer = world.probe(argv, inputs=("packages", ["/usr/bin", "/usr/local/bin"]), env=env, **options)
    lines = answer.text.splitlines()
    if answer.status or len(lines) != 4:
        why = (answer.errors.decode("utf-8", "replace").strip().splitlines() or ["no answer"])[0]
        raise CheckError(f"can't find Ruby's gem directory: {why}; require the package with ruby")
    return (lines[2], lines[3]) if attrs.get("user_install") else (lines[0], lines[1])


def installed(world: World, name: str, directory: str) -> list[str]:
    """Return the installed versions of a gem.

    :raises Unknown: if a required node may change them
    :raises CheckError: if a specification can't be read
    """
    specifications, found = posixpath.join(directory, "specifications"), set()
    stat = paths.look(world, specifications)
    if stat is not None and stat.file_type != "directory":
        paths.refuse(specifications, stat, "a directory")
    for entry in world.listdir(specifications) if stat is not None else ():
        if entry.startswith(name + "-") and entry.endswith(".gemspec"):
            path = posixpath.join(specifications, entry)
            stub = _STUB.search(places.read(world, path))
            if stub is None:
                raise CheckError(f"{path} has no gem name or version; install this gem again")
            if stub.group(1) == name.encode():  # the name of another gem can begin with this name
                found.add(stub.group(2).decode())
    return sorted(found)


def _install(attrs: records.Attrs, version: str | None, where: tuple[str, str], user: str | None) -> Action:
    options: dict[str, Any] = {"source": attrs.get("source"), "ca": attrs.get("ca"), "user": user}
    return install(attrs["name"], version, *where, timeout=attrs.get("timeout") or 600.0, **options)


def _user(attrs: records.Attrs, world: World, where: tuple[str, str]) -> str | None:
    """Return the user who runs gem: root never runs plugins that another user can have put into the directory.

    :raises CheckError: see `places.runner`
    """
    return places.runner(world, where[0], attrs.get("user"), "gem", _obeyed(*where), where[0])


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the installed versions with the wanted one.

    :raises CheckError: if the installed versions can't be read, or there is no such user or directory
    """
    attrs, version = node.attrs, node.attrs.get("version")
    paths.account(world, "users", attrs.get("user"), node, nodes)
    where = directories(attrs, world)
    now, user = installed(world, attrs["name"], where[0]), _user(attrs, world, where)
    if attrs.get("absent"):
        return [uninstall(attrs["name"], now, *where, user=user)] if now else []
    if attrs.get("directory"):
        paths.require_parent(world, where[0], node, nodes)
    actions = [_install(attrs, version, where, user)] if (version not in now if version else not now) else []
    others = [each for each in now if each != version] if attrs.get("only_version") else []
    if others:
        actions.append(uninstall(attrs["name"], others, *where, user=user))
    return actions


def remember(node: HostNode, world: World) -> GemMemory:
    """Record the installed versions."""
    return {"versions": installed(world, node.attrs["name"], directories(node.attrs, world)[0]), "installed": []}


def learn(node: HostNode, memory: GemMemory, world: World) -> Mapping[str, Any]:
    """Record the versions that the node installed."""
    attrs = node.attrs
    if attrs.get("absent"):
        return {"installed": []}
    now = installed(world, attrs["name"], directories(attrs, world)[0])
    new = [attrs["version"]] if attrs.get("version") else [] if memory["installed"] or memory["versions"] else now
    return {"installed": sorted({*memory["installed"], *new} - {*memory["versions"]})}


def undo(node: HostNode, memory: GemMemory, world: World) -> ActionSpec:
    """Remove the versions that the node installed, and install those that it removed."""
    attrs, was = node.attrs, memory["versions"]
    where = directories(attrs, world)
    now, user = installed(world, attrs["name"], where[0]), _user(attrs, world, where)
    gone = [each for each in memory["installed"] if each in now]
    removed = attrs.get("only_version") or (attrs.get("absent") and not now)
    actions = [_install(attrs, each, where, user) for each in was if each not in now] if removed else []
    if gone:
        actions.append(uninstall(attrs["name"], gone, *where, user=user))
    return ActionSpec(actions)
