"""Filters of text: comments, encodings, digests, paths, URLs."""

from __future__ import annotations

import base64
import binascii
import hashlib
import posixpath
import shlex
import time
import uuid
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote_plus, urlsplit

from statecfg.templates.filters.choices import chosen
from statecfg.templates.filters.limits import BUDGET, Refused

_UUIDS = uuid.UUID("361e6d51-faec-444a-9079-341386da8e2e")  # Ansible's namespace, for the same results


# Style of comments → its first line, its last line, and the beginning of the other lines.
_COMMENTS = {
    "plain": ("", "", "# "),
    "erlang": ("", "", "% "),
    "c": ("", "", "// "),
    "cblock": ("/*", " */", " * "),
    "xml": ("<!--", "-->", " - "),
}


def comment(
    text: str,
    style: str = "plain",
    *,
    decoration: str | None = None,
    prefix: str | None = None,
    postfix: str | None = None,
    prefix_count: int = 1,
    postfix_count: int = 1,
    beginning: str | None = None,
    end: str | None = None,
    newline: str = "\n",
) -> str:
    """Return a string as a comment in the style `plain` (`#`), `erlang` (`%`), `c` (`//`), `cblock` or `xml`."""
    first, last, mark = chosen(style, _COMMENTS, "style of comments")
    mark = mark if decoration is None else decoration
    bare = mark.rstrip()
    before = (bare if prefix is None else prefix) + newline
    after = newline + (bare if postfix is None else postfix)
    start, stop = first if beginning is None else beginning, last if end is None else end
    lines = (mark + text.replace(newline, newline + mark)).replace(mark + newline, bare + newline)
    return "".join(
        [
            start + newline if start else "",
            _times(before, prefix_count) if before != newline else "",
            lines,
            _times(after, postfix_count),
            newline + stop if stop else "",
        ]
    )


def b64encode(text: str, encoding: str = "utf-8") -> str:
    """Return a string in Base64."""
    return base64.b64encode(text.encode(encoding)).decode()


def b64decode(text: str, encoding: str = "utf-8") -> str:
    """Return the text of Base64."""
    try:
        return base64.b64decode(text).decode(encoding)
    except (binascii.Error, UnicodeDecodeError) as error:
        raise Refused(f"{text!r} is not text in Base64: {error}") from None


def quote(value: Any) -> str:
    """Return a value as one word for a shell."""
    return shlex.quote("" if value is None else str(value))


def split(text: str, separator: str | None = None, most: int = -1) -> list[str]:
    """Return the parts of a string; without a separator, its words."""
    return text.split(separator, most)


def hash_(value: Any, algorithm: str = "sha1") -> str:
    """Return the digest of a string, by any algorithm that Python has everywhere."""
    if algorithm not in hashlib.algorithms_guaranteed or algorithm.startswith("shake"):
        algorithms = sorted(name for name in hashlib.algorithms_guaranteed if not name.startswith("shake"))
        raise Refused(f"unknown algorithm {algorithm!r}", f"write one of: {', '.join(algorithms)}")
    return hashlib.new(algorithm, str(value).encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()


def md5(value: Any) -> str:
    """Return the MD5 digest of a string."""
    return hash_(value, "md5")


def sha1(value: Any) -> str:
    """Return the SHA-1 digest of a string."""
    return hash_(value, "sha1")


def checksum(value: Any) -> str:
    """Return the SHA-1 digest of a string, like `sha1`."""
    return hash_(value, "sha1")


def to_uuid(text: str, namespace: str | uuid.UUID = _UUIDS) -> str:
    """Return a UUID of version 5 for a string."""
    return str(uuid.uuid5(uuid.UUID(str(namespace)), text))


def urldecode(text: str) -> str:
    """Return a string without the percent encoding of URLs."""
    return unquote_plus(text)


def urlsplit_(url: str, part: str = "") -> Any:
    """Return the parts of a URL as a map, or one of them, such as `hostname`."""
    parts = urlsplit(url)
    names = ("fragment", "hostname", "netloc", "password", "path", "port", "query", "scheme", "username")
    values = {name: getattr(parts, name) for name in names}
    return chosen(part, values, "part of a URL") if part else values


def strftime(format: str, second: float | None = None, utc: bool = False) -> str:
    """Return a time (seconds since 1970) as text. The time is required: a template can't read the clock."""
    if second is None:
        raise Refused("strftime needs a time", "write `second=`: a template must give the same result again")
    return time.strftime(format, time.gmtime(float(second)) if utc else time.localtime(float(second)))


def basename(path: str) -> str:
    """Return the last part of a path."""
    return posixpath.basename(path)


def dirname(path: str) -> str:
    """Return a path without its last part."""
    return posixpath.dirname(path)


def splitext(path: str) -> tuple[str, str]:
    """Return a path without its extension, and the extension."""
    return posixpath.splitext(path)


def normpath(path: str) -> str:
    """Return a path without `.`, `..` and double slashes."""
    return posixpath.normpath(path)


def path_join(parts: str | Iterable[str]) -> str:
    """Return the parts of a path as one path."""
    return parts if isinstance(parts, str) else posixpath.join(*parts)


def relpath(path: str, start: str) -> str:
    """Return a path as seen from a directory."""
    if not path.startswith("/") or not start.startswith("/"):
        raise Refused("relpath needs two absolute paths")
    return posixpath.relpath(path, start)


def commonpath(paths: Iterable[str]) -> str:
    """Return the longest directory that contains all paths."""
    return posixpath.commonpath(list(paths))


def _times(text: str, count: int) -> str:
    BUDGET.get().text(len(text) * count)
    return text * count
