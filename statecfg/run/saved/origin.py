"""Determines the origin of a plan: who made it, when, and from which git commit."""

from __future__ import annotations

import getpass
import os
import socket
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from statecfg.run.saved.model import Made

PATIENCE = 20.0  # time limit of git in seconds
MOST = 20  # maximum number of modified inputs to record


def origin(root: Path, files: Iterable[str]) -> Made:
    """Return the origin of a plan that is made now.

    :param root: directory of the project
    :param files: absolute paths of the plan's inputs
    :returns: the origin, with at most 20 modified inputs
    """
    commit, modified = _git(root, {os.path.realpath(path) for path in files})
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"at": at, "by": f"{getpass.getuser()}@{socket.gethostname()}", "commit": commit, "modified": modified}


def _git(root: Path, files: set[str]) -> tuple[str | None, list[str] | None]:
    output = _ran(root, "rev-parse", "--show-toplevel", "HEAD")
    if output is None or len(lines := output.decode("utf-8", "surrogateescape").splitlines()) != 2:
        return None, None
    top, commit = lines
    status = _ran(root, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--", ".")
    if status is None:
        return commit, None
    changed = [os.path.join(top, os.fsdecode(entry[3:])) for entry in status.split(b"\0") if entry]
    real = os.path.realpath(root)
    return commit, sorted(os.path.relpath(path, real) for path in changed if os.path.realpath(path) in files)[:MOST]


def _ran(root: Path, *arguments: str) -> bytes | None:
    """Return the output of git, None if git is missing or fails."""
    # Don't start programs that the repository's settings configure.
    argv = ["git", "-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false", "-C", str(root), *arguments]
    environ = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, env=environ, timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None
