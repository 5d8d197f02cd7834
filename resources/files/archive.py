"""Trees of files that come from an archive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from statecfg import AbsolutePath, Action, Attrs, HostNode, LocalPath, NodeOptions, Owner, OwnerGroup, World, node_type
from statecfg.resources.files import archives
from statecfg.resources.shared import paths


@node_type
def archive(
    path: AbsolutePath,
    *,
    source: LocalPath | None = None,
    host_source: AbsolutePath | None = None,
    strip_components: int = 0,
    owner: Owner | None = None,
    group: OwnerGroup | None = None,
    **options: Unpack[NodeOptions],
) -> None:
    """Unpack an archive into a directory: tar, also compressed with gzip, bzip2 or xz, or zip.

    statecfg compares every file of the archive with the host, and writes only those that are missing or differ. Other
    files in the directory stay. The directory itself must exist. If it has the content of `source` already, statecfg
    does not send the archive. If the archive itself is created by a node of the same run, such as `download`, the files
    are known after that node.

    Files get mode 0755 if they are executable in the archive, otherwise 0644; directories get 0755. Hard links become
    separate files. statecfg refuses archives with names or links that lead out of the directory, also through other
    links, with devices, with more than 50,000 entries or 80,000 headers, or with more than 4 GiB of files. From 128 MiB
    of files on, it also refuses archives that unpack to more than 100 times their size. In a zip, only deflate is
    allowed. It never unpacks an archive as a whole into memory.

    Undo: statecfg removes the files that came from the archive, and the directories in which nothing else is. It
    restores files that were there before (up to 64 MiB).

    :param path: the directory in which to unpack
    :param source: a local archive, next to the playbook or in the project's ``files/``
    :param host_source: an archive on the host, of at most 512 MiB, instead of `source`
    :param strip_components: the number of directories to leave out at the beginning of each name
    :param owner: user who owns everything that is unpacked, by name or number
    :param group: group that owns it, by name or number

    In YAML::

        - archive: /opt/tool
          host_source: /var/cache/tool-1.2.tar.gz
          strip_components: 1

    In Python::

        archive("/srv/site", source="site.zip", owner="www-data")
    """


@archive.identity
def identity(attrs: Attrs) -> list[str]:
    """Identify the archive in its directory, because several archives may be unpacked into one directory."""
    return [f"archive:{attrs['path']}: {attrs.get('source') or attrs.get('host_source')}"]


@archive.owns
def owns(attrs: Attrs) -> list[str]:
    """Own all that is in the directory, if the files of the archive are not known."""
    return [] if attrs.get("tree") else ["inside:" + attrs["path"]]


@archive.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse a node without an archive, or with two."""
    if (attrs.get("source") is None) == (attrs.get("host_source") is None):
        raise ValueError("either source or host_source is required")
    if not 0 <= (attrs.get("strip_components") or 0) <= 100:
        raise ValueError("strip_components is a number from 0 to 100")


@archive.to_wire
def to_wire(node: Any, context: Any) -> Any:
    """Read the names and digests in the archive, so that only a host that lacks a file gets the archive."""
    source = node.attrs.get("source")
    if source is None:
        return node
    content = context.read(node, source)
    try:
        entries = archives.packed(content, node.attrs.get("strip_components") or 0)
    except ValueError as problem:
        raise ValueError(f"{source}: {problem}") from None
    return node.with_attrs(content=content, tree=entries, source=None)


@archive.check
def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare each file of the archive with the host."""
    paths.require_parent(world, node.attrs["path"] + "/any", node, nodes)
    return archives.actions(world, node, nodes)


archive.implemented_by(archives)
