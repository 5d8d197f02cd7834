"""The node types, one per file and found by name: `from statecfg.resources import file` imports the node type.

Imports `resources.shared` and the rooms of `remote`, because node types run on hosts.
"""

from __future__ import annotations

# A project's node type may have any name that does not start with an underscore. It becomes a name of this module.
import os as _os
import sys as _sys

from statecfg.remote.graph.above import above as _above

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List

    __path__: List[str]  # type: ignore[no-redef]  # the star import may define it

    # The node types of a project. `statecfg schema --write` makes this module, in projects that have some.
    from statecfg_project import *  # noqa: F403  # the names are the project's

    from statecfg.remote.graph.nodetype import NodeType
    from statecfg.resources._hy import process as process
    from statecfg.resources.acl import acl as acl
    from statecfg.resources.alternative import alternative as alternative
    from statecfg.resources.ansible_module import ansible_module as ansible_module
    from statecfg.resources.apt_pin import apt_pin as apt_pin
    from statecfg.resources.apt_repository import apt_repository as apt_repository
    from statecfg.resources.archive import archive as archive
    from statecfg.resources.assertion import assertion as assertion
    from statecfg.resources.authorized_key import authorized_key as authorized_key
    from statecfg.resources.block_in_file import block_in_file as block_in_file
    from statecfg.resources.ca_certificate import ca_certificate as ca_certificate
    from statecfg.resources.capabilities import capabilities as capabilities
    from statecfg.resources.command import command as command
    from statecfg.resources.compose_project import compose_project as compose_project
    from statecfg.resources.container import container as container
    from statecfg.resources.container_image import container_image as container_image
    from statecfg.resources.cron import cron as cron
    from statecfg.resources.debconf import debconf as debconf
    from statecfg.resources.directory import directory as directory
    from statecfg.resources.diversion import diversion as diversion
    from statecfg.resources.dnf_group import dnf_group as dnf_group
    from statecfg.resources.dnf_module import dnf_module as dnf_module
    from statecfg.resources.dnf_repository import dnf_repository as dnf_repository
    from statecfg.resources.download import download as download
    from statecfg.resources.file import file as file
    from statecfg.resources.filesystem import filesystem as filesystem
    from statecfg.resources.gem import gem as gem
    from statecfg.resources.generate import generate as generate
    from statecfg.resources.git_checkout import git_checkout as git_checkout
    from statecfg.resources.group import group as group
    from statecfg.resources.hard_link import hard_link as hard_link
    from statecfg.resources.host_entry import host_entry as host_entry
    from statecfg.resources.hostname import hostname as hostname
    from statecfg.resources.http_request import http_request as http_request
    from statecfg.resources.ini_key import ini_key as ini_key
    from statecfg.resources.json_key import json_key as json_key
    from statecfg.resources.kernel_module import kernel_module as kernel_module
    from statecfg.resources.known_host import known_host as known_host
    from statecfg.resources.limits import limits as limits
    from statecfg.resources.line_in_file import line_in_file as line_in_file
    from statecfg.resources.locale import locale as locale
    from statecfg.resources.logrotate import logrotate as logrotate
    from statecfg.resources.lvm_logical_volume import lvm_logical_volume as lvm_logical_volume
    from statecfg.resources.lvm_volume_group import lvm_volume_group as lvm_volume_group
    from statecfg.resources.mariadb_database import mariadb_database as mariadb_database
    from statecfg.resources.mariadb_grant import mariadb_grant as mariadb_grant
    from statecfg.resources.mariadb_user import mariadb_user as mariadb_user
    from statecfg.resources.mount import mount as mount
    from statecfg.resources.nftables import nftables as nftables
    from statecfg.resources.npm_package import npm_package as npm_package
    from statecfg.resources.package import package as package
    from statecfg.resources.package_upgrade import package_upgrade as package_upgrade
    from statecfg.resources.pacman_repository import pacman_repository as pacman_repository
    from statecfg.resources.pam import pam as pam
    from statecfg.resources.password_aging import password_aging as password_aging
    from statecfg.resources.postgresql_database import postgresql_database as postgresql_database
    from statecfg.resources.postgresql_extension import postgresql_extension as postgresql_extension
    from statecfg.resources.postgresql_grant import postgresql_grant as postgresql_grant
    from statecfg.resources.postgresql_user import postgresql_user as postgresql_user
    from statecfg.resources.python_venv import python_venv as python_venv
    from statecfg.resources.quadlet import quadlet as quadlet
    from statecfg.resources.reboot import reboot as reboot
    from statecfg.resources.redis_setting import redis_setting as redis_setting
    from statecfg.resources.release_binary import release_binary as release_binary
    from statecfg.resources.remove import remove as remove
    from statecfg.resources.replace import replace as replace
    from statecfg.resources.selinux_boolean import selinux_boolean as selinux_boolean
    from statecfg.resources.selinux_fcontext import selinux_fcontext as selinux_fcontext
    from statecfg.resources.selinux_port import selinux_port as selinux_port
    from statecfg.resources.service import service as service
    from statecfg.resources.ssh_config import ssh_config as ssh_config
    from statecfg.resources.ssh_key import ssh_key as ssh_key
    from statecfg.resources.sshd_config import sshd_config as sshd_config
    from statecfg.resources.sudoers import sudoers as sudoers
    from statecfg.resources.swap import swap as swap
    from statecfg.resources.symlink import symlink as symlink
    from statecfg.resources.sysctl import sysctl as sysctl
    from statecfg.resources.systemd_unit import systemd_unit as systemd_unit
    from statecfg.resources.timezone import timezone as timezone
    from statecfg.resources.tls_certificate import tls_certificate as tls_certificate
    from statecfg.resources.tls_key import tls_key as tls_key
    from statecfg.resources.toml_key import toml_key as toml_key
    from statecfg.resources.ufw import ufw as ufw
    from statecfg.resources.ufw_rule import ufw_rule as ufw_rule
    from statecfg.resources.user import user as user
    from statecfg.resources.wait_for import wait_for as wait_for
    from statecfg.resources.xattr import xattr as xattr
    from statecfg.resources.yaml_key import yaml_key as yaml_key
    from statecfg.resources.zypper_repository import zypper_repository as zypper_repository

