"""Global packages of npm: what is installed, and the ops that change it."""

from __future__ import annotations

import json
import posixpath
import re
from typing import Any

from statecfg.remote.graph.facet_entry import FacetEntry
from statecfg.remote.graph.model import Action, CheckError
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.shared import paths, places, records

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


class NpmPackage(FacetEntry):
    """The version of a package. No facet contains it: the installed package does."""

    fields, kept_as, single, whole = ("version",), "version", True, True
    noun = "the npm package"

    def stays(self, field: str, now: Any) -> str:
        """Return the message about another version."""
        return f"{self.key()} stays at {now}: others installed it after this node"

    def present(self) -> records.Fields | None:
        """Return the installed version."""
        version = installed(self.attrs, self.world)
        return None if version is None else {"version": version}

    def require(self, now: records.Fields | None) -> None:
        """Check that the user and the prefix exist."""
        paths.account(self.world, "users", self.attrs.get("user"), self.node, self.nodes)
        if now is None:
            paths.require_parent(self.world, posixpath.join(self.attrs["prefix"], "any"), self.node, self.nodes)

    def _user(self) -> str | None:
        """Return the user who runs npm: root never runs what another user can have put into the prefix.

        :raises CheckError: see `places.runner`
        """
        prefix = self.attrs["prefix"]
        obeyed = _obeyed(prefix, self.key())
        return places.runner(self.world, prefix, self.attrs.get("user"), "npm", obeyed, prefix)

    def change(self, now: records.Fields, fields: records.Fields) -> list[Action]:
        """Install a version; the newest one if the node names none."""
        package = self.key() + ("@" + fields["version"] if fields.get("version") else "")
        more = {name: self.attrs.get(name) for name in ("registry", "ca", "run_scripts")}
        timeout = self.attrs.get("timeout") or 600.0
        return [install(package, self.attrs["prefix"], now.get("version"), user=self._user(), timeout=timeout, **more)]

    def remove(self, now: records.Fields) -> list[Action]:
        """Remove the package."""
        return [uninstall(self.key(), self.attrs["prefix"], now["version"], self._user())]
