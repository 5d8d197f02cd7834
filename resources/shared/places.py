"""Places: who besides root can change what is at a path, and which user may run a program on it.

A program does what it finds in its directory: it loads plugins, reads settings and starts other programs. So a program
that root runs in a directory of another user does what that user wants. A user who can change any component of the path
can exchange all below it at any moment, also between a check and the start of a program.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from statecfg.remote.graph.model import CheckError
from statecfg.remote.graph.results import Result, error
from statecfg.remote.machine.accounts import user_name
from statecfg.remote.machine.paths import UnsafePath, child, normal
from statecfg.remote.machine.world import Machine, Stat, World
from statecfg.resources.shared import paths

MOST_READ = 16 << 20  # bytes of a file of settings
EVERY_USER = "every user"


class Changers:
    """Those who can change what is at some paths.

    :ivar users: user → the first path that the user can change
    :ivar shared: the same for the members of groups, and for all users: words for them → path
    """

    def __init__(self, world: World, inspected: Iterable[str]) -> None:
        self.world = world
        self.users: dict[str, str] = {}
        self.shared: dict[str, str] = {}
        self._seen: set[str] = set()
        for path in inspected:
            self._follow(path)

    def _follow(self, path: str) -> None:
        """Inspect each component of a path as far as it exists, and where its links lead."""
        here, rest, links = "/", normal(path).split("/"), 0
        while rest:
            name = rest.pop(0)
            if name in ("", ".", ".."):
                here = posixpath.dirname(here) if name == ".." else here
                continue
            inside = child(here, name)
            try:
                stat = self.world.apparent(inside)
            except UnsafePath as problem:
                raise CheckError(f"{problem.filename or inside}: {problem.strerror}") from None
            if stat is None:
                return
            if inside not in self._seen:
                self._seen.add(inside)
                self._note(inside, stat)
            if stat.file_type == "symlink":
                links += 1
                if links > paths.LINKS:
                    raise CheckError(f"{path} is a link in a loop of links")
                rest = [*stat.target.split("/"), *rest]
                here = "/" if stat.target.startswith("/") else here
            else:
                here = inside

    def _note(self, path: str, stat: Stat) -> None:
        """Add those who can change a component: its owner, and all others who may write."""
        self.users.setdefault(stat.owner, path)
        sticky = stat.file_type == "directory" and stat.mode & 0o1000  # only owners can rename and remove
        if stat.file_type == "symlink" or sticky:
            return
        if stat.mode & 0o002:
            self.shared.setdefault(EVERY_USER, path)
        if stat.mode & 0o020 and not stat.acl:  # with an access list, these bits are its mask
            self._note_group(stat.group, path)
        for entry_type, name, bits in stat.acl:
            if bits & 0o2 and entry_type == "user":
                self.users.setdefault(name, path)
            elif bits & 0o2 and not entry_type.startswith("default "):
                self._note_group(name or stat.group, path)

    def _note_group(self, name: str, path: str) -> None:
        """Add the members of a group. A group with one member is this user."""
        entry = self.world.entry("groups", name) or {}
        users = self.world.facet("users").items()
        members = {user for user, fields in users if fields.get("gid") == entry.get("gid")}
        members.update(entry.get("members", ()))
        members.discard("root")
        if len(members) == 1:
            self.users.setdefault(members.pop(), path)
        elif members:
            self.shared.setdefault(f"the group {name}", path)


def runner(
    world: World, path: str, user: str | None, program: str, also: Iterable[str] = (), owned: str | None = None
) -> str | None:
    """Return the user who runs a program on what is at a path; None: the running user.

    Without a given user, this is the only user besides root who can change what is there.

    :param path: a directory; it may not exist yet
    :param user: the user whom the node names
    :param also: more paths that the program obeys
    :param owned: a path that the user who runs the program must own if it exists and the node names no user
    :raises CheckError: if the program would do what another user wants
    """
    me = user_name(os.geteuid())
    changers = Changers(world, (path, *also))
    own = {"root", me, user or me}
    others: Mapping[str, str] = {name: where for name, where in changers.users.items() if name not in own}
    if user is None and me == "root" and len(others) == 1 and not changers.shared:
        (found, where), *_ = others.items()
        _check_owner(world, owned, found, where)
        return found
    # A user whom the node names, and a user who is not root, have chosen the members of their groups themselves.
    shared = changers.shared if (user or me) == "root" else _only(changers.shared, EVERY_USER)
    others = {**others, **shared}
    if others:
        who, where = next(iter(others.items()))
        help = f"set user to the user who runs {program}, or give " if user is None and me == "root" else "give "
        text = f"{who} can change {where}, and {user or me} must not run {program} on what others can change"
        raise CheckError(f"{text}; {help}{path} a place that only one user can change")
    return user


def require_root(world: World, inspected: Iterable[str], program: str) -> None:
    """Check that only root can change what is at some paths, if this process has root's rights.

    :param program: what would do what is written there
    :raises CheckError: if others can
    """
    if os.geteuid() != 0:
        return
    changers = Changers(world, inspected)
    others = {name: where for name, where in changers.users.items() if name != "root"}
    others.update(changers.shared)
    for who, where in others.items():
        text = f"{who} can change {where}, and root must not run {program} on what others can change"
        raise CheckError(f"{text}; give it to root, with a mode such as 0755 or 0644")


def _check_owner(world: World, path: str | None, user: str, where: str) -> None:
    stat = world.apparent(path) if path is not None else None
    if stat is not None and stat.owner != user:
        text = f"{path} belongs to {stat.owner}, but {user} can change {where}, so only {user} may run programs there"
        raise CheckError(f"{text}; give {path} and its content to {user}, or choose another path")


def _only(shared: Mapping[str, str], key: str) -> Mapping[str, str]:
    return {key: shared[key]} if key in shared else {}


def run(
    machine: Machine, argv: Sequence[str], path: str, user: str | None, also: Iterable[str], **options: Any
) -> Result:
    """Run a program on what is at a path, unless others than its user can change that by now.

    :param user: the user who runs the program; None: the running user
    :param also: more paths that the program obeys
    :param options: of `Machine.run`
    """
    program = posixpath.basename(argv[0])
    try:
        now = runner(machine, path, user, program, also)
    except CheckError as problem:
        return error(str(problem))
    if now == user:
        return machine.run(argv, user=user, **options)
    return error(f"{now} can change {path} by now, and {user or user_name(os.geteuid())} must not run {program} there")


def read(world: World, path: str) -> bytes:
    """Return the content of a small file that another user may have written.

    :raises CheckError: if it is too large
    :raises OSError: if it cannot be read
    """
    with world.open(paths.followed(world, path)) as stream:  # it may grow while it is read
        data = stream.read(MOST_READ + 1)
    if len(data) > MOST_READ:
        raise CheckError(f"{path} has more than {MOST_READ} bytes; statecfg reads at most that")
    return data
