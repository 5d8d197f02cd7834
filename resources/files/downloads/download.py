"""Files whose content comes from a URL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Unpack

from statecfg import (
    AbsolutePath,
    Action,
    Argv,
    HostNode,
    Line,
    Mode,
    NodeOptions,
    Owner,
    OwnerGroup,
    PublicLine,
    Seconds,
    Suffix,
    World,
    node_type,
)
from statecfg.resources.files.downloads import download_rules, downloads, fetched
from statecfg.resources.shared import files, paths


@node_type
def download(
    path: AbsolutePath,
    *,
    url: Line | None = None,
    checksum: PublicLine | None = None,
    mode: Mode | None = None,
    owner: Owner | None = None,
    group: OwnerGroup | None = None,
    validate: Argv | None = None,
    backup: Suffix | None = None,
    headers: dict[str, Line] | None = None,
    proxy: Line | None = None,
    ca: AbsolutePath | None = None,
    timeout: Seconds = 600.0,
    max_size: PublicLine | None = None,
    via: Literal["host", "controller"] = "host",
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage a file whose content comes from a URL. The host fetches it, or your machine does and sends it.

    With `checksum`, the file has exactly this content: statecfg fetches it if the file is missing or differs. Without
    `checksum`, statecfg fetches it only if the file is missing, and then the content stays as it is. A plan fetches
    nothing, so it doesn't notice that a URL is wrong. Nodes that read the file are known after the download.

    With `via: controller`, your machine fetches the content when the first host needs it, also for a plan, which then
    shows the differences. It keeps the content in ``~/.cache/statecfg/downloads``. You can delete this directory at any
    time. The host needs no connection to the server, and gets neither `headers` nor `proxy`.

    statecfg writes to a temporary file in the same directory first. It installs the content in one step, after the
    whole content has arrived and has the right checksum, and `validate` has accepted it. A download for which the file
    system has not enough space fails before it begins; if the server does not tell its size, while 16 MiB are still
    free. Mode, owner, group and access
    lists are those of [file](#file). A redirect from https to http is an error.

    Undo: if the file existed before, statecfg restores its content (up to 64 MiB), mode, owner and group. Otherwise it
    removes the file.

    :param path: the path of the file
    :param url: the URL, with https; with `checksum` also http
    :param checksum: the digest of the content, such as ``sha256:9f86…``; also sha384 and sha512
    :param mode: permission bits as an octal string, such as ``"0644"``
    :param owner: user who owns the file, by name or number
    :param group: group that owns it, by name or number
    :param validate: a command, as a list, that must succeed before statecfg installs new content; ``{}`` is replaced by
        the path of the file to check
    :param backup: suffix of the copy of the old file that statecfg keeps next to the new one when the content changes
    :param headers: additional headers of the request; values may be secrets. The host does not send them to another
        server to which the first one redirects
    :param proxy: the URL of a proxy, such as ``http://proxy.example.org:3128``; may be a secret. Without it, the host
        connects directly, regardless of its environment
    :param ca: a file with certificates of authorities, instead of those that the host trusts; with `via: controller`, a
        file on your machine
    :param timeout: seconds for the whole download
    :param max_size: the largest allowed size of what the URL returns, such as ``512M`` or ``2G``
    :param via: which machine fetches the content: `host` or `controller`, which requires a `checksum` with sha256
    :param absent: the file must not exist

    In YAML::

        - download: /opt/tool.tar.gz
          url: https://example.org/tool-1.2.tar.gz
          checksum: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08

    In Python::

        download("/usr/share/keyrings/example.asc", url="https://example.org/key.asc", mode="0644")
    """


download.identity(paths.path_identity)


@download.to_wire
def to_wire(node: Any, context: Any) -> Any:
    """Give the host only the digest of content that the controller fetches."""
    node = download_rules.to_wire(node)
    attrs = node.attrs
    if attrs.get("via") != "controller":
        return node
    content = fetched.Fetched(attrs["url"], attrs["checksum"].partition(":")[2], dict(attrs))
    return node.with_attrs(content=content, headers=None, proxy=None, ca=None)


@download.check
def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare file type, checksum, mode and owner with the host."""
    attrs, path = node.attrs, node.attrs["path"]
    if not attrs.get("absent"):
        return downloads.check(node, nodes, world)
    stat = paths.look(world, path, determined=attrs.get("checksum") is not None)
    files.check_type(path, stat, True)
    return [paths.remove(path)] if stat is not None else []


download.validate(download_rules.check)
download.produces(files.sha256)
download.implemented_by(files)
download.learn(files.learn_content)
