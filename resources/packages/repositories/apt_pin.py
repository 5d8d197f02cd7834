"""Pins of apt: which version of a package it prefers."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import Name, NodeOptions, PublicLine, node_type
from statecfg.resources.packages.repositories import apt_lists, apt_pins, apt_texts
from statecfg.resources.shared import drop_in_texts, files

DIRECTORY = "/etc/apt/preferences.d/"


@node_type
def apt_pin(
    name: Name,
    *,
    packages: list[PublicLine] | None = None,
    pin: PublicLine | None = None,
    priority: int | None = None,
    allow_override: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Let apt prefer or avoid versions of packages. The pin is in a separate file in /etc/apt/preferences.d.

    A pin changes no installed package. It decides which version apt takes from then on. Packages automatically require
    it. Of several records for a package, the first one that matches a version decides. If an earlier file wins, the
    node fails and names its line, already in the plan.

    Undo: statecfg restores the file that had this name before, or removes the pin.

    :param name: the name of the file: letters, digits, `_` and `-`
    :param packages: the packages, also as patterns such as ``linux-*``; ``*`` means all packages
    :param pin: what it prefers: ``release n=CODENAME``, ``version 1.22.*`` or ``origin HOST``; apt_preferences(5) has
        more
    :param priority: below 0: never install it; 100: only if no other version is installed; 500: as usual; 990:
        prefer it; above 1000: also replace a newer version
    :param allow_override: accept that an earlier file wins
    :param absent: there must be no file of this name

    In YAML::

        - apt_pin: backports
          packages: [linux-image-amd64]
          pin: release n=bookworm-backports
          priority: 990

    In Python::

        apt_pin("no-snap", packages=["snapd"], pin="release a=*", priority=-10)
    """


@apt_pin.to_wire
def to_wire(node: Any) -> Any:
    """Send the content of the file."""
    content = None if node.attrs.get("absent") else apt_texts.pin(node.attrs)
    path = DIRECTORY + node.attrs["name"]
    return drop_in_texts.sent(node, path, content, packages=None, pin=None, priority=None)


apt_pin.identity(["path:" + DIRECTORY + "{name}"])
apt_pin.validate(apt_texts.check_pin)
apt_pin.check(apt_lists.check_pin)
apt_pin.effect(apt_pins.effect)
apt_pin.implemented_by(files)
