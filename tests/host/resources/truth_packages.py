"""Cases for hosts with dnf, zypper or pacman (see `truth`), which the tests of these package managers run."""

from __future__ import annotations

from pathlib import Path

from statecfg.graph.graph import Graph
from statecfg.resources import (
    dnf_group,
    dnf_module,
    dnf_repository,
    package,
    package_upgrade,
    pacman_repository,
    zypper_repository,
)
from tests.host.resources.truth_case import Case
from tests.lab import Host


def dnf_lists(key: Path) -> Case:
    """Return the case of repositories and modules of dnf.

    :param key: the key of the repository in /srv/second
    """

    def declare(root: str, requires: list[Graph]) -> list[Graph]:
        second = dnf_repository("second", baseurl=["file:///srv/second"], key_source=str(key), requires=requires)
        return [second, dnf_repository("gone", absent=True), dnf_module("shop", stream="1", requires=[second])]

    def drift(host: Host, root: str) -> None:
        host.run(["sed", "-i", "s/gpgcheck=1/gpgcheck=0/", "/etc/yum.repos.d/second.repo"])
        host.write("/etc/yum.repos.d/gone.repo", "[gone]\nname=gone\nbaseurl=file:///srv/gone\nenabled=0\n")
        host.run(["dnf", "-q", "-y", "module", "reset", "shop"])

    def done(host: Host, root: str) -> None:
        host.run(["dnf", "-q", "-y", "module", "reset", "shop"])
        host.run(["sh", "-c", "cd /etc; rm -rf yum.repos.d/second.repo yum.repos.d/gone.repo pki/rpm-gpg"])
        host.run(["sh", "-c", "rm -rf /var/cache/dnf/second-*; rpm -e gpg-pubkey; true"])

    return Case("dnf-lists", declare, drift, done=done)


def _dnf_packages(root: str, requires: list[Graph]) -> list[Graph]:
    extra = package("extra", version="1.0-1", requires=requires)
    return [extra, dnf_group("tools", requires=[extra]), package_upgrade("all", requires=requires)]


def _dnf_bare(host: Host, root: str) -> None:
    host.run(["dnf", "-q", "-y", "install", "worker-1.0"])


def _dnf_drift(host: Host, root: str) -> None:
    host.run(["dnf", "-q", "-y", "group", "remove", "tools"])
    host.run(["rpm", "--upgrade", "--oldpackage", "/srv/rpm/noarch/worker-1.0-1.noarch.rpm"])
    host.run(["rpm", "--erase", "extra"])


def _dnf_done(host: Host, root: str) -> None:
    host.run(["dnf", "-q", "-y", "group", "remove", "tools"])
    host.run(["rpm", "--erase", "extra", "worker"])


DNF_PACKAGES = Case("dnf-packages", _dnf_packages, _dnf_drift, _dnf_bare, done=_dnf_done)


def zypper_lists(key: Path) -> Case:
    """Return the case of repositories of zypper.

    :param key: the key of the repository in /srv/second
    """

    def declare(root: str, requires: list[Graph]) -> list[Graph]:
        second = zypper_repository("second", baseurl=["dir:///srv/second"], key_source=str(key), requires=requires)
        return [second, zypper_repository("gone", absent=True)]

    def drift(host: Host, root: str) -> None:
        host.run(["sed", "-i", "s/gpgcheck=1/gpgcheck=0/", "/etc/zypp/repos.d/second.repo"])
        host.write("/etc/zypp/repos.d/gone.repo", "[gone]\nname=gone\nbaseurl=dir:///srv/gone\nenabled=0\n")

    def done(host: Host, root: str) -> None:
        host.run(["sh", "-c", "cd /etc; rm -rf zypp/repos.d/second.repo zypp/repos.d/gone.repo pki/rpm-gpg"])
        host.run(["sh", "-c", "rm -rf /var/cache/zypp/*/second; rpm -e gpg-pubkey; true"])

    return Case("zypper-lists", declare, drift, done=done)


def _packages(root: str, requires: list[Graph]) -> list[Graph]:
    extra = package("extra", requires=requires)
    return [extra, package("tool-b", requires=[extra]), package_upgrade("all", requires=requires)]


def _zypper_bare(host: Host, root: str) -> None:
    host.run(["zypper", "--non-interactive", "install", "shop=1.0"])


def _zypper_drift(host: Host, root: str) -> None:
    host.run(["rpm", "--upgrade", "--oldpackage", "/srv/rpm/noarch/shop-1.0-1.noarch.rpm"])
    host.run(["rpm", "--erase", "extra"])


def _zypper_done(host: Host, root: str) -> None:
    host.run(["zypper", "--non-interactive", "remove", "--clean-deps", "tool-b", "extra", "shop"])


ZYPPER_PACKAGES = Case("zypper-packages", _packages, _zypper_drift, _zypper_bare, done=_zypper_done)


def _pacman_lists(root: str, requires: list[Graph]) -> list[Graph]:
    signed = ["Optional", "TrustAll"]
    second = pacman_repository("second", servers=["file:///srv/second"], sig_level=signed, requires=requires)
    return [second, pacman_repository("gone", absent=True)]


def _pacman_lists_drift(host: Host, root: str) -> None:
    host.run(["sed", "-i", "s/TrustAll//", "/etc/pacman.d/second.conf"])
    host.write("/etc/pacman.d/gone.conf", "[gone]\nServer = file:///srv/gone\n")


def _pacman_lists_done(host: Host, root: str) -> None:
    host.run(["sh", "-c", "rm -f /etc/pacman.d/* /var/lib/pacman/sync/second.*; sed -i /Include/d /etc/pacman.conf"])


PACMAN_LISTS = Case("pacman-lists", _pacman_lists, _pacman_lists_drift, done=_pacman_lists_done)


def _pacman_bare(host: Host, root: str) -> None:
    host.run(["pacman", "--noconfirm", "-U", "/srv/pacman/tool-a-1.0-1-any.pkg.tar.gz"])


def _pacman_drift(host: Host, root: str) -> None:
    host.run(["pacman", "--noconfirm", "-R", "extra"])
    _pacman_bare(host, root)


def _pacman_done(host: Host, root: str) -> None:
    host.run(["pacman", "--noconfirm", "-Rn", "tool-b", "tool-a", "extra"])


PACMAN_PACKAGES = Case("pacman-packages", _packages, _pacman_drift, _pacman_bare, done=_pacman_done)
