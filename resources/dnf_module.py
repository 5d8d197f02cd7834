"""Modules of dnf: which stream of a module is enabled."""

from __future__ import annotations

import re
from typing import Any, Unpack

from statecfg import Name, NodeOptions, node_type
from statecfg.remote.graph.wrong_values import Wrong, show
from statecfg.resources.shared import dnf_modules

DIRECTORY = "/etc/dnf/modules.d/"


@node_type
def dnf_module(
    name: Name,
    *,
    stream: Name | None = None,
    disabled: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Choose a stream of a module of dnf, such as a version of Node.js. Packages automatically require the module.

    This changes no package: it decides which versions dnf installs from then on. Another stream of the module is reset
    before. `package` nodes install what a profile of the module contains; ``dnf module info`` shows it.

    Undo: statecfg enables the former stream again, or resets the module.

    :param name: the name of the module
    :param stream: the stream to enable
    :param disabled: no package of the module is available
    :param absent: no stream is enabled, so dnf uses the default stream if there is one

    In YAML::

        - dnf_module: nodejs
          stream: "20"

    In Python::

        dnf_module("postgresql", disabled=True)
    """


@dnf_module.claims
def claims(attrs: dict[str, Any]) -> list[str]:
    """Claim the file in which dnf records the stream."""
    return ["path:%s%s.module" % (DIRECTORY, attrs["name"])]


@dnf_module.needs
def needs(attrs: dict[str, Any]) -> list[str]:
    """Need the files that name the repositories."""
    return ["repository:"]


@dnf_module.validate
def contradictions(attrs: dict[str, Any]) -> None:
    """Refuse invalid names, such as patterns for several modules, and attributes that contradict each other."""
    for attribute in ("name", "stream"):
        text = attrs.get(attribute)
        if text and not re.fullmatch(r"[A-Za-z0-9_.][A-Za-z0-9_.+-]*", text):
            raise Wrong(f"{attribute}: {show(text)} is not a name of dnf", "use letters, digits and `_.+-`")
    given = [name for name in ("stream", "disabled", "absent") if attrs.get(name)]
    if len(given) != 1:
        raise ValueError("exactly one of stream, disabled and absent is required")


dnf_module.check(dnf_modules.check)
dnf_module.remember(dnf_modules.remember)
dnf_module.undo(dnf_modules.undo)
