"""Programs that projects publish as downloads."""

from __future__ import annotations

from typing import Literal, Unpack

from statecfg import (
    AbsolutePath,
    Argv,
    Attrs,
    Line,
    Mode,
    NodeOptions,
    Owner,
    OwnerGroup,
    PublicLine,
    Seconds,
    node_type,
)
from statecfg.resources.files.downloads import release_rules, releases


@node_type
def release_binary(
    path: AbsolutePath,
    *,
    url: Line | None = None,
    checksum: PublicLine | None = None,
    member: PublicLine | None = None,
    member_checksum: PublicLine | None = None,
    version: PublicLine | None = None,
    versions_in: AbsolutePath | None = None,
    mode: Mode = "0755",
    owner: Owner | None = None,
    group: OwnerGroup | None = None,
    validate: Argv | None = None,
    headers: dict[str, Line] | None = None,
    proxy: Line | None = None,
    ca: AbsolutePath | None = None,
    timeout: Seconds = 600.0,
    max_size: PublicLine | None = None,
    via: Literal["host", "controller"] = "host",
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage one program that a project publishes as a download: the program itself, or an archive that contains it.

    statecfg compares the installed program with its checksum, so a plan needs no connection. It fetches an archive only
    if the program differs, and installs nothing else of it. The downloaded file must have the right checksum, too. The
    other rules are those of [download](#download) and [archive](#archive).

    With `version`, the program is a file beside `path`, such as ``/usr/local/bin/tool-1.2.0``, and `path` is a link to
    it. statecfg switches the link to another version in one step. The files of older versions stay.

    Undo: statecfg removes the link and all versions that the node installed, or restores what was at `path` before. A
    version that the node did not install, a program that others have replaced and a link that others have changed stay.

    :param path: the path of the program
    :param url: the URL of the program or of the archive
    :param checksum: the digest of what the URL returns, such as ``sha256:9f86…``; also sha384 and sha512
    :param member: the name of the program in the archive, such as ``tool-1.2.0/bin/tool``
    :param member_checksum: the digest of the program itself, with sha256; required with `member`
    :param version: the version, which is a part of the name of the file that `path` links to
    :param versions_in: the directory of these files; default: the directory of `path`
    :param mode: permission bits as an octal string
    :param owner: user who owns the program, by name or number
    :param group: group that owns it, by name or number
    :param validate: a command, as a list, that must succeed before statecfg installs a new program; ``{}`` is replaced
        by the path of the program to check
    :param headers: additional headers of the request; values may be secrets
    :param proxy: the URL of a proxy; may be a secret
    :param ca: a file with certificates of authorities, instead of those that the host trusts; with `via: controller`, a
        file on your machine
    :param timeout: seconds for the whole download
    :param max_size: the largest allowed size of what the URL returns, such as ``512M`` or ``2G``
    :param via: which machine fetches the download: `host` or `controller`, which sends only the program, and requires
        a `checksum` with sha256
    :param absent: nothing must be at the path

    In YAML::

        - release_binary: /usr/local/bin/tool
          version: 1.2.0
          url: https://example.org/tool-1.2.0-linux-amd64.tar.gz
          checksum: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
          member: tool-1.2.0/tool
          member_checksum: sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03

    In Python::

        digest = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
        release_binary("/usr/local/bin/jq", url="https://example.org/jq-linux-amd64", checksum=digest)
    """


@release_binary.identity
def identity(attrs: Attrs) -> list[str]:
    """Identify the path, and the file that it links to."""
    return ["path:" + path for path in sorted({attrs["path"], releases.program(attrs)})]


@release_binary.needs
def needs(attrs: Attrs) -> list[str]:
    """Need the directories of the link and of the program, and its owner."""
    found = ["inside:" + path for path in sorted({attrs["path"], releases.program(attrs)})]
    return found + [f"{need}:{attrs[name]}" for need, name in releases.ACCOUNTS if attrs.get(name)]


release_binary.validate(release_rules.check)
release_binary.to_wire(release_rules.to_wire)
release_binary.implemented_by(releases)