SUFFIXES = (".py", ".hy")


class _Resources(type(_sys)):  # type: ignore[misc]  # naming the class of modules takes an import of `types`
    """This package. The name of a submodule refers to the node type of the same name, if the submodule defines one."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, type(_sys)):
            value = getattr(value, name, value)
        type(_sys).__setattr__(self, name, value)


_sys.modules[__name__].__class__ = _Resources


def __getattr__(name: str) -> NodeType[...]:
    if name.startswith("_"):
        raise AttributeError(name)
    node_type: NodeType[...] = _above.load_node_type(name, _sys._getframe(1))
    setattr(_sys.modules[__name__], name, node_type)
    return node_type


def __dir__() -> List[str]:
    return available()


def available() -> List[str]:
    """Return the names of the node types in all directories of resources, sorted, without importing any."""
    return sorted({name for directory in __path__ if _os.path.isdir(directory) for name in available_in(directory)})


def add_directory(directory: str) -> None:
    """Add the node types of a project's `resources/` to the built-in ones.

    :raises InvalidInput: if one has the name of a built-in node type
    """
    directory = _os.path.abspath(directory)
    if not _os.path.isdir(directory) or _os.path.realpath(directory) in map(_os.path.realpath, __path__):
        return
    # In a checkout of statecfg itself, these are the built-in node types, even if another statecfg is installed.
    link = _os.path.join(_os.path.dirname(directory), "statecfg", "resources")
    if _os.path.realpath(link) == _os.path.realpath(directory):
        return
    twice = sorted(set(available()).intersection(available_in(directory)))
    if twice:
        _above.report_twice(twice, directory)
    __path__.append(directory)


def available_in(directory: str) -> List[str]:
    """Return the names of the node types in one directory, sorted."""
    parts = [_os.path.splitext(entry) for entry in _os.listdir(directory)]
    return sorted(stem for stem, suffix in parts if suffix in SUFFIXES and not stem.startswith("_"))
