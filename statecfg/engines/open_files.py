"""The limit of open files of a worker, which needs some for each of its hosts."""

from __future__ import annotations

import resource

MOST = 1 << 20  # the most that Linux allows by default


def allow_many() -> None:
    """Raise this process's soft limit of open files to the hard limit, but not above `MOST`.

    A worker inherits its limit from the program that starts it, and can't know how many hosts it gets.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY not in (soft, hard) and soft < min(hard, MOST):
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, MOST), hard))
