"""Capabilities of programs."""

from __future__ import annotations

import posixpath
from typing import Unpack

from statecfg import AbsolutePath, Attrs, NodeOptions, PublicLine, node_type
from statecfg.resources.files import file_capabilities, xattrs
from statecfg.resources.shared import paths


@node_type
def capabilities(
    path: AbsolutePath,
    *,
    value: PublicLine | None = None,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage the capabilities of a program, which allow it to do some of what otherwise only root can do.

    The file has exactly these capabilities. An update of its package removes them, and the next apply sets them again.
    If a required node of the same run rewrites the file or changes its mode or owner, statecfg sets them again.

    Undo: the program gets its former capabilities, or none. If others have changed them since, they stay.

    :param path: the path of the program; it must not be a link
    :param value: the capabilities in the form of getcap(8), such as ``cap_net_bind_service,cap_net_raw=ep``
    :param absent: the program must have no capabilities

    In YAML::

        - capabilities: /usr/local/bin/shop
          value: cap_net_bind_service=ep

    In Python::

        capabilities("/usr/bin/ping", value="cap_net_raw=ep")
    """


@capabilities.identity
def identity(attrs: Attrs) -> list[str]:
    """Identify the capabilities, not the path, because another node may manage the file itself."""
    return ["capabilities:" + posixpath.normpath(attrs["path"])]


@capabilities.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse unknown capabilities, and attributes that contradict each other."""
    paths.refuse_with_absent(attrs, ("path", "absent"))
    if attrs.get("value") is not None:
        file_capabilities.parsed(attrs["value"])
    elif not attrs.get("absent"):
        raise ValueError("value is required unless absent is true")


capabilities.managed_by(xattrs.Capabilities)
