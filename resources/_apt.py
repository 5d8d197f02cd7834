"""Debian's packages: what is installed, what apt would do, and the steps that change it."""

from __future__ import annotations

import re
import time

from statecfg.remote.model import CheckError, Unknown, ok
from statecfg.remote.nodetype import table
from statecfg.remote.ops import op
from statecfg.resources._paths import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Sequence, Set

    from statecfg.remote.model import Action, Result
    from statecfg.remote.world import Machine, World

    Entry = Dict[str, Any]

STATUS = "/var/lib/dpkg/status"
LISTS = "/var/lib/apt/lists"
MARKS = "/var/lib/apt/extended_states"
UPDATED = "now"  # in place of a time: the lists are going to be fetched in this run
TIMEOUT = 1800.0
LOCK = ("-o", "DPkg::Lock::Timeout=300")  # seconds to wait for another apt to end
QUIET = {"DEBIAN_FRONTEND": "noninteractive", "APT_LISTCHANGES_FRONTEND": "none", "NEEDRESTART_MODE": "l"}
# A configuration file that was changed on the host stays as it is; a question about it would never be answered.
KEEP = ("-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold", "-o", "Dpkg::Use-Pty=0")
# What a package brings beside itself is known only once its scripts have run.
BRINGS = ["files", "units", "users", "groups"]

_FIELD = re.compile(r"^(Package|Status|Version|Architecture): (.*)$", re.M)
_MARK = re.compile(r"^(Package|Auto-Installed): (.*)$", re.M)
_STEP = re.compile(r"^(Inst|Remv|Purg) (\S+)(?: \[[^\]]*\])?(?: \((\S+))?", re.M)


@table("packages")
def packages(host: Any) -> Dict[str, Entry]:
    """Load what dpkg knows: name → version, and `state` where that is not installed and configured."""
    try:
        text = host.read(STATUS).decode("utf-8", "replace")
    except OSError:
        raise CheckError("this host has no dpkg: only Debian and what derives from it is supported") from None
    found: Dict[str, Entry] = {}
    native = ""
    for paragraph in text.split("\n\n"):
        fields = dict(_FIELD.findall(paragraph))
        state = fields.get("Status", "").rpartition(" ")[2]
        if state in ("", "not-installed"):
            continue
        name, architecture = fields["Package"], fields.get("Architecture", "all")
        if name == "dpkg":
            native = architecture
        entry = {"version": fields.get("Version", "")} if state != "config-files" else {}
        found["%s:%s" % (name, architecture)] = dict(entry, **({} if state == "installed" else {"state": state}))
    suffixes = (":all", ":" + native)
    return {key.rpartition(":")[0] if key.endswith(suffixes) else key: entry for key, entry in found.items()}


@table("automatic")
def automatic(host: Any) -> Dict[str, Entry]:
    """Load the packages that apt installed only because others need them: name → `auto`."""
    try:
        text = host.read(MARKS).decode("utf-8", "replace")
    except OSError:
        return {}
    found = {}
    for paragraph in text.split("\n\n"):
        fields = dict(_MARK.findall(paragraph))
        if fields.get("Auto-Installed") == "1":
            found[fields.get("Package", "")] = {"auto": True}
    return found


@table("apt")
def apt(host: Any) -> Dict[str, Entry]:
    """Load when apt's lists were last fetched: `lists` → `updated`, seconds since 1970, 0 for never."""
    moments = [0.0]
    for path in (LISTS, "/var/lib/apt/periodic/update-success-stamp"):
        stat = host.stat(path)
        if stat is not None and stat.identity is not None and (path != LISTS or fetched(host)):
            moments.append(stat.identity[2] / 1e9)
    return {"lists": {"updated": int(max(moments))}}


def fetched(host: World) -> bool:
    """Return whether apt has any list of packages at all."""
    return host.stat(LISTS) is not None and any("_Packages" in name for name in host.listdir(LISTS))


