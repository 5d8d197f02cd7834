"""The state of a git checkout: what is checked out, and what work in it exists nowhere else. Nothing here writes."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from statecfg.remote.graph.model import CheckError
from statecfg.remote.machine.world import Probe, World
from statecfg.resources.shared import places, records

COMMIT = re.compile(r"[0-9A-Fa-f]{40}\Z")
SHOWN = 3  # names in a message
MOST_REFS = 2000  # refs of a repository that one command names
MOST_MODULES = 1000  # submodules of all levels
# Nothing in a repository may start a program: its files can belong to another user. Git must not ask questions.
SAFE = ["-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0"]
# What statecfg has checked out came from the repository, even if no branch leads to it now.
OURS = "refs/statecfg/checkout"
_THEIRS = ["--remotes", "--glob=refs/statecfg/*"]
_SUBMODULE = re.compile(r"([-+U ])([0-9a-f]+) (.+?)(?: \([^()]*\))?\Z")
# A plan never writes: no index is refreshed, no lock is taken, and no missing object is fetched.
_READING = {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0"}
# Lists the files of a commit that the checkout lacks. The repository of the host stays as it is.
_TREE = """
new=$(mktemp -d) || exit 1
trap 'rm -rf "$new"' EXIT
trap 'exit 1' HUP INT TERM
cd "$new" && git init --quiet --bare . || exit 1
for want in "$2" "$3"; do
    git fetch --quiet --depth=1 --no-tags --filter=blob:none -- "$1" "$want" 2>/dev/null && break
