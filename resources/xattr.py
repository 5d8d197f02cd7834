"""Extended attributes of files and directories."""

from __future__ import annotations

import posixpath
import re
from typing import Unpack

from statecfg import AbsolutePath, Action, ActionSpec, Attrs, HostNode, NodeOptions, PublicLine, World, node_type
from statecfg.resources.shared import paths, xattrs

FILE_TYPES = ("file", "directory")


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


@xattr.check
def check(node: HostNode, world: World) -> list[Action]:
    """Compare the attribute with the host."""
    name, wanted = node.attrs["name"], _value(node)
    if not xattrs.check(node, world, "xattrs", name, wanted, FILE_TYPES):
        return []
    return [xattrs.set_xattr(node.attrs["path"], name, wanted)]


@xattr.remember
def remember(node: HostNode, world: World) -> xattrs.ValueMemory:
    """Record the present value."""
    return xattrs.remember(node, world, "xattrs", node.attrs["name"])


@xattr.undo
def undo(node: HostNode, memory: xattrs.ValueMemory, world: World) -> ActionSpec:
    """Restore the former value."""
    back = xattrs.set_xattr(node.attrs["path"], node.attrs["name"], memory["value"])
    return xattrs.undo(node, memory, world, "xattrs", node.attrs["name"], _value(node), back)


def _value(node: HostNode) -> str | None:
    """Return the value as the host shows it; None if there must be none."""
    value = node.attrs.get("value")
    return None if value is None else xattrs.as_text(xattrs.as_bytes(value))
