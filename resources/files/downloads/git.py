"""Git checkouts: what is in a directory, which commit is wanted, the ops that get it, and the undo."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from statecfg.remote.graph.model import Action, ActionSpec, CheckError, HostNode, Unknown
from statecfg.remote.graph.ops import op
from statecfg.remote.graph.results import Result, error
from statecfg.remote.machine.world import Machine, World
from statecfg.resources.files.downloads import git_state
from statecfg.resources.files.downloads.git_state import COMMIT, SAFE, Checkout, command, environment, listed, refusal
from statecfg.resources.shared import paths, places, records

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


_BRANCHES = "+refs/heads/*:refs/remotes/origin/*"


def found(path: str, world: World, user: str | None) -> Checkout | None:
    """Return the checkout in a directory; None if nothing, or only an empty directory, is there.

    :param user: the user whom the node names
    :raises CheckError: if something else is there, or if no user may run git there
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
    return Checkout(path, world, git_state.runner(world, path, user))


def wanted(attrs: records.Attrs, world: World) -> str:
    """Return the commit that a node wants.

    :raises CheckError: if the repository cannot be read, or has no such version
    :raises Unknown: if a required node changes the host first
    """
    version = attrs["version"]
    if COMMIT.match(version):
        return str(version).lower()
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


def brief(commit: str | None, version: str = "") -> str:
    """Return a commit as reports show it, with the branch or tag that names it."""
    name = f" ({version})" if version and not COMMIT.match(version) else ""
    return f"{commit[:12]}{name}" if commit else version


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
    if machine.apparent(path) is not None and machine.listdir(path):
        return error(f"{path} contains files that came during the run: move them, or give another path")
    machine.shows(path, "commit", None, brief(commit, version))
    result = machine.mkdir(path, 0o755, user)
    work = _Work(machine, path, user, ssh_key, timeout)
    if result["status"] == "ok":
        result = work.run(["init", "--quiet"], ["remote", "add", "origin", repository])
    return result if result["status"] != "ok" else work.get(version, commit, depth, submodules, True)


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
    discard_changes: bool = False,
    former: str | None = None,
    former_repository: str | None = None,
) -> Result:
    """Get the new commits of a checkout, and check one out.

    :param former: the commit that is checked out now
    :param former_repository: the repository that the checkout comes from now, if it is another one
    :param discard_changes: overwrite local changes, and files in the way
    """
    if former_repository is not None:
        machine.shows(path, "repository", former_repository, repository)
    if former == commit and submodules:
        machine.shows(path, "submodules", "incomplete", "complete")
    machine.shows(path, "commit", brief(former) or None, brief(commit, version))
    work = _Work(machine, path, user, ssh_key, timeout)
    result = work.run(["config", "remote.origin.url", repository])
    return result if result["status"] != "ok" else work.get(version, commit, depth, submodules, discard_changes)


@op(name="restore")
def restore(machine: Machine, path: str, url: str, target: str, detach: bool, user: str | None = None) -> Result:
    """Check out what was there before.

    :param target: a branch, or a commit if `detach` is set
    """
    steps = [["checkout", "--quiet", "--no-overwrite-ignore", *(["--detach"] if detach else []), target]]
    steps += [["config", "remote.origin.url", url]] if url else []
    return _Work(machine, path, user, None, 600.0).run(*steps, ["update-ref", "-d", git_state.OURS])


class _Work:
    """The commands of git that change a checkout.

    :param user: the user who runs them; None: the running user
    """

    def __init__(self, machine: Machine, path: str, user: str | None, ssh_key: str | None, timeout: float) -> None:
        self.machine, self.path, self.user = machine, path, user
        self.env, self.timeout = environment(ssh_key), timeout

    def run(self, *steps: Sequence[str]) -> Result:
        """Run commands until one fails."""
        result: Result = {"status": "ok"}
        for words in steps:
            also, options = git_state.obeyed(self.machine, self.path), {"env": self.env, "timeout": self.timeout}
            argv, effect = command(self.path, *words), {"files": [self.path]}
            result = places.run(self.machine, argv, self.path, self.user, also, effect=effect, **options)
            if result["status"] != "ok":
                return result
        return result

    def get(self, version: str, commit: str, depth: int | None, submodules: bool, discard: bool) -> Result:
        """Fetch a version and check its commit out."""
        force = ["--force"] if discard else []
        fetch = ["fetch", "--quiet", "--force", "--no-recurse-submodules"]
        if depth is not None:
            fetch += ["--depth", str(depth), "origin", version]
        else:
            whole = ["--unshallow"] if self.machine.apparent(self.path + "/.git/shallow") is not None else []
            fetch += ["--prune", *whole, "origin", _BRANCHES, "--tags"]
        keep = force or ["--no-overwrite-ignore"]
        steps = [fetch, ["checkout", "--quiet", *keep, "--detach", commit]]
        if submodules:
            steps.append(["submodule", "--quiet", "sync", "--recursive"])
            steps.append(["submodule", "--quiet", "update", "--init", "--recursive", *force])
        return self.run(*steps, ["update-ref", git_state.OURS, commit])


