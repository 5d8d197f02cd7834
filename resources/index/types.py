"""The built-in node types: their packages, and their names for type checkers. Made from the files by script/docs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
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

# Node type → the package in `statecfg.resources` that contains its module.
PACKAGES = {
    "acl": "",
    "alternative": "",
    "ansible_module": "",
    "apt_pin": "",
    "apt_repository": "",
    "archive": "",
    "assertion": "",
    "authorized_key": "",
    "block_in_file": "",
    "ca_certificate": "",
    "capabilities": "",
    "command": "",
    "compose_project": "",
    "container": "",
    "container_image": "",
    "cron": "",
    "debconf": "",
    "directory": "",
    "diversion": "",
    "dnf_group": "",
    "dnf_module": "",
    "dnf_repository": "",
    "download": "",
    "file": "",
    "filesystem": "",
    "gem": "",
    "generate": "",
    "git_checkout": "",
    "group": "",
    "hard_link": "",
    "host_entry": "",
    "hostname": "",
    "http_request": "",
    "ini_key": "",
    "json_key": "",
    "kernel_module": "",
    "known_host": "",
    "limits": "",
    "line_in_file": "",
    "locale": "",
    "logrotate": "",
    "lvm_logical_volume": "",
    "lvm_volume_group": "",
    "mariadb_database": "",
    "mariadb_grant": "",
    "mariadb_user": "",
    "mount": "",
    "nftables": "",
    "npm_package": "",
    "package": "",
    "package_upgrade": "",
    "pacman_repository": "",
    "pam": "",
    "password_aging": "",
    "postgresql_database": "",
    "postgresql_extension": "",
    "postgresql_grant": "",
    "postgresql_user": "",
    "process": "",
    "python_venv": "",
    "quadlet": "",
    "reboot": "",
    "redis_setting": "",
    "release_binary": "",
    "remove": "",
    "replace": "",
    "selinux_boolean": "",
    "selinux_fcontext": "",
    "selinux_port": "",
    "service": "",
    "ssh_config": "",
    "ssh_key": "",
    "sshd_config": "",
    "sudoers": "",
    "swap": "",
    "symlink": "",
    "sysctl": "",
    "systemd_unit": "",
    "timezone": "",
    "tls_certificate": "",
    "tls_key": "",
    "toml_key": "",
    "ufw": "",
    "ufw_rule": "",
    "user": "",
    "wait_for": "",
    "xattr": "",
    "yaml_key": "",
    "zypper_repository": "",
}
