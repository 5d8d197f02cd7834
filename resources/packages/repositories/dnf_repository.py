"""Repositories of packages for dnf."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import Attrs, LocalPath, Name, NodeOptions, NoNul, PublicLine, node_type
from statecfg.resources.packages.repositories import dnf_lists, rpm_repositories, rpm_texts

DIRECTORY = "/etc/yum.repos.d/"


@node_type
def dnf_repository(
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
    settings: dict[str, PublicLine | int | bool] | None = None,
    fetch: bool | None = None,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Let dnf install packages from a repository. Each repository has its own file in /etc/yum.repos.d.

    If the file changes, or if dnf has no lists of the repository yet, statecfg fetches the lists of this repository. A
    key is written to /etc/pki/rpm-gpg, and rpm imports it. Packages automatically require the repository.
    If dnf does not accept the file, statecfg restores the former one. The plan fails if another file, which dnf reads
    first, defines the repository differently.

    Undo: statecfg restores the files that had these names before, or removes the repository, and rpm forgets the key if
    the node imported it. Packages that came from the repository stay, unless their own nodes leave the definition. A
    key that the file of another repository names stays accepted.

    :param name: the id of the repository, and the name of the file without ``.repo``
    :param baseurl: where the repository is; the addresses may contain variables of dnf, such as ``$releasever``
    :param metalink: instead of `baseurl`: the address of a list of mirrors with checksums
    :param mirrorlist: instead of `baseurl`: the address of a list of mirrors
    :param description: its name for people
    :param enabled: false: dnf ignores the repository, unless `enable_repositories` of a `package` names it
    :param gpgcheck: whether dnf checks the signatures of packages
    :param repo_gpgcheck: whether dnf checks the signature of the lists
    :param key: the public key that signs the packages, as text (``BEGIN PGP PUBLIC KEY BLOCK``)
    :param key_source: a local file with this key, as text or binary
    :param gpgkey: instead of a key: its addresses. dnf fetches and imports it with the first package
    :param priority: which repository dnf prefers, from 1 to 99: the lowest number
    :param settings: other settings of the repository → value, such as ``excludepkgs``; dnf.conf(5) lists them
    :param fetch: whether statecfg fetches the lists; by default, if the repository is enabled
    :param absent: there must be no file of this name

    In YAML::

        - dnf_repository: docker
          baseurl: ["https://download.docker.com/linux/centos/$releasever/$basearch/stable"]
          key_source: docker.asc

    In Python::

        dnf_repository("local", baseurl=["file:///srv/rpm"], gpgcheck=False)
    """


@dnf_repository.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse invalid addresses, keys and settings, and attributes that contradict each other."""
    rpm_texts.check_repository(attrs, rpm_texts.DNF_SETTINGS, "dnf.conf(5)")


@dnf_repository.to_wire
def to_wire(node: Any, context: Any) -> Any:
    """Send the content of the files."""
    return rpm_texts.sent(node, context, DIRECTORY)


dnf_repository.check(dnf_lists.check)
rpm_repositories.register(dnf_repository, DIRECTORY)
