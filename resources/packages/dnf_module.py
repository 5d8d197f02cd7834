"""Modules of dnf: which stream of a module is enabled, and which profiles are installed."""

from __future__ import annotations

import re
from typing import Unpack

from statecfg import Attrs, Name, NodeOptions, node_type
from statecfg.remote.graph.wrong_values import Wrong, show
from statecfg.resources.packages import dnf_modules

DIRECTORY = "/etc/dnf/modules.d/"


@node_type
def dnf_module(
    name: Name,
    *,
    stream: Name | None = None,
    profiles: list[Name] | None = None,
    disabled: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Choose a stream of a module of dnf, such as a version of Node.js. Packages automatically require the module.

    A stream decides which versions dnf installs from then on. Another stream of the module is reset before. A profile
    is a set of packages of the module; ``dnf module info`` shows them. The plan lists the packages, and an apply
    refuses a change of other packages than the plan lists. Other profiles that are installed stay. A removal fails if
    it would take a package that another node installs.

    Undo: statecfg removes the new profiles and those of their packages that nothing else needs, or installs removed
    profiles again. Then it enables the former stream again, or resets the module. If the removal would take a
    package that was there before, profiles and stream stay.

    :param name: the name of the module
    :param stream: the stream to enable
    :param profiles: the profiles of the stream to install; with `absent`, those to remove, and the stream stays
    :param disabled: no package of the module is available
    :param absent: no stream is enabled, so dnf uses the default stream if there is one

    In YAML::

        - dnf_module: nodejs
          stream: "20"
          profiles: [common]

    In Python::

        dnf_module("postgresql", disabled=True)
    """


@dnf_module.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse invalid names, such as patterns for several modules, and attributes that contradict each other."""
    named = [(attribute, attrs.get(attribute)) for attribute in ("name", "stream")]
    for attribute, text in [*named, *(("profiles", profile) for profile in attrs.get("profiles") or ())]:
        if text and not re.fullmatch(r"[A-Za-z0-9_.][A-Za-z0-9_.+-]*", text):
            raise Wrong(f"{attribute}: {show(text)} is not a name of dnf", "use letters, digits and `_.+-`")
    given = [name for name in ("stream", "disabled", "absent") if attrs.get(name)]
    if len(given) != 1:
        raise ValueError("exactly one of stream, disabled and absent is required")
    if attrs.get("profiles") is not None and attrs.get("disabled"):
        raise ValueError("disabled can't be combined with profiles")


dnf_module.identity(["path:" + DIRECTORY + "{name}.module"])
dnf_module.needs(["repository:"])
dnf_module.implemented_by(dnf_modules)
