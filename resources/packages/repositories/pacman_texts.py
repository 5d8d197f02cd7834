"""The files of pacman's repositories. Only the controller uses this module."""

from __future__ import annotations

import re
from typing import Any

from statecfg.remote.graph.suggestions import did_you_mean
from statecfg.remote.graph.wrong_values import Wrong, show
from statecfg.resources.shared import drop_in_texts, paths, records

SCHEMES = ("http", "https", "ftp", "file")
WRITTEN = ("servers", "mirrorlist", "sig_level", "usage", "fetch")
# Source: pacman.conf(5).
LEVELS = tuple(
    prefix + word
    for prefix in ("", "Package", "Database")
    for word in ("Never", "Optional", "Required", "TrustedOnly", "TrustAll")
)
USAGES = ("Sync", "Search", "Install", "Upgrade", "All")


def check_repository(attrs: records.Attrs) -> None:
    """Check the attributes of a repository.

    :raises Wrong: if a value is not valid
    :raises ValueError: if attributes contradict each other
    """
    name = attrs["name"]
    if not re.match(r"[A-Za-z0-9_.+-]+\Z", name) or name in ("options", "local") or name[0] in ".-":
        raise Wrong(f"not a valid name of a repository: {show(name)}", "use letters, digits and `_.+-`")
    if attrs.get("absent"):
        given = [each for each in WRITTEN if attrs.get(each) not in (None, each == "fetch")]
        paths.refuse_with_absent({each: attrs[each] for each in ("name", "absent", *given)}, ("name", "absent"))
        return
    if (attrs.get("servers") is None) is (attrs.get("mirrorlist") is None):
        raise ValueError("either servers or mirrorlist is required unless absent is true")
    if attrs.get("servers") == []:
        raise ValueError("servers is empty; name at least one")
    for server in attrs.get("servers") or ():
        scheme, colon, rest = server.partition("://")
        if scheme not in SCHEMES or not colon or not rest.strip("/") or re.search(r"\s", server):
            raise Wrong(f"servers: not the address of a repository: {show(server)}", "write https://example.org/$repo")
        if re.match(r"[^/@]*:[^/@]*@", rest):
            raise Wrong("servers: an address with a password, which all users of the host could read", "use another")
    for field, words in (("sig_level", LEVELS), ("usage", USAGES)):
        for word in attrs.get(field) or ():
            if word not in words:
                help = did_you_mean(word, words) or f"use {', '.join(words)}"
                raise Wrong(f"{field}: pacman does not know {show(word)}", help)


def repository(attrs: records.Attrs) -> str:
    """Return the content of the file of a repository."""
    rows = [f"Server = {server}\n" for server in attrs.get("servers") or ()]
    rows += [f"Include = {attrs['mirrorlist']}\n"] if attrs.get("mirrorlist") else []
    for key, field in (("SigLevel", "sig_level"), ("Usage", "usage")):
        rows += [f"{key} = {' '.join(attrs[field])}\n"] if attrs.get(field) else []
    return f"{drop_in_texts.HEADER}[{attrs['name']}]\n{''.join(rows)}"


def sent(node: Any, path: str) -> Any:
    """Return the node as the host needs it: with the content of its file."""
    if node.attrs.get("absent"):
        return drop_in_texts.sent(node, path, None)
    gone: dict[str, Any] = dict.fromkeys(WRITTEN[:-1])
    return drop_in_texts.sent(node, path, repository(node.attrs), **gone)
