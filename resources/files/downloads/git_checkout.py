"""Checkouts of git repositories."""

from __future__ import annotations

from typing import Unpack

from statecfg import AbsolutePath, Attrs, NodeOptions, PublicLine, Seconds, UserName, node_type
from statecfg.resources.files.downloads import git, git_rules
from statecfg.resources.shared import paths


@node_type
def git_checkout(
    path: AbsolutePath,
    *,
    repository: PublicLine | None = None,
    version: PublicLine = "HEAD",
    update: bool = True,
    discard_changes: bool = False,
    depth: int | None = None,
    submodules: bool = False,
    user: UserName | None = None,
    ssh_key: AbsolutePath | None = None,
    timeout: Seconds = 600.0,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a checkout of a git repository. HEAD is detached at the wanted commit.

    A plan asks the repository which commit a branch or tag points to, and shows it. If a required node changes
    something first, the commit is `known after` that node. Hooks of the checkout don't run. The host needs git.

    Work is never lost. An update fails, already in the plan, if files of the repository have been changed, if a new or
    ignored file is in the way of a file of the new commit, or if HEAD has commits that no branch and no tag has. Other
    new and ignored files stay. A removal fails or leaves the checkout if it contains changed, new or ignored files, or
    commits, stashes or other worktrees that exist nowhere else. This includes submodules. The message names the work.
    `discard_changes` gives it up.

    With `submodules`, submodules of all levels are part of the state: they are checked out at their recorded commits.

    Git runs as the user who owns the place. If several users can change the checkout or a directory above it, the node
    fails unless `user` is the only one of them besides root.

    Undo: statecfg checks out what was checked out before, or removes the checkout, unless work would be lost.

    :param path: the directory of the checkout
    :param repository: the repository: a URL, ``user@host:path``, or an absolute path of the host
    :param version: a branch, a tag or a whole commit; default: the repository's default branch
    :param update: false: an existing checkout stays as it is
    :param discard_changes: discard local changes, files in the way and, when the checkout is removed, all work in it
    :param depth: get only this number of commits of the history
    :param submodules: also check out the submodules, of all levels
    :param user: the user who runs git and owns the files; default: the only user besides root who can change the place
    :param ssh_key: the path of a private key on the host for logins over SSH
    :param timeout: seconds for each command of git
    :param absent: there must be no checkout at the path; one with work that exists nowhere else is an error

    In YAML::

        - git_checkout: /srv/shop
          repository: https://git.example.org/shop.git
          version: v1.4.2
          user: deploy

    In Python::

        git_checkout("/srv/shop", repository="git@git.example.org:shop.git", version="main", ssh_key="/etc/shop/key")
    """


git_checkout.identity(paths.path_identity)


@git_checkout.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse missing and invalid attributes, and attributes that contradict each other."""
    if attrs.get("absent"):
        free = {"version": None, "update": None, "timeout": None}
        paths.refuse_with_absent({**attrs, **free}, ("path", "absent", "user", "discard_changes"))
    else:
        git_rules.check(attrs)


git_checkout.implemented_by(git)
