"""Repositories of packages for apt."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import AbsolutePath, LocalPath, Name, NodeOptions, NoNul, PublicLine, node_type
from statecfg.resources.packages.repositories import apt_lists, apt_sources, apt_texts
from statecfg.resources.shared import drop_in_texts, files

DIRECTORY = "/etc/apt/sources.list.d/"


@node_type
def apt_repository(
    name: Name,
    *,
    uris: list[PublicLine] | None = None,
    suites: list[PublicLine] | None = None,
    components: list[PublicLine] | None = None,
    sources: bool = False,
    architectures: list[Name] | None = None,
    key: NoNul | None = None,
    key_source: LocalPath | None = None,
    signed_by: AbsolutePath | None = None,
    trusted: bool | None = None,
    enabled: bool = True,
    settings: dict[str, PublicLine] | None = None,
    fetch: bool = True,
    allow_override: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Let apt install packages from a repository. The repository is in a separate file, in the format deb822.

    If the file changes, or if apt has no lists of the repository yet, statecfg fetches the lists of this repository.
    It fetches no other lists: `update_cache` of a `package` does that. Packages automatically require the repository.

    Undo: statecfg restores the file that had this name before, or removes the repository. Packages that came from it
    stay, unless their own nodes leave the definition as well.

    :param name: the name of the file without ``.sources``: letters, digits, `_`, `-` and `.`
    :param uris: where the repository is, such as ``https://deb.debian.org/debian``
    :param suites: the suites, such as ``bookworm``; or paths that end with ``/``, for a repository without components
    :param components: the components, such as ``main``
    :param sources: also fetch the lists of source packages
    :param architectures: the architectures; without them, those of the host
    :param key: the public key that signs the repository, as text (``BEGIN PGP PUBLIC KEY BLOCK``). It is part of the
        file, which needs apt 2.4 (Debian 12, Ubuntu 22.04)
    :param key_source: a local file with this key, as text or binary
    :param signed_by: instead of a key: the path of a file on the host that contains it
    :param trusted: true: accept the repository without a valid signature
    :param enabled: false: keep the file, but let apt ignore the repository
    :param settings: other fields of the file → value, such as ``Check-Valid-Until``; sources.list(5) lists them
    :param fetch: false: fetch no lists
    :param allow_override: with `enabled: false`: accept that another file defines the repository, so that apt uses it
    :param absent: there must be no file of this name

    In YAML::

        - apt_repository: docker
          uris: [https://download.docker.com/linux/debian]
          suites: [bookworm]
          components: [stable]
          key_source: docker.asc

    In Python::

        apt_repository("local", uris=["file:/srv/apt"], suites=["./"], trusted=True)
    """


@apt_repository.to_wire
def to_wire(node: Any, context: Any) -> Any:
    """Send the content of the file, and the names of the lists that apt makes for the repository."""
    attrs, path = node.attrs, f"{DIRECTORY}{node.attrs['name']}.sources"
    if attrs.get("absent"):
        return drop_in_texts.sent(node, path, None)
    key = (attrs.get("key") or "").encode()
    if attrs.get("key_source"):
        key = context.read(node, attrs["key_source"]).read()
    gone: dict[str, Any] = dict.fromkeys(apt_texts.WRITTEN)
    lists = apt_texts.lists(attrs) if attrs["enabled"] and attrs["fetch"] else None
    return drop_in_texts.sent(node, path, apt_texts.repository(attrs, key), lists=lists, **gone)


apt_repository.identity(["path:" + DIRECTORY + "{name}.sources"])
apt_repository.needs(["path:{signed_by}"])
apt_repository.validate(apt_texts.check_repository)
apt_repository.check(apt_lists.check)
apt_repository.effect(apt_sources.effect)
apt_repository.implemented_by(files)
