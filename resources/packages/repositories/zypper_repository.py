"""Repositories of packages for zypper."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import Attrs, LocalPath, Name, NodeOptions, NoNul, PublicLine, node_type
from statecfg.resources.packages.repositories import rpm_repositories, rpm_texts, zypper_lists

DIRECTORY = "/etc/zypp/repos.d/"


@node_type
def zypper_repository(
    name: Name,
    *,
    baseurl: list[PublicLine] | None = None,
    metalink: PublicLine | None = None,
    mirrorlist: PublicLine | None = None,
    description: PublicLine | None = None,
    enabled: bool = True,
    gpgcheck: bool = True,
    repo_gpgcheck: bool | None = None,
    key: NoNul | None = None,
    key_source: LocalPath | None = None,
    gpgkey: list[PublicLine] | None = None,
    priority: int | None = None,
    autorefresh: bool | None = None,
    settings: dict[str, PublicLine | int | bool] | None = None,
    fetch: bool | None = None,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Let zypper install packages from a repository. Each repository has its own file in /etc/zypp/repos.d.

    If the file changes, or if zypper has no lists of the repository yet, statecfg fetches the lists of this repository.
    A key is written to /etc/pki/rpm-gpg, and rpm imports it. Packages automatically require the repository.
    If zypper can't work with the file, statecfg restores the former one. The plan fails if another file defines the
    repository differently.

    Undo: statecfg restores the files that had these names before, or removes the repository, and rpm forgets the key if
    the node imported it. Packages that came from the repository stay, unless their own nodes leave the definition. A
    key that the file of another repository names stays accepted.

    :param name: the alias of the repository, and the name of the file without ``.repo``
    :param baseurl: where the repository is; the addresses may contain variables of zypper, such as ``$releasever``
    :param metalink: instead of `baseurl`: the address of a list of mirrors with checksums
    :param mirrorlist: instead of `baseurl`: the address of a list of mirrors
    :param description: its name for people
    :param enabled: false: zypper ignores the repository
    :param gpgcheck: whether zypper checks the signature of the lists, and those of packages if the lists have none
    :param repo_gpgcheck: whether zypper checks the signature of the lists in any case
    :param key: the public key of the signatures, as text (``BEGIN PGP PUBLIC KEY BLOCK``)
    :param key_source: a local file with this key, as text or binary
    :param gpgkey: instead of a key: its addresses. statecfg does not import it, and zypper would ask for confirmation
    :param priority: which repository zypper prefers, from 1 to 99: the lowest number
    :param autorefresh: whether each command of zypper fetches newer lists; statecfg fetches them only with
        `update_cache` of a ``package``
    :param settings: other settings of the repository → value, such as ``keeppackages``
    :param fetch: whether statecfg fetches the lists; by default, if the repository is enabled
    :param absent: there must be no file of this name

    In YAML::

        - zypper_repository: docker
          baseurl: ["https://download.docker.com/linux/sles/$releasever/$basearch/stable"]
          key_source: docker.asc
          autorefresh: true

    In Python::

        zypper_repository("local", baseurl=["dir:///srv/rpm"], gpgcheck=False)
    """


@zypper_repository.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse invalid addresses, keys and settings, and attributes that contradict each other."""
    rpm_texts.check_repository(attrs, rpm_texts.ZYPP_SETTINGS, "zypper(8)")


@zypper_repository.to_wire
def to_wire(node: Any, context: Any) -> Any:
    """Send the content of the files."""
    return rpm_texts.sent(node, context, DIRECTORY, zypp=True)


zypper_repository.check(zypper_lists.check)
rpm_repositories.register(zypper_repository, DIRECTORY)
