"""What pacman would do. It prints the packages of a transaction, but no conflicts: statecfg finds these."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence

from statecfg.remote.graph.model import CheckError
from statecfg.remote.machine.world import Probe, World
from statecfg.resources.packages import package_steps
from statecfg.resources.packages.managers.pacman import pacman_database
from statecfg.resources.shared import records

SYNC = "/var/lib/pacman/sync"
FETCH = ["pacman", "-Sy", "--noconfirm"]  # fetches the lists of all repositories
# pacman's answers depend on these: the installed packages, its configuration, its lists and its cache.
INPUTS = ("packages", ("/etc/pacman.conf", "/etc/pacman.d", "/var/lib/pacman", pacman_database.CACHE))
MARK = "package:"  # pacman prints other lines, too, such as `loading packages...`
PRINT = ["--print", "--print-format", MARK + " %n %v", "--noconfirm"]
PLAIN = {"LC_ALL": "C"}
_BREAKS = re.compile(r"removing \S+ breaks dependency '([^']+)' required by (\S+)")
_RELATION = re.compile(r"([^<>=]+)(<=|>=|<|>|=)?(.*)")


def run(world: World, argv: Sequence[str]) -> Probe:
    """Ask pacman something."""
    return world.probe(["pacman", *argv], inputs=INPUTS, env=PLAIN)


def refused(probe: Probe) -> CheckError:
    """Return pacman's own message."""
    lines = [line.strip() for line in (probe.errors.decode("utf-8", "replace") + probe.text).splitlines()]
    messages = [line for line in lines if line and not line.startswith("warning:")]
    return CheckError(f"pacman can't do this: {' '.join(messages[:12])}")


def printed(world: World, argv: Sequence[str]) -> dict[str, str]:
    """Return the packages that pacman prints: name → version.

    :raises CheckError: if pacman refuses
    """
    probe = run(world, argv)
    if probe.status != 0:
        raise refused(probe)
    rows = [line.split() for line in probe.text.splitlines()]
    return {row[1]: row[2] for row in rows if row[:1] == [MARK]}


def information(world: World, names: Iterable[str]) -> dict[str, dict[str, list[str]]]:
    """Return the lists' information about packages: name → `Version`, `Provides`, `Conflicts With`."""
    found: dict[str, dict[str, list[str]]] = {}
    named = sorted(names)
    if not named:
        return found
    for block in run(world, ["-Si", "--", *named]).text.split("\n\n"):
        rows = [line.partition(" : ") for line in block.splitlines()]
        fields = {key.strip(): value.split() for key, _, value in rows if value}
        if fields.get("Name"):
            found.setdefault(fields["Name"][0], fields)
    return found


def sources(world: World, wanted: Mapping[str, str | None]) -> tuple[list[str], list[str]]:
    """Return the packages that pacman takes from its repositories, and files from its cache for other versions.

    :param wanted: name → version or pattern; None: any
    :raises CheckError: if a version is not available
    """
    known = information(world, [name for name, version in wanted.items() if version])
    files = world.facet("pacman_cache")
    there = world.facet("packages")
    names, cached = [], []
    for name, version in sorted(wanted.items()):
        offered = known.get(name, {}).get("Version", [""])[0]
        if not version or (offered and fnmatch.fnmatchcase(offered, version)):
            names.append(name)
            continue
        if fnmatch.fnmatchcase(there.get(name, {}).get("version", ""), version):
            continue
        mine = {file: entry["version"] for file, entry in files.items() if entry["name"] == name}
        fitting = [file for file, has in sorted(mine.items()) if fnmatch.fnmatchcase(has, version)]
        if not fitting:
            has = ", ".join(sorted({each for each in (offered, *mine.values()) if each}))
            if not has:
                raise unknown_package(world, name)
            raise package_steps.unknown_version("pacman", name, version, has)
        cached.append(f"{pacman_database.CACHE}/{fitting[-1]}")
    return names, cached


def unknown_package(world: World, name: str) -> CheckError:
    """Return the error about a package that pacman does not know. It suggests the nearest name."""
    if not package_steps.updated(world, "pacman"):
        return CheckError("pacman has no package lists yet; update_cache: 86400 fetches them")
    names = [each for each in run(world, ["-Slq"]).text.split() if each[:2] == name[:2]]
    return package_steps.unknown_name("pacman", name, names)


