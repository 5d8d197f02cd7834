"""Programs from downloads: the rules for their attributes, and what the controller fetches. Hosts don't get this."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any

from statecfg.remote.graph.wrong_values import Wrong
from statecfg.resources.files import unpacking
from statecfg.resources.files.downloads import download_rules, downloads, fetched, releases

_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+~_-]*\Z")


class FetchedMember(fetched.Fetched):
    """A file in an archive. The controller keeps the archive in its cache.

    :param archive: the digest of the archive
    """

    __slots__ = ("archive", "member")

    def __init__(self, url: str, archive: str, how: Mapping[str, Any], member: str, sha256: str) -> None:
        fetched.Fetched.__init__(self, url, sha256, how)
        self.archive, self.member = archive, member

    def _pieces(self) -> Iterator[bytes]:
        """Fetch the archive if it is not in the cache, and yield the content of the member in pieces.

        :raises LookupError: if the archive has no such member
        :raises OSError: if it can't be fetched
        """
        whole = fetched.Fetched(self.url, self.archive, self.how)
        for _ in whole.chunks():
            break  # it is in the cache now
        with (fetched.directory() / self.archive).open("rb") as stream:
            archive = unpacking.Archive(lambda: stream, 0)
            yield from releases.content(archive, self.member, self.sha256, self.url, downloads.PIECE)


def check(attrs: Mapping[str, Any]) -> None:
    """Check the attributes of a `release_binary` together.

    :raises ValueError: if they contradict each other, or a value is invalid
    """
    absent, checksum = attrs.get("absent"), attrs.get("checksum")
    download_rules.check({**attrs, "mode": None if absent else attrs.get("mode")})
    if absent:
        return
    if checksum is None:
        help = "write the digest that the project publishes, such as sha256:…"
        raise Wrong("checksum is required: users run this program", help)
    member, digest = attrs.get("member"), attrs.get("member_checksum")
    if member is None and digest is not None:
        raise ValueError("member_checksum requires member")
    if member is not None:
        _check_member(member, digest)
    version = attrs.get("version")
    if version is not None and not _VERSION.match(version):
        raise Wrong("version is a part of a file name", "write letters, digits and . + ~ _ -, such as 1.2.0")
    if attrs.get("versions_in") is not None and version is None:
        raise ValueError("versions_in requires version")


def _check_member(member: str, digest: str | None) -> None:
    name = posixpath.normpath(member)
    if member.startswith("/") or member.endswith("/") or name in ("", ".") or name.split("/")[0] == "..":
        raise Wrong(f"member: `{member}` is not the name of a file in an archive", "write it as `tar -t` prints it")
    if digest is None:
        help = "`tar -xOf ARCHIVE MEMBER | sha256sum` prints it"
        raise Wrong("member requires member_checksum, with which statecfg compares the installed program", help)
    if not re.fullmatch("sha256:[0-9A-Fa-f]{64}", digest):
        raise ValueError("member_checksum is sha256: and 64 digits from 0 to 9 and a to f")


def to_wire(node: Any) -> Any:
    """Return the node with the digest of a program that the controller fetches, in place of the download."""
    node = download_rules.to_wire(node)
    attrs = node.attrs
    if attrs.get("via") != "controller" or attrs.get("absent"):
        return node
    archive = attrs["checksum"].partition(":")[2]
    content = fetched.Fetched(attrs["url"], archive, dict(attrs))
    if attrs.get("member") is not None:
        digest = attrs["member_checksum"].partition(":")[2]
        content = FetchedMember(attrs["url"], archive, dict(attrs), attrs["member"], digest)
    return node.with_attrs(content=content, headers=None, proxy=None, ca=None)
