"""Questions for zypper, with its answers in XML. It changes nothing and fetches nothing.

zypper fetches missing lists even if it is told not to. So a question about packages is only asked if all lists exist.
"""

from __future__ import annotations

import fnmatch
import functools
import html
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from statecfg.remote.graph.model import CheckError
from statecfg.remote.machine.world import Probe, Stat, World
from statecfg.resources.packages import package_steps
from statecfg.resources.packages.managers.rpm import rpm
from statecfg.resources.shared import records

ZYPPER = "/usr/bin/zypper"
CACHE = "/var/cache/zypp"
RAW = CACHE + "/raw"
AUTO = "/var/lib/zypp/AutoInstalled"
LOCKS = "/etc/zypp/locks"
# zypper's answers depend on these: the installed packages, its configuration with the locks, its lists and records.
INPUTS = ("packages", ("/etc/zypp", "/usr/etc/zypp", "/etc/rpm", CACHE, "/var/lib/zypp"))
PLAIN = {"LC_ALL": "C", "ZYPP_LOCK_TIMEOUT": "120"}  # wait for another zypper that runs
TIMEOUT = 300.0
CALL = ["zypper", "--non-interactive", "--no-refresh"]
LOCAL = "--disable-repositories"
INSTALL = ["install", "--auto-agree-with-licenses", "--oldpackage"]
ERASE = "--force-resolution"  # the solver may remove packages
NO_PROVIDER = "No provider of '%s' found"
NOT_FOUND = 104
# The files of the lists of each kind of repository. zypper sets their time whenever it asks for newer ones.
INDEXES = ("repodata/repomd.xml", "content", "cookie")
# Runs zypper without its locks: the configuration of the host, and one more setting.
UNLOCKED = """\
{ cat /usr/etc/zypp/zypp.conf /etc/zypp/zypp.conf 2>/dev/null; printf '\\n[main]\\nlocksfile.apply = no\\n'; } |
ZYPP_CONF=/dev/stdin "$@"
"""
_SECTION = re.compile(r"<(to-[a-z-]+)>(.*?)</\1>", re.S)
_SOLVABLE = re.compile(r"<solvable\s([^>]*)>")
_REPOSITORY = re.compile(r"<repo\s([^>]*)>")
_ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')
_ERROR = re.compile(r'<message type="error">(.*?)</message>|<description>(.*?)</description>\s*<text>', re.S)
_INFO = re.compile(r'<message type="info">(-?\d+)</message>')


def run(world: World, argv: Sequence[str], unlocked: bool = False) -> Probe:
    """Ask zypper something.

    :param unlocked: whether it ignores its locks
    :raises CheckError: if the host has no zypper
    """
    if world.stat(ZYPPER) is None:
        raise CheckError("this host has no zypper, which installs the packages of systems like its own")
    whole = [*CALL, "--xmlout", *argv]
    if unlocked:
        whole = ["sh", "-c", UNLOCKED, "sh", *whole]
    return world.probe(whole, timeout=TIMEOUT, inputs=INPUTS, env=PLAIN)


def refused(probe: Probe) -> str:
    """Return zypper's own message."""
    errors = [" ".join(html.unescape(one or other).split()) for one, other in _ERROR.findall(probe.text)]
    rest = probe.errors.decode("utf-8", "replace").split()
    return "; ".join(errors) or " ".join(rest) or f"status {probe.status}"


def _attributes(text: str) -> dict[str, str]:
    return {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(text)}


def repositories(world: World) -> list[str]:
    """Return the aliases of the enabled repositories.

    :raises CheckError: if zypper fails
    """
    probe = run(world, ["repos"])
    if probe.status not in (0, 6):  # 6: there are none
        raise CheckError(f"zypper can't list its repositories: {refused(probe)}")
    found = [_attributes(text) for text in _REPOSITORY.findall(probe.text)]
    return sorted(each["alias"] for each in found if each.get("enabled") == "1")


def _indexes(world: World, alias: str) -> list[Stat]:
    folder = f"{RAW}/{alias.replace('/', '_')}"
    stats = [world.stat(f"{folder}/{index}") for index in INDEXES]
    return [stat for stat in stats if stat is not None]


def listed(world: World, alias: str) -> bool:
    """Return whether zypper has the lists of a repository."""
    return bool(_indexes(world, alias))


