"""Rules for git checkouts. Only the controller uses this module."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from statecfg.remote.graph.wrong_values import Wrong, show

# Not in the name of a branch or tag: git-check-ref-format(1).
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^[/-]|[/.]$|\.lock$")


def check(attrs: Mapping[str, Any]) -> None:
    """Check the attributes of a `git_checkout` together.

    :raises ValueError: if one is missing or not valid, or they contradict each other
    """
    if attrs.get("repository") is None:
        raise ValueError("repository is required unless absent is true")
    check_repository(attrs["repository"])
    version = attrs["version"]
    if not version or _FORBIDDEN.search(version):
        raise Wrong(f"{show(version)} is not a version", "write a branch, a tag or a commit with 40 digits")
    if re.match(r"[0-9a-f]{7,39}\Z", version):
        raise Wrong(f"{version} is a shortened commit", "write all 40 digits")
    if attrs.get("depth") is not None and attrs["depth"] < 1:
        raise Wrong(f"depth is {attrs['depth']}", "write 1 or more, or remove it for the whole history")
    if not attrs.get("update", True) and attrs.get("discard_changes"):
        raise ValueError("discard_changes has no effect with update: false")


def check_repository(text: str) -> None:
    """Check the address of a repository.

    :raises Wrong: if it is not valid, or contains a password
    """
    url = re.match(r"(https?|ssh|git|file)://([^/\s]*)/\S*\Z", text)
    if url and ":" in url[2].rpartition("@")[0]:
        raise Wrong("an address with a password", "use ssh_key, or git's own store of credentials on the host")
    if not url and not re.match(r"(/\S+|[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+:\S+)\Z", text):
        help = "write a URL, such as https://git.example.org/shop.git, or git@git.example.org:shop.git"
        raise Wrong(f"{show(text)} is not the address of a repository", help)
