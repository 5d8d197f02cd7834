"""Questions for dnf. A program in dnf's own Python answers them: it uses dnf's solver and changes nothing.

The program reads the repositories from dnf's cache only, so it opens no connections. dnf itself changes the packages,
because only its command line checks signatures and runs its plugins.
"""

from __future__ import annotations

import json
from typing import Any

from statecfg.remote.graph.model import CheckError
from statecfg.remote.graph.nodetype import facet
from statecfg.remote.machine.world import World
from statecfg.resources.shared import records

DNF = "/usr/bin/dnf"
TIMEOUT = 300.0
# dnf's answers depend on these: the installed packages, its configuration, its lists and its records.
INPUTS = ("packages", ("/etc/dnf", "/etc/yum.repos.d", "/etc/yum.conf", "/etc/rpm", "/var/cache/dnf", "/var/lib/dnf"))
NEVER = "--setopt=*.metadata_expire=-1"  # the lists that a plan has read are those that the apply uses

PROGRAM = """\
import fnmatch, json, os, sys, time
import dnf, dnf.exceptions, dnf.module.module_base, dnf.repo, dnf.selector, hawkey
ask = json.loads(sys.argv[1])
base = dnf.Base()
base.conf.read()
base.conf.substitutions.update_from_etc(base.conf.installroot, varsdir=base.conf.varsdir)
if base.conf.substitutions.get("releasever") is None:  # dnf finds no release
    base.conf.substitutions.pop("releasever", None)
base.conf.clean_requirements_on_remove = False
options = ask.get("options", ())
def evr(one):
    return ("%s:" % one.epoch if one.epoch else "") + "%s-%s" % (one.version, one.release)
def key(one):
    native = one.arch in ("noarch", base.conf.substitutions["arch"])
    return one.name if native else "%s:%s" % (one.name, one.arch)
def chosen(name):
    name, _, arch = name.partition(":")
    found = base.sack.query().filterm(name=name)
    return found.filterm(arch=arch) if arch else found
def load():
    base.init_plugins(["*"], ["versionlock"] if ask.get("locks", True) else [])
    base.pre_configure_plugins()
    base.read_all_repos()
    for option in options:
        name, _, value = option.partition("=")
        if name == "--enablerepo":
            for repo in base.repos.get_matching(value) or missing("dnf has no repository %s" % value):
                repo.enable()
        elif name == "--setopt":
            base.conf.install_weak_deps = option.endswith("=1")
    base.configure_plugins()
def missing(text):
    raise dnf.exceptions.Error(text)
def fill():
    load()
    try:
        base.fill_sack_from_repos_in_cache(load_system_repo=True)
    except dnf.exceptions.RepoError as problem:
        missing("no lists: %s" % problem)
def unknown(name):
    hidden = base.sack.query(flags=hawkey.IGNORE_REGULAR_EXCLUDES).filterm(name=name.partition(":")[0]).available()
    missing("its excludepkgs, or those of a repository, hide %s" % name if hidden else "no package")
def mark_for_installation(name, version):
    found = chosen(name)
    if not version:
        if found:
            return base.install(name.replace(":", "."))
        return base.install(name)
    wanted = [one for one in found if fnmatch.fnmatchcase(evr(one), version)]
    if not wanted:
        has = sorted({evr(one) for one in found.available()})
        missing("no version: %s" % ", ".join(has)) if has else unknown(name)
    wanted = [one for one in wanted if key(one) == name] or wanted
    best = [one for one in wanted if one.evr_eq(max(wanted))]
    base.goal.install(select=dnf.selector.Selector(base.sack).set(pkg=best))
def solve():
    fill()
    kept = base.sack.query().available().filterm(name=[name.partition(":")[0] for name in ask.get("keep", ())])
    base.sack.add_excludes(kept)
    for name in ask.get("remove", ()):
        for one in chosen(name).installed():
            base.goal.erase(one, clean_deps=ask.get("clean", False))
    for name, version in sorted(ask.get("install", {}).items()):
        try:
            mark_for_installation(name, version)
        except dnf.exceptions.PackageNotFoundError:
            unknown(name)
    if ask.get("upgrade"):
        base.conf.obsoletes = ask["erase"]
        base.upgrade_all()
    if ask.get("unneeded"):
        base.autoremove()
    return resolved()
def resolved():
    base.resolve(allow_erasing=ask["erase"])
    steps = {key(one): None for one in base.transaction.remove_set}
    steps.update((key(one), evr(one)) for one in base.transaction.install_set)
    return steps
def groups():
    if not recorded():
        return {}
    ids = {one.getCompsGroupItem().getGroupId() for one in base.history.group.search_by_pattern("%")}
    there = {each: base.history.group.get(each) for each in sorted(ids)}
    return {each: one.getName() for each, one in there.items() if one is not None}
def group():
    fill()
    for repo in base.repos.iter_enabled():
        repo.metadata = dnf.repo.Metadata(repo._repo)  # otherwise, dnf leaves out groups of lists from its cache
    base.read_comps(arch_filter=True)
    found = base.comps.group_by_pattern(ask["group"])
    name = found.id if found else ask["group"]
    if ask["gone"]:
        base.group_remove(name)
    elif found is None:
        known = ", ".join(sorted(one.id for one in base.comps.groups)) or "none"
        missing("there is no group %s; the groups are: %s" % (name, known))
    else:
        base.group_install(name, ["mandatory", "default", "conditional"] + (["optional"] if ask["optional"] else []))
    return [name, found.name if found else "", resolved()]
def module():
    base.conf.module_stream_switch = True  # another stream is reset before
    fill()
    modules = dnf.module.module_base.ModuleBase(base)
    if ask["gone"]:
        modules.remove(ask["specs"])
    else:
        modules.install(ask["specs"])
    return resolved()
def lists():
    load()
    moments = []
    for repo in base.repos.iter_enabled():
        moments.append(int(time.time() - repo._repo.getAge()) if repo._repo.loadCache(False) else 0)
    return min(moments) if moments else int(time.time())
def names():
    fill()
    return sorted({one.name for one in base.sack.query().available() if one.name[:2].lower() == ask["start"].lower()})
def recorded():  # opening the records would make them
    return os.path.exists(os.path.join(base.conf.persistdir, "history.sqlite"))
def reasons():
    if not recorded():
        return []
    base.fill_sack(load_system_repo=True, load_available_repos=False)
    return sorted(key(one) for one in base.sack.query().installed() if one.reason in ("dependency", "weak-dependency"))
def needs():
    base.fill_sack(load_system_repo=True, load_available_repos=False)
    there = base.sack.query().installed()
    known = {}
    def providers(relations):
        found = set()
        for relation in relations:
            text = str(relation)
            if text not in known:
                providing = () if text.startswith("rpmlib(") else there.filter(provides=[relation])
                known[text] = [key(one) for one in providing]
            found.update(known[text])
        return found
    return {
        key(one): [sorted(providers([*one.requires, *one.requires_pre])), sorted(providers(one.recommends))]
        for one in there
    }
try:
    answer = {"answer": globals()[ask["do"]]()}
except dnf.exceptions.Error as problem:
    answer = {"problem": str(problem)}
json.dump(answer, sys.stdout)
"""


