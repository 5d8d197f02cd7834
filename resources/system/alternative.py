"""Alternatives of Debian: which of several programs a name refers to."""

from __future__ import annotations

from typing import Unpack

from statecfg import AbsolutePath, Attrs, Name, NodeOptions, node_type
from statecfg.resources.system import alternatives


@node_type
def alternative(
    name: Name,
    *,
    path: AbsolutePath | None = None,
    link: AbsolutePath | None = None,
    priority: int | None = None,
    **options: Unpack[NodeOptions],
) -> None:
    """Choose the program that a name of update-alternatives(1) refers to, such as `editor`.

    Without `path`, the name is in automatic mode: it refers to the program with the highest priority. With `link` and
    `priority`, statecfg first registers the program, if it is not registered with them. A missing link is made again.

    Undo: statecfg restores the former mode and the former choice, and the former link and priority of a program that
    was registered before. It removes a program that the node registered.

    :param name: the name of the alternatives, as ``update-alternatives --get-selections`` lists them
    :param path: the program; default: automatic mode
    :param link: the path under which users call the program, such as ``/usr/bin/editor``; it registers the program
    :param priority: the priority of the program in automatic mode; requires `link`

    In YAML::

        - alternative: editor
          path: /usr/bin/vim.basic

    In Python::

        alternative("java", path="/opt/java-21/bin/java", link="/usr/bin/java", priority=2100)
    """


alternative.owns(["path:" + alternatives.CHOSEN + "/{name}", "path:{link}"])


@alternative.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse attributes that have no effect without each other."""
    if (attrs.get("link") is None) != (attrs.get("priority") is None):
        raise ValueError("link and priority require each other")
    if attrs.get("link") is not None and attrs.get("path") is None:
        raise ValueError("link requires path")


alternative.implemented_by(alternatives)
