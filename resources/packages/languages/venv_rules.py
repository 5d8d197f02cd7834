"""Rules for virtual environments. Only the controller uses this module."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from statecfg.remote.graph.wrong_values import Wrong, show
from statecfg.resources.packages.languages import venvs

_REQUIREMENT = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?:\[[A-Za-z0-9._-]+(?:,[A-Za-z0-9._-]+)*\])?(?:==[A-Za-z0-9.!+_-]+)?\Z"
)


def check(attrs: Mapping[str, Any]) -> None:
    """Check the attributes of a `python_venv` together.

    :raises ValueError: if one is not valid
    """
    seen: dict[str, str] = {}
    for requirement in attrs.get("packages") or ():
        if not _REQUIREMENT.match(requirement):
            help = "write a name, or a name with an exact version, such as requests==2.31.0"
            raise Wrong(f"packages: {show(requirement)} is not a package", help)
        name = venvs.parsed(requirement)[0]
        if name in seen:
            raise Wrong(f"packages: {show(requirement)} and {show(seen[name])} are the same package", "remove one")
        seen[name] = requirement
    index = attrs.get("index")
    if index is not None:
        if not re.match(r"https?://[^\s/]+(/\S*)?\Z", index):
            raise Wrong(f"index: {show(index)} is not a URL", "write a URL such as https://pypi.example.org/simple/")
        if "@" in index.split("/")[2]:
            raise Wrong("index: a URL with a user or a password", "let a file ~/.netrc of the user contain them")
