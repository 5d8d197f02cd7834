"""Repositories of packages for pacman."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import AbsolutePath, Name, NodeOptions, PublicLine, node_type
from statecfg.resources.packages.repositories import pacman_repositories, pacman_texts
from statecfg.resources.shared import files

DIRECTORY = "/etc/pacman.d/"


@node_type
def pacman_repository(
    name: Name,
    *,
    servers: list[PublicLine] | None = None,
    mirrorlist: AbsolutePath | None = None,
    sig_level: list[Name] | None = None,
    usage: list[Name] | None = None,
    fetch: bool = True,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Let pacman install packages from a repository. Each repository has its own file in /etc/pacman.d.

    pacman.conf includes this file with a line at its end, so pacman prefers the repositories that were there before. If
    something changes, or if pacman has no lists of the repository yet, statecfg fetches the lists of all repositories.
    Packages automatically require the repository. If pacman does not accept its configuration then, statecfg restores
    the former one. The plan fails if another file defines the repository, because pacman then does nothing.

    Without these lists, pacman installs nothing. If it can't fetch them, pacman.conf leaves the repository out again.

    Undo: statecfg restores the file that had this name before, or removes the repository, its line and its lists.
    Packages that came from it stay, unless their own nodes leave the definition as well.

    :param name: the name of the repository, and of the file without ``.conf``
    :param servers: where the repository is; the addresses may contain ``$repo`` and ``$arch``
    :param mirrorlist: instead of `servers`: the path of a file on the host that lists them
    :param sig_level: which signatures pacman requires, such as ``[Required, DatabaseOptional]``; by default, as
        pacman.conf says
    :param usage: what pacman uses the repository for, such as ``[Sync, Search]``; by default, everything
    :param fetch: false: fetch no lists
    :param absent: there must be no such repository

    In YAML::

        - pacman_repository: shop
          servers: ["https://pacman.example.org/$repo/$arch"]
          sig_level: [Required, DatabaseOptional]

    In Python::

        pacman_repository("own", servers=["file:///srv/pacman"], sig_level=["Optional", "TrustAll"])
    """


@pacman_repository.to_wire
def to_wire(node: Any) -> Any:
    """Send the content of the file."""
    return pacman_texts.sent(node, f"{DIRECTORY}{node.attrs['name']}.conf")


pacman_repository.identity(["path:" + DIRECTORY + "{name}.conf"])
pacman_repository.owns(["part:path:" + pacman_repositories.CONFIGURATION])
pacman_repository.needs(["path:{mirrorlist}"])
pacman_repository.validate(pacman_texts.check_repository)
pacman_repository.blobs(files.blobs)
pacman_repository.implemented_by(pacman_repositories)