def installation(world: World, wanted: Mapping[str, str | None]) -> records.Steps:
    """Return what an installation would do, including the packages that conflicts remove.

    :raises CheckError: if pacman refuses
    """
    names, files = sources(world, wanted)
    steps: dict[str, str | None] = {}
    if names:
        steps.update(printed(world, ["-S", "--needed", *PRINT, "--", *names]))
    if files:
        steps.update(printed(world, ["-U", *PRINT, "--", *files]))
    return with_conflicts(world, steps)


def with_conflicts(world: World, steps: Mapping[str, str | None]) -> records.Steps:
    """Return the steps of an installation with the packages that it removes because of conflicts.

    :raises CheckError: if new packages exclude each other, or if an installed package needs one that is removed
    """
    known = information(world, steps)
    local = world.facet("pacman_local")
    new = {name: {"NAME": [name], "VERSION": [version or ""]} for name, version in steps.items()}
    for name, fields in known.items():
        if name in new:
            new[name].update(PROVIDES=_list(fields, "Provides"), CONFLICTS=_list(fields, "Conflicts With"))
    removed: dict[str, str | None] = {}
    for name, fields in new.items():
        for other, theirs in {**local, **new}.items():
            if other == name or not (_excludes(world, fields, theirs) or _excludes(world, theirs, fields)):
                continue
            if other in new:
                raise CheckError("pacman can't do this: %s and %s conflicts" % tuple(sorted((name, other))))
            removed[other] = None
    _check_needs(world, removed, new)
    return {**steps, **removed}


def _list(fields: Mapping[str, list[str]], key: str) -> list[str]:
    return [each for each in fields.get(key, ()) if each != "None"]


def _excludes(world: World, one: Mapping[str, list[str]], other: Mapping[str, list[str]]) -> bool:
    """Return whether a package conflicts with another one. Source: "conflicts" in PKGBUILD(5)."""
    for conflict in one.get("CONFLICTS", ()):
        match = _RELATION.match(conflict)
        name, relation, version = match.groups() if match else (conflict, "", "")
        if name == other["NAME"][0] and (not relation or fits(world, other["VERSION"][0], relation, version)):
            return True
        for provided in other.get("PROVIDES", ()):
            has, _, its = provided.partition("=")
            if has == name and (not relation or (its and fits(world, its, relation, version))):
                return True
    return False


def fits(world: World, version: str, relation: str, limit: str) -> bool:
    """Return whether a version has a relation to another one. A limit without a release fits all of them.

    :raises CheckError: if pacman's program can't compare them
    """
    if "-" not in limit:
        version = version.rpartition("-")[0] or version
    probe = world.probe(["vercmp", version, limit], inputs=INPUTS)
    if probe.status != 0:
        raise CheckError(f"vercmp can't compare the versions {version} and {limit}")
    order = int(probe.text)
    return {"<": order < 0, "<=": order <= 0, "=": order == 0, ">=": order >= 0, ">": order > 0}[relation]


def _check_needs(world: World, removed: records.Steps, new: Mapping[str, Mapping[str, list[str]]]) -> None:
    if not removed:
        return
    probe = run(world, ["-R", *PRINT, "--", *sorted(removed)])
    provided = {each for fields in new.values() for each in (fields["NAME"][0], *fields.get("PROVIDES", ()))}
    names = {pacman_database.named(each) for each in provided}
    for need, package in _BREAKS.findall(probe.text + probe.errors.decode("utf-8", "replace")):
        if pacman_database.named(need) not in names and package not in removed:
            text = "pacman can't do this: it would remove %s, and %s needs %s"
            raise CheckError(text % (", ".join(sorted(removed)), package, need))


def removal(world: World, names: Iterable[str], unneeded: bool = False) -> records.Steps:
    """Return what a removal would do, including the packages that need these.

    :param unneeded: whether dependencies that nothing else needs are removed, too
    :raises CheckError: if pacman refuses
    """
    there = world.facet("packages")
    present = sorted(name for name in names if name in there)
    if not present:
        return {}
    return dict.fromkeys(printed(world, ["-Rcs" if unneeded else "-Rc", *PRINT, "--", *present]))