def update_lists(machine: Machine, older_than: float) -> Result:
    """Fetch apt's lists, unless they are young enough."""
    moment = (machine.entry("apt", "lists") or {}).get("updated", 0)
    if moment != UPDATED and time.time() - moment <= older_than:
        return ok()
    argv = ["apt-get", "-q", *LOCK, "-o", "APT::Update::Error-Mode=any", "update"]
    return machine.run(argv, {"apt": {"lists": {"updated": UPDATED}}}, env=QUIET, timeout=TIMEOUT)


def installed(version: Optional[str]) -> Optional[Entry]:
    """Return the fields of a package that is installed at a version; of none where it is removed."""
    return {"version": version, "state": None} if version is not None else None


@op(turn="apt", batch="packages")
def install(machine: Machine, packages: List[Entry]) -> Result:
    """Install or change to the given versions, all in one transaction.

    :param packages: each with `name`, `version` (None: apt's choice), `others`, the packages that come along, and
        `update`, the seconds after which apt's lists are too old for it (None: they never are)
    """
    ages = [package["update"] for package in packages if package.get("update") is not None]
    if ages:
        updated = update_lists(machine, min(ages))
        if updated["status"] != "ok":
            return updated
    effect: Entry = {"packages": {}, "automatic": {}, "unknown": BRINGS}
    for package in packages:
        effect["automatic"][package["name"]] = None
        effect["packages"].update({name: installed(version) for name, version in package["others"].items()})
    for package in packages:
        effect["packages"][package["name"]] = installed(package["version"] or "newest")
    named = [package["name"] + ("=" + package["version"] if package["version"] else "") for package in packages]
    argv = ["apt-get", "-qy", *LOCK, *KEEP, "--no-remove", "--allow-downgrades", "install", "--", *dict.fromkeys(named)]
    return machine.run(argv, effect, env=QUIET, timeout=TIMEOUT, interruptible=False)


@op(turn="apt", batch="packages")
def remove(machine: Machine, packages: List[Entry]) -> Result:
    """Remove packages, and those that can't be without them, in one transaction.

    :param packages: each with `name`, `purge` and `others`, the packages that go along
    """
    effect: Entry = {"packages": {}, "unknown": BRINGS}
    for package in packages:
        effect["packages"].update(dict.fromkeys((package["name"], *package["others"])))
    for verb, purge in (("remove", False), ("purge", True)):
        names = [package["name"] for package in packages if package["purge"] is purge]
        if names:
            argv = ["apt-get", "-qy", *LOCK, *KEEP, verb, "--", *names]
            result = machine.run(argv, effect, env=QUIET, timeout=TIMEOUT, interruptible=False)
            if result["status"] != "ok":
                return result
    return ok()


@op(turn="apt")
def mark_automatic(machine: Machine, name: str) -> Result:
    """Let apt know that a package is there only for others that need it."""
    return machine.run(["apt-mark", "-q", "auto", "--", name], {"automatic": {name: {"auto": True}}})


@op(turn="apt")
def configure(machine: Machine) -> Result:
    """Finish what an interrupted dpkg left half done; apt refuses to work before."""
    effect = {"unknown": ["packages", *BRINGS]}
    argv = ["dpkg", "--force-confdef", "--force-confold", "--configure", "-a"]
    return machine.run(argv, effect, env=QUIET, timeout=TIMEOUT, interruptible=False)


def interrupted(world: World) -> bool:
    """Return whether a dpkg was interrupted and has to be helped to its end first."""
    try:
        return any(name.isdigit() for name in world.listdir("/var/lib/dpkg/updates"))
    except (OSError, Unknown):
        return False


def first(world: World) -> List[Action]:
    """Return what has to be done before apt can do anything."""
    return [configure()] if interrupted(world) else []


