"""Global packages of npm: what is installed, the ops that change it, and the undo."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import paths, places, records

if TYPE_CHECKING:
    from typing import TypedDict

    class NpmMemory(TypedDict):
        """The memory of an `npm_package`. `version` is the installed version; None if it was missing."""

        version: str | None


# The first line that says what is wrong. Lines with a field, such as `npm error code EEXIST`, are for programs.
_ERROR = re.compile(r"^npm (?:error|ERR!) (?!code |path |errno |syscall |dest )(.*\S.*)", re.M)
_QUIET = ["--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]


def directory(attrs: records.Attrs) -> str:
    """Return the directory of a package."""
    return posixpath.join(attrs["prefix"], "lib/node_modules", attrs["name"])


def _npm(machine: Machine, prefix: str, words: list[str], package: str, user: str | None, timeout: float) -> Result:
    effect = {"files": [posixpath.join(prefix, "lib/node_modules"), posixpath.join(prefix, "bin")]}
    argv = ["npm", *words, "--global", "--prefix", prefix, *_QUIET, "--", package]
    result = places.run(machine, argv, prefix, user, _obeyed(prefix, package), effect=effect, timeout=timeout)
    said = _ERROR.findall(result.get("log") or "")
    if result["status"] != "ok" and said:  # the last line only names npm's own log
        result = {**result, "reason": f"npm: {said[0].strip()}"}
    return result


def _obeyed(prefix: str, package: str) -> list[str]:
    """Return the paths of a prefix that decide what npm does."""
    name = package[0] + package[1:].partition("@")[0]  # the name of a scope begins with @
    modules = posixpath.join(prefix, "lib/node_modules")
    return [posixpath.join(prefix, each) for each in ("etc/npmrc", "bin")] + [f"{modules}/{name}/package.json"]


@op(mutex="npm")
def install(
    machine: Machine,
    package: str,
    prefix: str,
    was: str | None,
    registry: str | None = None,
    ca: str | None = None,
    run_scripts: bool = False,
    user: str | None = None,
    timeout: float = 600.0,
) -> Result:
    """Install a package.

    :param package: its name, with an exact version if it must have one
    :param was: the installed version, for the report
    """
    words = ["install", *(["--registry", registry] if registry else []), *(["--cafile", ca] if ca else [])]
    return _npm(machine, prefix, [*words, *([] if run_scripts else ["--ignore-scripts"])], package, user, timeout)


@op(mutex="npm")
def uninstall(machine: Machine, package: str, prefix: str, was: str, user: str | None = None) -> Result:
    """Remove a package, and the packages that only it needs.

    :param was: the installed version, for the report
    """
    return _npm(machine, prefix, ["uninstall"], package, user, 600.0)


def installed(attrs: records.Attrs, world: World) -> str | None:
    """Return the version of an installed package; None if it is missing.

    :raises Unknown: if a required node may change it
    :raises CheckError: if something else is there
    """
    path = directory(attrs)
    stat = paths.look(world, path)
    if stat is None:
        return None
    if stat.file_type != "directory":
        paths.refuse(path, stat, "a package of npm")
    try:
        version = json.loads(places.read(world, path + "/package.json")).get("version")
    except (OSError, ValueError, AttributeError, RecursionError):
        version = None
    if not isinstance(version, str):
        raise CheckError(f"{path} is not a package of npm: it has no package.json with a version")
    return version


def _install(attrs: records.Attrs, version: str | None, was: str | None) -> Action:
    package = attrs["name"] + ("@" + version if version else "")
    names = ("registry", "ca", "run_scripts", "user", "timeout")
    return install(package, attrs["prefix"], was, **{name: attrs.get(name) for name in names})


def _user(attrs: records.Attrs, world: World) -> str | None:
    """Return the user who runs npm: root never runs what another user can have put into the prefix.

    :raises CheckError: see `places.runner`
    """
    prefix = attrs["prefix"]
    return places.runner(world, prefix, attrs.get("user"), "npm", _obeyed(prefix, attrs["name"]), prefix)


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the installed version with the wanted one.

    :raises CheckError: if something else is at the path of the package, or there is no such prefix
    """
    attrs, version = node.attrs, node.attrs.get("version")
    was = installed(attrs, world)
    paths.account(world, "users", attrs.get("user"), node, nodes)
    attrs = {**attrs, "user": _user(attrs, world)}
    if attrs.get("absent"):
        return [uninstall(attrs["name"], attrs["prefix"], was, attrs["user"])] if was is not None else []
    if was is None:
        paths.require_parent(world, posixpath.join(attrs["prefix"], "any"), node, nodes)
    return [_install(attrs, version, was)] if was is None or version not in (None, was) else []


def remember(node: HostNode, world: World) -> NpmMemory:
    """Record the installed version."""
    return {"version": installed(node.attrs, world)}


def undo(node: HostNode, memory: NpmMemory, world: World) -> ActionSpec:
    """Remove a package that the node installed, or restore the former version."""
    attrs, was, now = node.attrs, memory["version"], installed(node.attrs, world)
    if now == was or (attrs.get("absent") and now is not None):
        return ActionSpec()
    wanted = attrs.get("version")
    if wanted is not None and now is not None and now != wanted:
        return ActionSpec(left=[f"{attrs['name']} stays at {now}: others installed it after this node"])
    attrs = {**attrs, "user": _user(attrs, world)}
    if was is not None:
        return ActionSpec([_install({**attrs, "timeout": attrs.get("timeout") or 600.0}, was, now)])
    return ActionSpec([uninstall(attrs["name"], attrs["prefix"], str(now), attrs["user"])])