class Refusal(CheckError):
    """dnf refuses. The message is dnf's own."""


@facet("dnf_program")
def dnf_program(host: Any) -> dict[str, records.Fields]:
    """Load the Python of dnf: `host` → `python`.

    :raises CheckError: if the host has no dnf 4
    """
    if host.stat(DNF) is None:
        raise CheckError("this host has no dnf, which installs the packages of systems like its own")
    first = host.read(DNF).partition(b"\n")[0].decode("utf-8", "replace")
    if not first.startswith("#!") or "python" not in first:
        raise CheckError("this host has dnf 5; statecfg knows dnf 4")
    return {"host": {"python": first[2:].split()[0]}}


def planned(world: World, do: str, **question: Any) -> Any:
    """Return dnf's answer to a question about a transaction (see `ask`).

    :raises CheckError: if dnf refuses
    """
    try:
        return ask(world, do, **question)
    except Refusal as problem:
        raise CheckError(f"dnf can't do this: {problem}") from None


def ask(world: World, do: str, **question: Any) -> Any:
    """Return dnf's answer to a question.

    :param do: the function of the program
    :raises Refusal: with dnf's own message, if dnf refuses
    :raises CheckError: if the program fails
    """
    python = (world.entry("dnf_program", "host") or dnf_program.load(world)["host"])["python"]
    argv = [python, "-I", "-c", PROGRAM, json.dumps(dict(question, do=do), sort_keys=True)]
    probe = world.probe(argv, timeout=TIMEOUT, inputs=INPUTS)
    if probe.status != 0:
        lines = (probe.errors.decode("utf-8", "replace").strip() or f"status {probe.status}").splitlines()
        raise CheckError(f"dnf can't tell what it would do: {lines[-1]}")
    found = json.loads(probe.text)
    if "problem" in found:
        raise Refusal(" ".join(found["problem"].split()))
    return found["answer"]
