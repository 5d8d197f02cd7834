"""Extended attributes of files and directories."""

from __future__ import annotations

import posixpath
import re
from typing import Unpack

from statecfg import AbsolutePath, Attrs, NodeOptions, PublicLine, node_type
from statecfg.resources.files import xattrs
from statecfg.resources.shared import paths


@node_type
def xattr(
    path: AbsolutePath,
    *,
    name: PublicLine,
    value: PublicLine | None = None,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage one extended attribute of a file or directory.

    Several of these nodes can manage one path; each of them then needs its own `provides`. If a required node of the
    same run rewrites the file or changes its mode or owner, statecfg sets the attribute again.

    Undo: the attribute gets its former value, or is removed. If others have changed it since, it stays.

    :param path: the path of the file or directory; it must not be a link
    :param name: the name with its namespace: ``user.``, ``trusted.`` or ``security.``. For access lists and
        capabilities, use `acl` and `capabilities`
    :param value: the value: one line of text, or ``0x`` and hexadecimal digits
    :param absent: the path must not have the attribute

    In YAML::

        - xattr: /srv/backup
          name: user.backup
          value: daily

    In Python::

        xattr("/srv/cache", name="user.backup", absent=True)
    """


@xattr.identity
def identity(attrs: Attrs) -> list[str]:
    """Identify the attribute, because other nodes manage other attributes."""
    return [f"xattr:{posixpath.normpath(attrs['path'])}: {attrs['name']}"]


@xattr.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse invalid names and values."""
    paths.refuse_with_absent(attrs, ("path", "name", "absent"))
    name = attrs["name"]
    if name == "security.capability" or name.startswith("system.posix_acl_"):
        raise ValueError(f"name: use the node type {'acl' if name.startswith('system.') else 'capabilities'}")
    if not name.startswith(xattrs.NAMESPACES) or re.search(r"[\s/]|\.\Z", name):
        raise ValueError("name begins with its namespace: user., trusted. or security.")
    if not attrs.get("absent") and attrs.get("value") is None:
        raise ValueError("value is required unless absent is true")
    xattrs.as_bytes(attrs.get("value") or "")


xattr.managed_by(xattrs.AttributeValue)
