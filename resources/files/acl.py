"""Access lists: what users and groups may do beyond the mode of a file or directory."""

from __future__ import annotations

import posixpath
from typing import Unpack

from statecfg import AbsolutePath, Attrs, NodeOptions, PublicLine, node_type
from statecfg.resources.files import acls
from statecfg.resources.shared import paths


@node_type
def acl(
    path: AbsolutePath,
    *,
    entries: list[PublicLine] | None = None,
    exact: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage entries of the POSIX access list of a file or directory.

    An entry is ``user:NAME:rwx`` or ``group:NAME:r-x``. With ``default:`` before it, new files in the directory get it.
    The mode stays: its bits for the group limit what the entries grant, so a file with mode 0640 can grant no more than
    ``r--``. Set the mode in a `file` or `directory` node that this node requires. Such a node keeps the list when it
    is unchanged; when it changes mode or owner, it removes the list, and this node sets it again in the same run.

    Undo: the entries that the node set or removed get their former permissions. Entries of others stay.

    :param path: the path of the file or directory; it must not be a link
    :param entries: the entries; users and groups by name or number
    :param exact: remove all entries for other users and groups
    :param absent: there must be no entries for users and groups

    In YAML::

        - acl: /srv/shop/uploads
          entries: ["user:www-data:rwx", "default:user:www-data:rwx"]

    In Python::

        acl("/var/log/nginx", entries=["group:adm:r-x"], exact=True)
    """


@acl.identity
def identity(attrs: Attrs) -> list[str]:
    """Identify the list, not the path, because another node may manage the file itself."""
    return ["acl:" + posixpath.normpath(attrs["path"])]


@acl.needs
def needs(attrs: Attrs) -> list[str]:
    """Need the path, and the users and groups of the entries."""
    entries = [entry.removeprefix("default:").split(":") for entry in attrs.get("entries") or ()]
    return ["path:" + attrs["path"], *(":".join(parts[:2]) for parts in entries if parts[0] in ("user", "group"))]


@acl.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse invalid entries, and attributes that contradict each other."""
    paths.refuse_with_absent(attrs, ("path", "absent"))
    if not attrs.get("absent") and not attrs.get("entries"):
        raise ValueError("entries is required unless absent is true")
    acls.parsed(attrs.get("entries") or ())


acl.implemented_by(acls)
