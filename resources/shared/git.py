"""Git checkouts: what is in a directory, which commit is wanted, the ops that get it, and the undo."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode, Unknown
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result
from statecfg.remote.machine.world import Machine, Probe, World
from statecfg.resources.shared import paths, records

if TYPE_CHECKING:
    from typing import TypedDict

    class CheckoutMemory(TypedDict):
        """The memory of a `git_checkout`: the former commit, branch and repository; "" for none.

        :ivar exists: whether the directory existed
        """

        path: str
        exists: bool
        commit: str
        branch: str
        url: str


COMMIT = re.compile(r"[0-9a-f]{40}\Z")
SHOWN = 3  # changed files that a message names
# Nothing in a repository may start a program: its files can belong to another user. Git must not ask questions.
SAFE = ["-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0"]
_BRANCHES = "+refs/heads/*:refs/remotes/origin/*"


def command(path: str, *words: str) -> list[str]:
    """Return a command of git in a checkout."""
    return ["git", *SAFE, "-C", path, *words]


def environment(ssh_key: str | None) -> dict[str, str]:
    """Return the environment of git, with the key for logins over SSH."""
    ssh = "ssh -o BatchMode=yes"
    if ssh_key is not None:
        ssh += " -o IdentitiesOnly=yes -i '%s'" % ssh_key.replace("'", "'\\''")
    return {"GIT_TERMINAL_PROMPT": "0", "GIT_SSH_COMMAND": ssh}


def refusal(what: str, probe: Probe) -> str:
    """Return why git cannot read something."""
    if probe.status == 127:
        return "git is not installed on this host; require the package git"
    lines = probe.errors.decode("utf-8", "replace").strip().splitlines() or [f"exit status {probe.status}"]
    why = next((line for line in lines if line.startswith(("fatal: ", "error: "))), lines[-1])
    return f"git cannot read {what}: {why}"


class Checkout:
    """What is in a directory.

    :ivar commit: the commit that is checked out, "" if there is none
    :ivar branch: the branch that is checked out, "" for none
    :ivar url: the repository that it comes from, "" if that is unknown
    :ivar changes: the changed and, if asked for, the untracked and ignored files
    """

    def __init__(self, path: str, world: World, user: str | None, untracked: bool = False) -> None:
        """Inspect a checkout.

        :raises CheckError: if git cannot read it
        :raises Unknown: if a required node changes it first
        """
        options: records.Fields = {"user": user} if user is not None else {}
        mode = ["--untracked-files=all", "--ignored"] if untracked else ["--untracked-files=no"]
        status = command(path, "status", "--porcelain=v2", "--branch", *mode)
        found = world.probe(status, inputs=("git", [path]), **options)
        if found.status:
            raise CheckError(refusal(path, found))
        lines = found.text.splitlines()
        facts = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# ") and line.count(" ") > 1)
        self.commit = facts.get("branch.oid", "") if facts.get("branch.oid") != "(initial)" else ""
        self.branch = facts.get("branch.head", "") if facts.get("branch.head") != "(detached)" else ""
        self.changes = [re.split(r"[ \t]", line)[-1] for line in lines if not line.startswith("#")]
        origin = world.probe(command(path, "config", "--get", "remote.origin.url"), inputs=("git", [path]), **options)
        self.url = origin.text.strip()


def found(path: str, world: World, user: str | None, untracked: bool = False) -> Checkout | None:
    """Return the checkout in a directory; None if nothing, or only an empty directory, is there.

    :raises CheckError: if something else is there
    """
    stat = paths.look(world, path)
    if stat is None:
        return None
    if stat.file_type != "directory":
        paths.refuse(path, stat, "a directory")
    if world.stat(path + "/.git") is None:
        if world.listdir(path):
            raise CheckError(f"{path} contains files, but is not a git checkout; move them away")
        return None
    return Checkout(path, world, user or (stat.owner if os.geteuid() == 0 else None), untracked)


def wanted(attrs: records.Attrs, world: World) -> str:
    """Return the commit that a node wants.

    :raises CheckError: if the repository cannot be read, or has no such version
    :raises Unknown: if a required node changes the host first
    """
    version = attrs["version"]
    if COMMIT.match(version):
        return str(version)
    options = {"user": attrs["user"]} if attrs.get("user") is not None else {}
    names = ["HEAD"] if version == "HEAD" else ["refs/heads/" + version, "refs/tags/" + version]
    names += [name + "^{}" for name in names[1:]]  # the commit of an annotated tag
    ask = ["git", *SAFE, "ls-remote", "--", attrs["repository"], *names]
    answer = world.probe(ask, timeout=attrs["timeout"], env=environment(attrs.get("ssh_key")), **options)
    if answer.status:
        raise CheckError(refusal(attrs["repository"], answer))
    listed = {name: commit for commit, name in (line.split("\t") for line in answer.text.splitlines())}
    for name in (names[0], *reversed(names[1:])):  # a branch comes first
        if name in listed:
            return listed[name]
    raise CheckError(f"{attrs['repository']} has no branch or tag {version}")


@op(name="clone")
def clone(
    machine: Machine,
    path: str,
    repository: str,
    version: str,
    commit: str,
    user: str | None = None,
    depth: int | None = None,
    ssh_key: str | None = None,
    submodules: bool = False,
    timeout: float = 600.0,
) -> Result:
    """Get a repository into a new directory, and check a commit out.

    :param commit: the commit of the version; "" in a plan that does not know it yet
    """
    result = machine.mkdir(path, 0o755, user)
    for words in (["init", "--quiet"], ["remote", "add", "origin", repository]):
        if result["status"] == "ok":
            result = _run(machine, path, words, user, None, timeout)
    if result["status"] == "ok":
        result = _get(machine, path, version, commit, user, depth, ssh_key, submodules, timeout)
    return result


@op(name="update")
def update(
    machine: Machine,
    path: str,
    repository: str,
    version: str,
    commit: str,
    user: str | None = None,
    depth: int | None = None,
    ssh_key: str | None = None,
    submodules: bool = False,
    timeout: float = 600.0,
) -> Result:
    """Get the new commits of a checkout, and check one out. Local changes are lost."""
    set_url = ["config", "remote.origin.url", repository]
    result = _run(machine, path, set_url, user, None, timeout)
    if result["status"] == "ok":
        result = _get(machine, path, version, commit, user, depth, ssh_key, submodules, timeout)
    return result


@op(name="restore")
def restore(machine: Machine, path: str, url: str, target: str, detach: bool, user: str | None = None) -> Result:
    """Check out what was there before.

    :param target: a branch, or a commit if `detach` is set
    """
    words = ["checkout", "--quiet", "--force", *(["--detach"] if detach else []), target]
    result = _run(machine, path, words, user, None, 600.0)
    if url and result["status"] == "ok":
        result = _run(machine, path, ["config", "remote.origin.url", url], user, None, 600.0)
    return result


def _run(
    machine: Machine, path: str, words: Sequence[str], user: str | None, ssh_key: str | None, timeout: float
) -> Result:
    env = environment(ssh_key)
    return machine.run(command(path, *words), {"files": [path]}, env=env, user=user, timeout=timeout)


def _get(
    machine: Machine,
    path: str,
    version: str,
    commit: str,
    user: str | None,
    depth: int | None,
    ssh_key: str | None,
    submodules: bool,
    timeout: float,
) -> Result:
    """Fetch a version and check its commit out."""
    what = [_BRANCHES, "--tags"] if depth is None else ["--depth", str(depth), version]
    steps = [["fetch", "--quiet", "--force", "origin", *what], ["checkout", "--quiet", "--force", "--detach", commit]]
    if submodules:
        steps.append(["submodule", "--quiet", "update", "--init", "--recursive", "--force"])
    for words in steps:
        result = _run(machine, path, words, user, ssh_key, timeout)
        if result["status"] != "ok":
            return result
    return result


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> ActionSpec:
    """Compare the checkout with the wanted commit.

    :raises CheckError: if something else is at the path, or the checkout has local changes
    """
    attrs, path = node.attrs, node.attrs["path"]
    present = found(path, world, attrs.get("user"), bool(attrs.get("absent")))
    if attrs.get("absent"):
        return _removal(path, present)
    paths.account(world, "users", attrs.get("user"), node, nodes)
    # After its actions, the node is right even if the branch has moved since then.
    stays = not attrs.get("update", True) or (world.acted and not COMMIT.match(attrs["version"]))
    if present is None:
        paths.require_parent(world, path, node, nodes)
    elif present.commit and stays:
        return ActionSpec()
    else:
        attrs = {**attrs, "user": attrs.get("user") or _owner(path, world)}
    cause = None
    try:
        commit = wanted(attrs, world)
    except Unknown as unknown:
        commit, cause = "", unknown.cause
    if present is None:
        return ActionSpec([_action(clone, attrs, commit)], known_after=cause)
    if cause is not None:
        raise Unknown(cause, f"the commit of {attrs['version']} is")
    if (present.commit, present.url) == (commit, attrs["repository"]) and not present.changes:
        return ActionSpec()
    if present.changes and not attrs.get("discard_changes"):
        text = "%s has local changes (%s); discard_changes: true discards them"
        raise CheckError(text % (path, listed(present.changes)))
    return ActionSpec([_action(update, attrs, commit)])


def _action(make: Callable[..., Action], attrs: records.Attrs, commit: str) -> Action:
    names = ("repository", "version", "user", "depth", "ssh_key", "submodules", "timeout")
    return make(attrs["path"], commit=commit, **{name: attrs.get(name) for name in names})


def _removal(path: str, present: Checkout | None) -> ActionSpec:
    if present is None:
        return ActionSpec()
    if present.changes:
        raise CheckError(f"{path} has local changes ({listed(present.changes)}); remove them first")
    return ActionSpec([paths.remove(path, True)])


def listed(names: Sequence[str]) -> str:
    """Return the first names of a list for a message."""
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def remember(node: HostNode, world: World) -> CheckoutMemory:
    """Record what was checked out."""
    path, user = node.attrs["path"], node.attrs.get("user")
    present = found(path, world, user)
    empty = present is None and world.stat(path) is not None
    if present is None:
        return {"path": path, "exists": empty, "commit": "", "branch": "", "url": ""}
    return {"path": path, "exists": True, "commit": present.commit, "branch": present.branch, "url": present.url}


def undo(node: HostNode, memory: CheckoutMemory, world: World) -> ActionSpec:
    """Check out what was checked out before, or remove the checkout. One with changed or new files stays."""
    attrs, path, user = node.attrs, memory["path"], node.attrs.get("user")
    present = found(path, world, user, True)
    if attrs.get("absent"):
        if not memory["commit"] or present is not None:
            return ActionSpec()
        back = {"repository": memory["url"], "version": memory["commit"], "timeout": 600.0}
        return ActionSpec([_action(clone, {**attrs, **back, "depth": None}, memory["commit"])])
    if present is None:
        return ActionSpec()
    if not memory["commit"]:
        if present.changes:
            return ActionSpec(left=[f"{path} has changed or new files ({listed(present.changes)}): it stays"])
        inside = [posixpath.join(path, name) for name in world.listdir(path)]
        return ActionSpec([paths.remove(name, True) for name in (inside if memory["exists"] else [path])])
    same = (present.commit, present.branch, present.url) == (memory["commit"], memory["branch"], memory["url"])
    if same:
        return ActionSpec()
    if present.changes:
        return ActionSpec(left=[f"{path} has changed or new files ({listed(present.changes)}): it stays"])
    target = memory["branch"] or memory["commit"]
    return ActionSpec([restore(path, memory["url"], target, not memory["branch"], user or _owner(path, world))])


def _owner(path: str, world: World) -> str | None:
    stat = world.stat(path)
    return stat.owner if stat is not None and os.geteuid() == 0 else None
