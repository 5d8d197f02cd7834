"""Downloads: the rules for their attributes. Only the controller uses this module."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from statecfg.remote.graph.wrong_values import Wrong
from statecfg.resources.shared import entry_rules, paths, records, text_files

# Algorithm → hexadecimal digits of its digest. The older ones can be forged.
ALGORITHMS = {"sha256": 64, "sha384": 96, "sha512": 128}
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # of a header: RFC 9110, 5.6.2


def check(attrs: records.Attrs) -> None:
    """Check the attributes of a download together. Values that contain secrets are checked on the host.

    :raises ValueError: if they contradict each other, or a value is invalid
    """
    paths.refuse_with_absent(attrs, ("path", "absent", "timeout", "via"))
    if attrs.get("absent"):
        return
    if attrs.get("url") is None:
        raise ValueError("url is required unless absent is true")
    _check_url("url", attrs["url"], ("https", "http"))
    checksum = attrs.get("checksum")
    if checksum is not None:
        _check_checksum(checksum)
    elif isinstance(attrs["url"], str) and attrs["url"].startswith("http:"):
        raise Wrong(
            "content over http can be changed on the network", "use https, or write the checksum of the content"
        )
    if attrs.get("proxy") is not None:
        _check_url("proxy", attrs["proxy"], ("http",))
    for name in attrs.get("headers") or {}:
        if not _NAME.fullmatch(name):
            raise ValueError(f"headers: `{name}` is not the name of a header")
    if attrs.get("via") == "controller" and not (checksum or "").startswith("sha256:"):
        raise ValueError("via: controller requires a checksum with sha256, which names the content")
    if attrs.get("max_size") is not None:
        entry_rules.check_size(attrs["max_size"])
    text_files.refuse_without_placeholder(attrs)


def _check_url(name: str, url: object, schemes: tuple[str, ...]) -> None:
    if not isinstance(url, str):
        return
    try:
        parts = urlsplit(url)
        valid = parts.scheme in schemes and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        valid = False
    if not valid or not url.isascii() or " " in url:
        raise ValueError(f"{name} is not a URL; write {schemes[0]}://HOST/…")
    if name == "url" and "@" in parts.netloc:
        raise Wrong("url contains a password, which reports would show", "write it as a header, such as Authorization")


def _check_checksum(checksum: str) -> None:
    algorithm, _, digest = checksum.partition(":")
    digits = ALGORITHMS.get(algorithm.lower())
    if digits is None:
        raise ValueError(f"checksum begins with its algorithm: {', '.join((name + ':' for name in ALGORITHMS))}")
    if not re.fullmatch("[0-9A-Fa-f]{%d}" % digits, digest):
        raise ValueError(f"checksum: {algorithm} has {digits} digits from 0 to 9 and a to f")


def to_wire(node: Any) -> Any:
    """Return the node with checksums in small letters, as statecfg compares and shows them, and bytes in numbers."""
    names = [name for name in ("checksum", "member_checksum") if node.attrs.get(name)]
    changed: dict[str, Any] = {name: node.attrs[name].lower() for name in names}
    if node.attrs.get("max_size"):
        changed["max_size"] = entry_rules.size_in_bytes(node.attrs["max_size"])
    return node.with_attrs(**changed) if changed else node
