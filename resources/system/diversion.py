"""Diversions of dpkg: files of packages that are installed under another name."""

from __future__ import annotations

from typing import Unpack

from statecfg import AbsolutePath, Attrs, NodeOptions, node_type
from statecfg.resources.shared import paths
from statecfg.resources.system import diversions


@node_type
def diversion(
    path: AbsolutePath,
    *,
    to: AbsolutePath | None = None,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Divert a file of a package with dpkg-divert(1), so that another file can have its path.

    statecfg renames the present file, and dpkg installs later versions of it under the new name. A `file` node that
    requires this node can then manage the path. What is at both paths is `known after` the diversion.

    Undo: statecfg removes the diversion and renames the file back, or adds a removed diversion again.

    :param path: the path of the file in its package
    :param to: its new path in the same file system; default: the path with the suffix ``.distrib``
    :param absent: there must be no diversion of the path by the administrator

    In YAML::

        - diversion: /usr/sbin/sendmail

    In Python::

        diversion("/etc/issue", to="/etc/issue.debian")
    """


@diversion.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse a diversion of a path to itself."""
    paths.refuse_with_absent(attrs, ("path", "absent"))
    if attrs.get("to") == attrs["path"]:
        raise ValueError("to is the path itself")


diversion.identity(["diversion:{path}"])


@diversion.owns
def owns(attrs: Attrs) -> list[str]:
    """Own the new path of the package's file."""
    return ["path:" + (attrs.get("to") or attrs["path"] + ".distrib")]


diversion.needs([])  # the node of the path comes after the diversion
diversion.managed_by(diversions.Diversion)
