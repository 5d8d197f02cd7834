"""Locales, and the default locale of the host."""

from __future__ import annotations

from typing import Literal, Unpack

from statecfg import Attrs, Name, NodeOptions, node_type
from statecfg.resources.shared import entry_rules, paths
from statecfg.resources.system import locales

Variable = Literal[
    "LANG", "LC_ADDRESS", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_MESSAGES",
    "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME",
]  # fmt: skip


@node_type
def locale(
    name: Name,
    *,
    default_for: list[Variable] | None = None,
    allow_override: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Make a locale available on the host, and optionally make it the default of new sessions.

    On Debian, the locale is named in /etc/locale.gen and generated; the host needs the package locales. On other
    systems, a package brings the locale: require it. The default is in /etc/default/locale on Debian, and otherwise in
    /etc/locale.conf. Running programs keep their locale. ``LC_ALL`` wins over all other variables: if the host sets it,
    a node for another variable fails and names the line, already in the plan.

    Undo: statecfg restores the former lines of both files. It removes a generated locale, if it did not exist before.

    :param name: the name of the locale, such as ``de_DE.UTF-8``
    :param default_for: the variables that have this locale by default, such as ``LANG``
    :param allow_override: accept that ``LC_ALL`` wins
    :param absent: the locale must be neither named in /etc/locale.gen nor generated. A default that names it stays

    In YAML::

        - locale: en_US.UTF-8
          default_for: [LANG]
        - locale: de_DE.UTF-8
          default_for: [LC_TIME, LC_PAPER]

    In Python::

        locale("fr_FR.UTF-8")
    """


@locale.identity
def identity(attrs: Attrs) -> list[str]:
    """Identify the locale, and each variable of the default."""
    variables = ["default locale:" + variable for variable in attrs.get("default_for") or ()]
    return ["locale:" + locales.listed(attrs["name"]), *variables]


locale.owns(["part:path:" + path for path in (locales.LIST, locales.DEBIAN_DEFAULT, locales.DEFAULT)])


@locale.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse an invalid name, and the removal of a locale that every system has."""
    paths.refuse_with_absent(attrs, ("name", "absent"))
    entry_rules.check_locale(attrs["name"])
    if attrs.get("absent") and attrs["name"] in locales.BUILT_IN:
        raise ValueError(f"every system has the locale {attrs['name']}, so it can't be absent")


locale.effect(locales.effect)
locale.implemented_by(locales)
