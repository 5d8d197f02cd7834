"""The limit of open files of a process, which needs some for each of its hosts."""

from __future__ import annotations

import resource

MOST = 1 << 20  # the most that Linux allows by default


def allow(wanted: int = MOST) -> int:
    """Raise this process's soft limit of open files as far as `wanted` and the hard limit permit.

    Without `wanted`, for a worker: it inherits its limit from the program that starts it, and can't know how many hosts
    it gets.

    :returns: the number of files that the process may open, `wanted` if it is unlimited
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY in (soft, hard):
        return wanted
    allowed = min(hard, wanted)
    if soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return max(soft, allowed)