def fetched(world: World, alias: str) -> int:
    """Return when zypper last fetched the lists of a repository, in seconds since 1970; 0 if it has none."""
    moments = [stat.identity[2] / 1e9 for stat in _indexes(world, alias) if stat.identity is not None]
    return int(max(moments, default=0))


def require_lists(world: World) -> None:
    """Check that zypper has the lists of its repositories, so that it fetches none.

    :raises CheckError: if lists are missing
    """
    missing = [alias for alias in repositories(world) if not listed(world, alias)]
    if missing:
        text = "zypper lacks the lists of %s; update_cache: 86400 fetches them"
        raise CheckError(text % ", ".join(missing))


def spec(name: str, version: str | None = None) -> str:
    """Return a package as an argument of zypper."""
    return name.replace(":", ".") + ("=" + version if version else "")


def key(world: World) -> Callable[[Mapping[str, str]], str]:
    """Return a function that returns the name of a package, with its architecture if that is a foreign one."""
    native = rpm.native(world)
    return lambda entry: entry["name"] if entry["arch"] in native else f"{entry['name']}:{entry['arch']}"


def steps(world: World, argv: Sequence[str], unlocked: bool = False) -> records.Steps:
    """Return what a command of zypper would do: name → new version (None: it removes the package).

    :param argv: the command, its options and its packages
    :raises CheckError: with zypper's own message, if zypper refuses
    """
    probe = run(world, [*_simulated(argv)], unlocked)
    if probe.status != 0:
        raise CheckError(f"zypper can't do this: {refused(probe)}")
    named = key(world)
    removed: dict[str, str | None] = {}
    new: dict[str, str | None] = {}
    for section, text in _SECTION.findall(probe.text):
        for entry in map(_attributes, _SOLVABLE.findall(text)):
            if entry.get("type", "package") != "package":
                continue
            if section == "to-remove":
                removed[named(entry)] = None
            else:
                new[named(entry)] = entry["edition"]
    return {**removed, **new}


def _simulated(argv: Sequence[str]) -> list[str]:
    at = next(index for index, word in enumerate(argv) if not word.startswith("-"))
    return [*argv[: at + 1], "--dry-run", *argv[at + 1 :]]


def search(world: World, argv: Sequence[str]) -> list[dict[str, str]]:
    """Return the packages of the repositories that a search finds.

    :raises CheckError: if zypper fails
    """
    probe = run(world, ["search", "--type", "package", *argv])
    if probe.status not in (0, NOT_FOUND):
        raise CheckError(f"zypper can't search its lists: {refused(probe)}")
    found = map(_attributes, _SOLVABLE.findall(probe.text))
    return [entry for entry in found if entry.get("repository") != "(System Packages)"]


def chosen(world: World, wanted: Mapping[str, str | None]) -> list[str]:
    """Return packages as arguments of zypper, each with the newest version that fits.

    An installed package that fits and that no repository has is left out.

    :param wanted: name → version or pattern; None: any
    :raises CheckError: if a version is not available
    """
    fixed = {name: version for name, version in wanted.items() if version}
    found = [spec(name) for name in sorted(wanted) if name not in fixed]
    if not fixed:
        return found
    bare = sorted({name.partition(":")[0] for name in fixed})
    named = key(world)
    rows = [(named(row), row["edition"]) for row in search(world, ["--details", "--match-exact", "--", *bare])]
    for name, version in sorted(fixed.items()):
        available = sorted({edition for known, edition in rows if known == name})
        fitting = [edition for edition in available if fnmatch.fnmatchcase(edition, version)]
        if fitting:
            found.append(spec(name, max(fitting, key=_order(world))))
        elif not fnmatch.fnmatchcase((world.entry("packages", name) or {}).get("version", ""), version):
            if not available:
                raise unknown_package(world, name)
            raise package_steps.unknown_version("zypper", name, version, ", ".join(available))
    return found


def _order(world: World) -> Any:
    """Return a sort key of versions. zypper itself compares them."""

    def compare(one: str, other: str) -> int:
        probe = run(world, ["--terse", "versioncmp", one, other])
        match = _INFO.search(probe.text)
        if probe.status != 0 or match is None:
            raise CheckError(f"zypper can't compare the versions {one} and {other}")
        return int(match.group(1))

    return functools.cmp_to_key(compare)


def unknown_package(world: World, name: str) -> CheckError:
    """Return the error about a package that zypper does not know. It suggests the nearest name."""
    found = search(world, ["--", name[:2] + "*"])
    return package_steps.unknown_name("zypper", name, [entry["name"] for entry in found])