def simulate(world: World, argv: Sequence[str]) -> Dict[str, Optional[str]]:
    """Return what apt would do: name → version installed, None for removed. Raises CheckError with apt's words."""
    probe = world.probe(["apt-get", "-s", "-q", "-o", "APT::Get::Show-User-Simulation-Note=false", *argv])
    if probe.status != 0:
        lines = (probe.text + probe.errors.decode("utf-8", "replace")).splitlines()
        said = [line.strip() for line in lines if line.strip() and not line.endswith("...")]
        said.sort(key=lambda line: not line.startswith("E:"))  # what is wrong before what it has to do with
        raise CheckError("apt can't do this: %s" % " ".join(said[:12]))
    return {name: version or None for verb, name, version in _STEP.findall(probe.text)}


def installed_now(world: World) -> Set[str]:
    """Return the names of the packages of which anything is installed."""
    return {name for name, entry in world.table("packages").items() if "version" in entry}


def removable(world: World, names: Set[str]) -> Set[str]:
    """Return those of the packages that can go together without any other. Raises CheckError, Unknown."""
    while names and set(simulate(world, ["purge", "--", *sorted(names)])) - names:
        names = {name for name in names if not set(simulate(world, ["purge", "--", name])) - names}
    return names


def unneeded(world: World, names: Set[str]) -> Set[str]:
    """Return what nothing needs any more once these packages are gone; what nothing needs now is left out."""
    useless = set(simulate(world, ["autoremove"]))
    return set(simulate(world, ["purge", "--auto-remove", "--", *sorted(names)])) - useless - names


def really_installed(world: World) -> Set[str]:
    """Return the packages that the host has at this moment, also where the plan has removed them before."""
    said = world.probe(["dpkg-query", "--show", "--showformat=${Package}\\n"])
    return set(said.text.split())


def conffiles(world: World, name: str) -> List[str]:
    """Return the paths of a package's configuration files."""
    said = world.probe(["dpkg-query", "--show", "--showformat=${Conffiles}\\n", name]).text
    return [line.split()[0] for line in said.splitlines() if line.strip()]


def unknown_package(world: World, name: str, version: Optional[str]) -> CheckError:
    """Return why apt can't install a package: no such name (with the nearest), or no such version."""
    madison = world.probe(["apt-cache", "madison", "--", name]).text
    versions = [line.split("|")[1].strip() for line in madison.splitlines() if line.count("|") >= 2]
    if versions:
        return CheckError("apt knows no version %s of %s; it has: %s" % (version, name, ", ".join(versions)))
    if not fetched(world):
        return CheckError("apt has no lists of packages yet; update_cache: 86400 fetches them when they are that old")
    known: Set[str] = set(world.probe(["apt-cache", "pkgnames", "--", name[:2]]).text.split())
    near = nearest(name, known)
    help = near or "; update_cache fetches newer lists"
    return CheckError("apt knows no package %s%s" % (name, help))


def candidate(world: World, name: str) -> bool:
    """Return whether apt has something to install under this name."""
    text = world.probe(["apt-cache", "policy", "--", name]).text
    return "Candidate: " in text and "Candidate: (none)" not in text


def choice(world: World, name: str, version: Optional[str], unpacked: Optional[str]) -> Dict[str, Any]:
    """Return what apt would install for a package, or configure. Raises CheckError where it can't or would not."""
    asked = name + ("=" + version if version else "")
    try:
        steps = simulate(world, ["--no-remove", "--allow-downgrades", "install", "--", asked])
    except CheckError as problem:
        if "virtual package" in str(problem):
            raise
        if version or not candidate(world, name):
            raise unknown_package(world, name, version) from None
        raise
    if name not in steps and steps:
        raise CheckError("%s is no package itself; %s provides it: name that one" % (name, ", ".join(sorted(steps))))
    if not steps and unpacked is None:
        raise CheckError("%s is no package itself; one that provides it is installed: name that one" % name)
    return {"name": name, "version": steps.pop(name, unpacked), "others": steps}
