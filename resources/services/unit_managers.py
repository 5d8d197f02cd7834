"""Managers of systemd units: that of the host, and that of each user. The name of a unit tells which manager it has.

`app.service` is a unit of the host, and `deploy/app.service` one of the user deploy: names of units contain no slash.
`*/app.service` is a unit of all users: no manager runs it, but each user's manager reads its files.

statecfg calls systemctl as the user, never as root, and with XDG_RUNTIME_DIR. `systemctl --machine=deploy@` does not
exist before systemd 248, and needs a D-Bus of the user, which Debian only has with dbus-user-session. Without the
option, systemctl uses the socket of the user's manager.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Any

from statecfg.remote.graph.model import CheckError
from statecfg.remote.machine.world import Stat, World
from statecfg.resources.services import lingering
from statecfg.resources.shared import records

RUNNING = lingering.SYSTEMD
DIRECTORIES = tuple(root + "/systemd/system" for root in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"))
# Directories for the units of all users, beside those of the user.
SHARED = tuple(root + "/systemd/user" for root in ("/etc", "/run", "/usr/local/lib", "/usr/lib"))
ALL = "*"  # in place of a user
OWN = ".config/systemd/user"  # of the user, in the home directory
GENERATORS = tuple(f"systemd/generator{kind}" for kind in (".early", "", ".late"))  # below /run, or that of a user
LARGEST = 1 << 20  # bytes of a unit file
# Verbs of systemctl that only change files. Without a manager, systemctl changes the files itself.
OFFLINE = ("enable", "disable", "mask", "unmask", "list-unit-files")


def split(name: str) -> tuple[str, str]:
    """Return the user of a unit, "" for a unit of the host, and its name without the user."""
    user, _, unit = name.rpartition("/")
    return user, unit


def joined(user: str | None, unit: str) -> str:
    """Return the name of a unit with its user."""
    return f"{user}/{unit}" if user else unit


def called(name: str) -> str:
    """Return the words for a unit in messages."""
    user, unit = split(name)
    return f"{unit} of {_whose(user)}" if user else unit


def _whose(user: str) -> str:
    return "all users" if user == ALL else f"the user {user}"


def facet_of(user: str) -> str:
    """Return the name of the facet with the units of a user, or of the host."""
    return f"units of {_whose(user)}" if user else "units"


def usual_place(user: str, below: str = OWN) -> str:
    """Return the directory for a user's own unit files, if the home directory is at its usual place.

    :param user: for all users, this is a directory in /etc
    :param below: the directory in the home directory
    """
    return SHARED[0] + "/" if user == ALL else f"{'/root' if user == 'root' else '/home/' + user}/{below}/"


def owned_place(user: str) -> str:
    """Return the directory for a user's own unit files in the form of `NodeType.owns`."""
    return usual_place(user) if user == ALL else f"~{user}/{OWN}/"


def owned_file(user: str | None, path: str) -> list[str]:
    """Return the claim to a user's own file, for `NodeType.owns`; none without a user.

    :param path: the path in `usual_place`
    """
    return [f"path:~{user}/{in_home(path)}"] if user else []


def in_home(path: str) -> str:
    """Return the part of a path in `usual_place` that is below the home directory."""
    return path[path.index("/.config/") + 1 :]


def fields(world: World, user: str) -> dict[str, Any]:
    """Return the fields of a user. Those of a user who is created first may lack the UID."""
    return dict(world.entry("users", user) or {})


def runtime(world: World, user: str) -> str:
    """Return the directory of a user's manager in /run, "" if the UID is not known yet; for the host, /run."""
    uid = fields(world, user).get("uid") if user else None
    return "/run" if not user else f"/run/user/{uid}" if uid is not None else ""


def directories(world: World, user: str) -> tuple[str, ...]:
    """Return the directories with unit files. The first file of a name wins; the first directory is for own files."""
    if not user:
        return DIRECTORIES
    home = fields(world, user).get("home")
    return (*([posixpath.join(home, OWN)] if home else []), *SHARED)


def runs(world: World, user: str) -> bool:
    """Return whether the manager of a user runs now."""
    place = runtime(world, user)
    return bool(place) and look(world, f"{place}/systemd/private") is not None


def will_run(world: World, user: str) -> bool:
    """Return whether the manager of a user runs when the node acts: the user is logged in, or lingers.

    :raises Unknown: if a required node may change it
    """
    if not user or runs(world, user):
        return True
    return lingering.lingers(world, user) and world.entry("users", user) is not None


def require(world: World, name: str, attrs: records.Attrs) -> None:
    """Check that the manager of a user runs when the node acts, if the node wants the unit to run.

    :raises CheckError: if not
    """
    user, _ = split(name)
    if attrs.get("running") and not will_run(world, user):
        text = "the user %s neither lingers nor is logged in, so systemd runs no units of this user; set linger: true"
        raise CheckError(f"{text} on the node user:%s" % (user, user))


def look(world: World, path: str) -> Stat | None:
    """Return the Stat of a path as far as it is known; None if nothing is there, or a user's link or a server hides it.

    Then only what systemd itself says about the unit counts.
    """
    try:
        return world.apparent(path)
    except OSError:
        return None


def names(world: World, directory: str) -> list[str]:
    """Return the names in a directory; none if it is not a directory, or can't be read (see `look`)."""
    stat = look(world, directory)
    try:
        return world.listdir(directory) if stat is not None and stat.file_type == "directory" else []
    except OSError:
        return []


def text(world: World, path: str) -> str:
    """Return the text of a unit file. Users can write their own ones, so a large one is not read to its end.

    :raises OSError: if it can't be read
    """
    with world.open(path) as stream:
        return stream.read(LARGEST).decode("utf-8", "replace")


def call(world: World, user: str, words: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Return the command line of systemctl, and the options of `probe` and `run` for it.

    :param user: the user who has the units; "" for the host
    :param words: the verb, its options and its arguments
    """
    if user in ("", ALL):
        return ["systemctl", *(["--global"] if user else []), *words], {}
    env = {"XDG_RUNTIME_DIR": runtime(world, user)}
    if words[0] in OFFLINE and not runs(world, user):
        env = {"SYSTEMD_OFFLINE": "1"}
    return ["systemctl", "--user", *words], {"user": user, "env": env}
