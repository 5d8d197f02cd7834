"""Check whether other users could change the files and directories of hooks and charms, which we execute."""

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
    """Return a problem if another user could change a file or directory that we execute; None otherwise."""
    status = path.stat()
    mode = stat.S_IMODE(status.st_mode)
    detail = f"{path} has mode {mode:04o} and belongs to user {status.st_uid}"
    if status.st_uid not in (0, os.geteuid()):
        return problem("SC0601", detail, f"check it, then: chown {os.geteuid()} {path}", SourceLocation(str(path), 0))
    writable = mode & 0o022
    if writable == 0o020 and private(status.st_uid, status.st_gid):
        return None
    # Others can't replace files in a directory with the sticky bit.
    if writable and not (stat.S_ISDIR(status.st_mode) and mode & stat.S_ISVTX):
        return problem("SC0601", detail, f"check it, then: chmod go-w {path}", SourceLocation(str(path), 0))
    return None


@functools.cache
def private(user: int, group: int) -> bool:
    """Return whether a group contains only one user: it is that user's primary group and has no other members.

    Many systems create such a group for each user, with a umask that allows it to write.
    """
    try:
        name = pwd.getpwuid(user).pw_name
        members = set(grp.getgrgid(group).gr_mem)
    except KeyError:
        return False
    primary = {entry.pw_name for entry in pwd.getpwall() if entry.pw_gid == group}
    return primary == {name} and members <= {name}


def together(problems: Sequence[Problem]) -> Problem:
    """Return one problem for several paths that others could change, with a command that fixes all of them."""
    first, more = problems[0], len(problems) - 1
    if not more:
        return first
    top = shlex.quote(os.path.commonpath([item.locations[0].file for item in problems]))
    commands = {
        "chown": f"chown -R {os.geteuid()} {top}",
        "chmod": f"chmod -R go-w {top}",
    }
    needed = [command for word, command in commands.items() if any(f"then: {word} " in item.help for item in problems)]
    detail = f"{first.detail}, and {more:,} more have the same problem"
    return replace(first, detail=detail, help=f"check them, then: {' && '.join(needed)}")
