"""Whether others could change what we run: files and directories of hooks and charms."""

from __future__ import annotations

import functools
import grp
import os
import pwd
import shlex
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from statecfg.problems import Problem, problem
from statecfg.problems.positions import SourceLocation


def others_could_change(path: Path) -> Problem | None:
    """Return what is wrong where somebody else could change what we run."""
    found = path.stat()
    mode = stat.S_IMODE(found.st_mode)
    shown = f"{path} has mode {mode:04o} and belongs to user {found.st_uid}"
    if found.st_uid not in (0, os.geteuid()):
        return problem("SC0601", shown, f"look at it, then: chown {os.geteuid()} {path}", SourceLocation(str(path), 0))
    writable = mode & 0o022
    if writable == 0o020 and private(found.st_uid, found.st_gid):
        return None
    # What lies in a directory with the sticky bit, others can't replace.
    if writable and not (stat.S_ISDIR(found.st_mode) and mode & stat.S_ISVTX):
        return problem("SC0601", shown, f"look at it, then: chmod go-w {path}", SourceLocation(str(path), 0))
    return None


@functools.cache
def private(user: int, group: int) -> bool:
    """Tell whether a group is a user's own: the user's primary group, with no other member and nobody else's primary.

    Many systems give each user such a group, and a umask that lets it write.
    """
    try:
        name = pwd.getpwuid(user).pw_name
        members = set(grp.getgrgid(group).gr_mem)
    except KeyError:
        return False
    primary = {entry.pw_name for entry in pwd.getpwall() if entry.pw_gid == group}
    return primary == {name} and members <= {name}


def together(found: Sequence[Problem]) -> Problem:
    """Return one problem for all paths that others could change, with the one command that fixes all of them."""
    first, more = found[0], len(found) - 1
    if not more:
        return first
    top = shlex.quote(os.path.commonpath([each.places[0].file for each in found]))
    commands = {
        "chown": f"chown -R {os.geteuid()} {top}",
        "chmod": f"chmod -R go-w {top}",
    }
    needed = [command for word, command in commands.items() if any(f"then: {word} " in each.help for each in found)]
    detail = f"{first.detail}, and {more:,} more could be changed by others"
    return replace(first, detail=detail, help=f"look at them, then: {' && '.join(needed)}")