def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> ActionSpec:
    """Compare the checkout with the wanted commit.

    :raises CheckError: if something else is at the path, or work in the checkout would be lost
    """
    attrs, path = node.attrs, node.attrs["path"]
    present = found(path, world, attrs.get("user"))
    if attrs.get("absent"):
        return _removal(attrs, present)
    paths.account(world, "users", attrs.get("user"), node, nodes)
    # After its actions, the node is right even if the branch has moved since then.
    stays = not attrs.get("update", True) or (world.acted and not COMMIT.match(attrs["version"]))
    attrs = {**attrs, "user": git_state.runner(world, path, attrs.get("user"))}
    if present is None:
        paths.require_parent(world, path, node, nodes)
    elif present.commit and stays:
        return _missing_submodules(present, {**attrs, "version": present.commit})
    cause = None
    try:
        commit = wanted(attrs, world)
    except Unknown as unknown:
        commit, cause = "", unknown.cause
    if present is None:
        return ActionSpec([_action(clone, attrs, commit)], known_after=cause)
    if cause is not None:
        raise Unknown(cause, f"the commit of {attrs['version']} is")
    if (present.commit, present.url) != (commit, attrs["repository"]) or present.changes:
        _refuse_loss(present, attrs, commit)
        return ActionSpec([_update(attrs, commit, present)])
    return _missing_submodules(present, attrs)


def _missing_submodules(present: Checkout, attrs: records.Attrs) -> ActionSpec:
    """Return the action that gets submodules which are missing or, if the node is updated, at another commit."""
    if not attrs.get("submodules") or present.world.stat(present.path + "/.gitmodules") is None:
        return ActionSpec()
    signs = "-+" if attrs.get("update", True) else "-"
    if not any(sign in signs for sign, _, _ in present.submodules()):
        return ActionSpec()
    if not attrs.get("discard_changes"):
        _refuse(present.path, present.submodule_commits(), "push them or give them a branch")
    return ActionSpec([_update(attrs, present.commit, present)])


def _refuse_loss(present: Checkout, attrs: records.Attrs, commit: str) -> None:
    """Check that an update loses nothing.

    :raises CheckError: if it would
    """
    if attrs.get("discard_changes"):
        return
    path = present.path
    if present.changes:
        text = "%s has local changes (%s); discard_changes: true discards them"
        raise CheckError(text % (path, listed(present.changes)))
    if present.commit == commit:
        return
    _refuse(path, present.loose(), "push them or give them a branch")
    if attrs.get("submodules"):
        _refuse(path, present.submodule_commits(), "push them or give them a branch")
    obstacles = present.in_the_way(attrs, commit)
    if obstacles:
        text = "%s has files that the new commit would overwrite (%s); move them away, or "
        raise CheckError((text + "discard_changes: true discards them") % (path, listed(obstacles)))


def _refuse(path: str, commits: Sequence[str], help: str) -> None:
    if commits:
        text = f"{path} has work that exists nowhere else ({listed(commits)})"
        raise CheckError(f"{text}; {help}, or discard_changes: true discards it")


def _action(make: Callable[..., Action], attrs: records.Attrs, commit: str, **more: Any) -> Action:
    names = ("repository", "version", "user", "depth", "ssh_key", "submodules", "timeout")
    return make(attrs["path"], commit=commit, **{name: attrs.get(name) for name in names}, **more)


def _update(attrs: records.Attrs, commit: str, present: Checkout) -> Action:
    more: dict[str, Any] = {"discard_changes": True} if attrs.get("discard_changes") else {}
    if present.url != attrs["repository"]:
        more["former_repository"] = present.url or None
    return _action(update, attrs, commit, former=present.commit or None, **more)


def _removal(attrs: records.Attrs, present: Checkout | None) -> ActionSpec:
    if present is None:
        return ActionSpec()
    work = "" if attrs.get("discard_changes") else present.work()
    if work:
        raise CheckError(f"{present.path} has {work}; save them elsewhere, or discard_changes: true discards them")
    return ActionSpec([paths.remove(present.path, True)])


def remember(node: HostNode, world: World) -> CheckoutMemory:
    """Record what was checked out."""
    path = node.attrs["path"]
    present = found(path, world, node.attrs.get("user"))
    empty = present is None and world.stat(path) is not None
    if present is None:
        return {"path": path, "exists": empty, "commit": "", "branch": "", "url": ""}
    return {"path": path, "exists": True, "commit": present.commit, "branch": present.branch, "url": present.url}


def undo(node: HostNode, memory: CheckoutMemory, world: World) -> ActionSpec:
    """Check out what was checked out before, or remove the checkout. One with work that exists nowhere else stays."""
    attrs, path = node.attrs, memory["path"]
    present = found(path, world, attrs.get("user"))
    if attrs.get("absent"):
        if not memory["commit"] or present is not None:
            return ActionSpec()
        back = {"repository": memory["url"], "version": memory["commit"], "timeout": 600.0}
        back["user"] = git_state.runner(world, path, attrs.get("user"))
        return ActionSpec([_action(clone, {**attrs, **back, "depth": None}, memory["commit"])])
    if present is None:
        return ActionSpec()
    if not memory["commit"]:
        work = "" if attrs.get("discard_changes") else present.work(attrs.get("ssh_key"))
        if work:
            return ActionSpec(left=[f"{path} has {work}: it stays"])
        inside = [posixpath.join(path, name) for name in world.listdir(path)]
        return ActionSpec([paths.remove(name, True) for name in (inside if memory["exists"] else [path])])
    same = (present.commit, present.branch, present.url) == (memory["commit"], memory["branch"], memory["url"])
    if same:
        return ActionSpec()
    target = memory["branch"] or memory["commit"]
    back = {**attrs, "repository": memory["url"], "version": target}
    files, commits = [*present.changes, *present.in_the_way(back, memory["commit"])], present.loose()
    if files or commits:
        text = f"changed or new files ({listed(files)})" if files else f"commits of its own ({listed(commits)})"
        return ActionSpec(left=[f"{path} has {text}: it stays"])
    user = git_state.runner(world, path, attrs.get("user"))
    return ActionSpec([restore(path, memory["url"], target, not memory["branch"], user)])