done
git ls-tree -r -z --name-only "$2"
"""


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
    """Return the error of a git that cannot read something."""
    if probe.status == 127:
        return "git is not installed on this host; require the package git"
    lines = probe.errors.decode("utf-8", "replace").strip().splitlines() or [f"exit status {probe.status}"]
    why = next((line for line in lines if line.startswith(("fatal: ", "error: "))), lines[-1])
    return f"git cannot read {what}: {why}"


def listed(names: Sequence[str]) -> str:
    """Return the first names of a list for a message."""
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def runner(world: World, path: str, user: str | None) -> str | None:
    """Return the user who runs git in a checkout, or makes it.

    :raises CheckError: see `places.runner`
    """
    return places.runner(world, path, user, "git", obeyed(world, path), path)


def obeyed(world: World, path: str) -> list[str]:
    """Return the paths of a checkout that name programs for git: its settings, and those of its submodules."""
    inside = path + "/.git"
    stat = world.apparent(inside)
    found = [inside]
    if stat is not None and stat.file_type == "file":  # a linked worktree
        target = places.read(world, inside).decode("utf-8", "replace").strip().partition("gitdir: ")[2]
        inside = posixpath.normpath(posixpath.join(path, target))
        found += [inside, inside + "/commondir", posixpath.dirname(posixpath.dirname(inside))]
    for directory in (inside, *git_directories(world, inside + "/modules")):
        found += [directory + "/" + name for name in ("config", "config.worktree", "info/attributes", "objects")]
    return [*found, *_worktrees(world, path)]


def _worktrees(world: World, path: str) -> list[str]:
    """Return the directories of submodules of all levels, and the files in them that name their repositories.

    :raises CheckError: if there are too many: a user may have written their list
    """
    found: dict[str, None] = {}
    waiting = [path]
    while waiting:
        above = waiting.pop()
        known = above + "/.gitmodules"
        if not world.is_known(known) or world.apparent(known) is None:
            continue
        for name in _module_paths(places.read(world, known).decode("utf-8", "replace")):
            inside = posixpath.normpath(posixpath.join(above, name))
            if inside.startswith(above + "/") and inside not in found:
                found[inside] = None
                waiting.append(inside)
            if len(found) > MOST_MODULES:
                raise CheckError(f"{path} has more than {MOST_MODULES} submodules")
    return [each for inside in found for each in (inside, inside + "/.git")]


def _module_paths(text: str) -> Iterator[str]:
    """Yield the paths in a list of submodules."""
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key.strip().lower() == "path" and value.strip():
            yield value.strip().strip('"')


def git_directories(world: World, path: str, depth: int = 5) -> Iterator[str]:
    """Yield the git directories of submodules below a path. Names of submodules can contain slashes."""
    stat = world.apparent(path)
    if stat is None or stat.file_type != "directory" or not world.is_known(path) or not depth:
        return
    for name in world.listdir(path):
        inside = posixpath.join(path, name)
        if world.apparent(inside + "/HEAD") is not None:
            yield inside
            yield from git_directories(world, inside + "/modules", depth - 1)
        else:
            yield from git_directories(world, inside, depth - 1)


class Checkout:
    """What is in a directory.

    :ivar commit: the commit that is checked out, "" if there is none
    :ivar branch: the branch that is checked out, "" for none
    :ivar url: the repository that it comes from, "" if that is unknown
    :ivar changes: the changed files of the repository, and submodules with such files
    """

    def __init__(self, path: str, world: World, user: str | None) -> None:
        """Inspect a checkout.

        :param user: the user who runs git; None: the running user
        :raises CheckError: if git cannot read it
        :raises Unknown: if a required node changes it first
        """
        self.path, self.world = path, world
        self._options: records.Fields = {"env": _READING, **({"user": user} if user is not None else {})}
        entries = self.status("--branch", "--untracked-files=no")
        facts = dict(entry[2:].split(" ", 1) for entry in entries if entry.startswith("# ") and entry.count(" ") > 1)
        self.commit = facts.get("branch.oid", "") if facts.get("branch.oid") != "(initial)" else ""
        self.branch = facts.get("branch.head", "") if facts.get("branch.head") != "(detached)" else ""
        self.changes = self._changed(entries)
        self.url = self.ask("config", "--get", "remote.origin.url").text.strip()

    def ask(self, *words: str) -> Probe:
        """Return the answer of git."""
        return self.run(command(self.path, *words))

    def run(self, argv: Sequence[str]) -> Probe:
        """Return the answer of a program that reads the checkout."""
        return self.world.probe(argv, inputs=("git", [self.path]), **self._options)

    def status(self, *words: str) -> list[str]:
        """Return the entries of `git status`.

        :raises CheckError: if git cannot read the checkout
        """
        answer = self.ask("status", "--porcelain=v2", "-z", "--ignore-submodules=none", *words)
        if answer.status:
            raise CheckError(refusal(self.path, answer))
        return answer.text.split("\0")[:-1]

    def _changed(self, entries: Sequence[str]) -> list[str]:
        """Return the changed files in the entries of `git status`, also those in submodules.

        A submodule at another commit is not a change: its commits tell whether it contains work.
        """
        found: list[str] = []
        rest = iter(entries)
        for entry in rest:
            fields = entry.split(" ")
            if fields[0] not in ("1", "2", "u"):
                continue
            name = entry.split(" ", {"1": 8, "2": 9, "u": 10}[fields[0]])[-1]
            if fields[0] == "2":
                next(rest)  # the former name
            if (fields[0], fields[1], fields[2][0]) != ("1", ".M", "S"):
                found.append(name)
            elif fields[2][2] == "M":
                inside = Checkout(posixpath.join(self.path, name), self.world, self._options.get("user"))
                found += [f"{name}/{each}" for each in inside.changes]
        return found

    def extras(self) -> list[str]:
        """Return the untracked and ignored files, and directories that contain nothing else; these end with `/`."""
        entries = self.status("--untracked-files=normal", "--ignored=traditional")
        return [entry[2:] for entry in entries if entry.startswith(("? ", "! "))]

    def overlooked(self) -> list[str]:
        """Return the changed files that `git status` leaves out, as `git update-index` told it."""
        entries = self.ask("ls-files", "-v", "-z").text.split("\0")
        marked = [entry[2:] for entry in entries if entry[:1].islower() or entry.startswith("S ")]
        stats = {name: self.world.apparent(posixpath.join(self.path, name)) for name in marked}
        names = [name for name, stat in stats.items() if stat is not None and stat.file_type == "file"][:MOST_REFS]
        if not names:
            return []
        recorded = [
            entry.split()[1] for entry in self.ask("ls-files", "-s", "-z", "--", *names).text.split("\0") if entry
        ]
        present = self.ask("hash-object", "--", *names).text.split()
        return [name for name, was, now in zip(names, recorded, present) if was != now]

    def in_the_way(self, attrs: records.Attrs, commit: str) -> list[str]:
        """Return the untracked and ignored files that checking a commit out would overwrite, as far as git can tell.

        :param attrs: of the node; its repository has the commit if the checkout lacks it
        """
        extras = self.extras()
        if not extras:
            return []
        tree = self.ask("ls-tree", "-r", "-z", "--name-only", commit)
        if tree.status:
            version = attrs["version"]
            words = ["sh", "-c", _TREE, "sh", attrs["repository"], commit, version]
            env = {**_READING, **environment(attrs.get("ssh_key"))}
            options = {**self._options, "env": env}
            tree = self.world.probe(words, attrs["timeout"], inputs=("git", [self.path]), **options)
        files = set(tree.text.split("\0")[:-1])
        above = {name[:at] for name in files for at, letter in enumerate(name) if letter == "/"}
        found = []
        for extra in extras:
            name = extra.rstrip("/")
            if name in files or (name in above and not extra.endswith("/")):
                found.append(extra)
            elif name in above:
                inside = (each for each in sorted(files) if each.startswith(extra))
                found += [each for each in inside if self.world.apparent(posixpath.join(self.path, each)) is not None]
        return found

    def submodules(self) -> list[tuple[str, str, str]]:
        """Return the submodules of all levels: their sign, commit and path.

        The sign is `-` without a checkout, a space for the recorded commit, and `+` for another one.
        """
        answer = self.ask("submodule", "status", "--recursive")
        if answer.status:
            raise CheckError(refusal(f"the submodules of {self.path}", answer))
        matches = (_SUBMODULE.match(line) for line in answer.text.splitlines())
        return [(match[1], match[2], match[3]) for match in matches if match is not None]

    def loose(self) -> list[str]:
        """Return the commits that would be lost if HEAD moved, in words."""
        if not self.commit or self.branch:
            return []
        seen = ["FETCH_HEAD"] if self.world.apparent(self.path + "/.git/FETCH_HEAD") is not None else []
        return self.commits([], "HEAD", "--not", "--glob=refs/*", *seen)

    def submodule_commits(self) -> list[str]:
        """Return the commits in submodules that would be lost if their HEADs moved, in words."""
        found = []
        for sign, _, name in self.submodules():
            if sign != "-":
                inside = Checkout(posixpath.join(self.path, name), self.world, self._options.get("user"))
                found += [f"{each} in {name}" for each in (*inside.loose(), *inside.changes)]
        return found

    def commits(self, where: Sequence[str], *which: str) -> list[str]:
        """Return commits in words: how many there are, and from where one gets to them.

        :param where: options that tell git the repository; none: this one
        """
        words = [*where, "log", "--no-show-signature", "--no-color", "--format=%h %S", "--max-count=1000", *which, "--"]
        answer = self.ask(*words)
        if answer.status:
            raise CheckError(refusal(f"the commits of {self.path}", answer))
        found: dict[str, list[str]] = {}
        for line in answer.text.splitlines():
            commit, _, source = line.partition(" ")
            found.setdefault(re.sub(r"refs/(heads/)?", "", source, count=1), []).append(commit)
        return [_counted(commits, source) for source, commits in found.items()]

    def work(self, ssh_key: str | None = None) -> str:
        """Return all work in the checkout that exists nowhere else, in words; "" for none. A removal would lose it."""
        files = [*self.changes, *self.overlooked(), *self.extras()]
        commits = self._own_commits(ssh_key) if self.is_whole() else self.loose()
        recorded: list[str] = []
        modules: list[str] = []
        for sign, commit, name in self._all_submodules():
            recorded += [commit] if sign in "- " else []
            if sign != "-":
                inside = Checkout(posixpath.join(self.path, name), self.world, self._options.get("user"))
                files += [f"{name}/{each}" for each in (*inside.changes, *inside.overlooked(), *inside.extras())]
                modules += [inside.path + "/.git"] if inside.is_whole() else []
        for directory in (*modules, *git_directories(self.world, self.path + "/.git/modules")):
            where, which = [f"--git-dir={directory}"], ["--ignore-missing", "--all", "HEAD"]
            name = posixpath.relpath(directory, self.path)
            commits += [f"{each} in {name}" for each in self.commits(where, *which, "--not", *_THEIRS, *recorded)]
        found = [f"changed or new files ({listed(files)})"] if files else []
        return " and ".join([*found, *([f"work that exists nowhere else ({listed(commits)})"] if commits else [])])

    def is_whole(self) -> bool:
        """Tell whether the directory has the repository, and not only a worktree of one."""
        stat = self.world.stat(self.path + "/.git")
        return stat is not None and stat.file_type == "directory"

    def _all_submodules(self) -> list[tuple[str, str, str]]:
        known = self.world.stat(self.path + "/.gitmodules") is not None
        return self.submodules() if known and self.commit else []

    def _own_commits(self, ssh_key: str | None) -> list[str]:
        """Return commits, stashes and other worktrees of this repository."""
        head = ["HEAD"] if self.commit else []
        which = ["--exclude=refs/stash", "--all", *head, "--not", *_THEIRS]
        found = self.commits([], *which)
        if found:
            found = self.commits([], *which, *self._published(ssh_key))
        stashes = len(self.ask("stash", "list", "--format=%gd").text.splitlines())
        found += [f"{stashes} stash{'es' if stashes > 1 else ''}"] if stashes else []
        lines = self.ask("worktree", "list", "--porcelain").text.splitlines()
        others = [line.partition(" ")[2] for line in lines if line.startswith("worktree ")][1:]
        return found + [f"the worktree {path}" for path in others if self.world.apparent(path) is not None]

    def _published(self, ssh_key: str | None) -> list[str]:
        """Return the refs besides branches, such as tags, that the origin had when git last asked it."""
        if not self.url:
            return []
        env = {**_READING, **environment(ssh_key)}
        argv = ["git", *SAFE, "ls-remote", "--", self.url]
        answer = self.world.probe(argv, inputs=("git", [self.path]), **{**self._options, "env": env})
        theirs = {line.partition("\t")[0] for line in answer.text.splitlines()}
        ours = self.ask("for-each-ref", "--format=%(objectname)").text.split()
        return sorted(theirs.intersection(ours))[:MOST_REFS]


def _counted(commits: Sequence[str], source: str) -> str:
    more = "" if len(commits) == 1 else "s"
    return f"{len(commits)} commit{more} of {source} ({listed(commits)})"
