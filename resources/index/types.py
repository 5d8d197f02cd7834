"""The built-in node types: their packages, and their names for type checkers. Made from the files by script/docs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from statecfg.resources.accounts.authorized_key import authorized_key as authorized_key
    from statecfg.resources.accounts.group import group as group
    from statecfg.resources.accounts.limits import limits as limits
    from statecfg.resources.accounts.pam import pam as pam
    from statecfg.resources.accounts.password_aging import password_aging as password_aging
    from statecfg.resources.accounts.sudoers import sudoers as sudoers
    from statecfg.resources.accounts.user import user as user
    from statecfg.resources.containers.compose_project import compose_project as compose_project
    from statecfg.resources.containers.container import container as container
    from statecfg.resources.containers.container_image import container_image as container_image
    from statecfg.resources.containers.quadlet import quadlet as quadlet
    from statecfg.resources.databases.mariadb.mariadb_database import mariadb_database as mariadb_database
    from statecfg.resources.databases.mariadb.mariadb_grant import mariadb_grant as mariadb_grant
    from statecfg.resources.databases.mariadb.mariadb_user import mariadb_user as mariadb_user
    from statecfg.resources.databases.postgresql.postgresql_database import postgresql_database as postgresql_database
    from statecfg.resources.databases.postgresql.postgresql_extension import (
        postgresql_extension as postgresql_extension,
    )
    from statecfg.resources.databases.postgresql.postgresql_grant import postgresql_grant as postgresql_grant
    from statecfg.resources.databases.postgresql.postgresql_user import postgresql_user as postgresql_user
    from statecfg.resources.databases.redis.redis_setting import redis_setting as redis_setting
    from statecfg.resources.files.acl import acl as acl
    from statecfg.resources.files.archive import archive as archive
    from statecfg.resources.files.capabilities import capabilities as capabilities
    from statecfg.resources.files.directory import directory as directory
    from statecfg.resources.files.downloads.download import download as download
    from statecfg.resources.files.downloads.git_checkout import git_checkout as git_checkout
    from statecfg.resources.files.downloads.release_binary import release_binary as release_binary
    from statecfg.resources.files.file import file as file
    from statecfg.resources.files.hard_link import hard_link as hard_link
    from statecfg.resources.files.remove import remove as remove
    from statecfg.resources.files.symlink import symlink as symlink
    from statecfg.resources.files.xattr import xattr as xattr
    from statecfg.resources.network.host_entry import host_entry as host_entry
    from statecfg.resources.network.hostname import hostname as hostname
    from statecfg.resources.network.nftables import nftables as nftables
    from statecfg.resources.network.ufw import ufw as ufw
    from statecfg.resources.network.ufw_rule import ufw_rule as ufw_rule
    from statecfg.resources.packages.debconf import debconf as debconf
    from statecfg.resources.packages.dnf_group import dnf_group as dnf_group
    from statecfg.resources.packages.dnf_module import dnf_module as dnf_module
    from statecfg.resources.packages.languages.gem import gem as gem
    from statecfg.resources.packages.languages.npm_package import npm_package as npm_package
    from statecfg.resources.packages.languages.python_venv import python_venv as python_venv
    from statecfg.resources.packages.package import package as package
    from statecfg.resources.packages.package_upgrade import package_upgrade as package_upgrade
    from statecfg.resources.packages.repositories.apt_pin import apt_pin as apt_pin
    from statecfg.resources.packages.repositories.apt_repository import apt_repository as apt_repository
    from statecfg.resources.packages.repositories.dnf_repository import dnf_repository as dnf_repository
    from statecfg.resources.packages.repositories.pacman_repository import pacman_repository as pacman_repository
    from statecfg.resources.packages.repositories.zypper_repository import zypper_repository as zypper_repository
    from statecfg.resources.programs.ansible_module import ansible_module as ansible_module
    from statecfg.resources.programs.assertion import assertion as assertion
    from statecfg.resources.programs.command import command as command
    from statecfg.resources.programs.generate import generate as generate
    from statecfg.resources.programs.http_request import http_request as http_request
    from statecfg.resources.programs.wait_for import wait_for as wait_for
    from statecfg.resources.services.cron import cron as cron
    from statecfg.resources.services.logrotate import logrotate as logrotate
    from statecfg.resources.services.service import service as service
    from statecfg.resources.services.systemd_unit import systemd_unit as systemd_unit
    from statecfg.resources.ssh.known_host import known_host as known_host
    from statecfg.resources.ssh.ssh_config import ssh_config as ssh_config
    from statecfg.resources.ssh.ssh_key import ssh_key as ssh_key
    from statecfg.resources.ssh.sshd_config import sshd_config as sshd_config
    from statecfg.resources.storage.filesystem import filesystem as filesystem
    from statecfg.resources.storage.lvm_logical_volume import lvm_logical_volume as lvm_logical_volume
    from statecfg.resources.storage.lvm_volume_group import lvm_volume_group as lvm_volume_group
    from statecfg.resources.storage.mount import mount as mount
    from statecfg.resources.storage.swap import swap as swap
    from statecfg.resources.system.alternative import alternative as alternative
    from statecfg.resources.system.diversion import diversion as diversion
    from statecfg.resources.system.kernel_module import kernel_module as kernel_module
    from statecfg.resources.system.locale import locale as locale
    from statecfg.resources.system.reboot import reboot as reboot
    from statecfg.resources.system.selinux_boolean import selinux_boolean as selinux_boolean
    from statecfg.resources.system.selinux_fcontext import selinux_fcontext as selinux_fcontext
    from statecfg.resources.system.selinux_port import selinux_port as selinux_port
    from statecfg.resources.system.sysctl import sysctl as sysctl
    from statecfg.resources.system.timezone import timezone as timezone
    from statecfg.resources.text.block_in_file import block_in_file as block_in_file
    from statecfg.resources.text.ini_key import ini_key as ini_key
    from statecfg.resources.text.json_key import json_key as json_key
    from statecfg.resources.text.line_in_file import line_in_file as line_in_file
    from statecfg.resources.text.replace import replace as replace
    from statecfg.resources.text.toml_key import toml_key as toml_key
    from statecfg.resources.text.yaml_key import yaml_key as yaml_key
    from statecfg.resources.tls.ca_certificate import ca_certificate as ca_certificate
    from statecfg.resources.tls.tls_certificate import tls_certificate as tls_certificate
    from statecfg.resources.tls.tls_key import tls_key as tls_key

# Node type → the package in `statecfg.resources` that contains its module.
PACKAGES = {
    "acl": "files",
    "alternative": "system",
    "ansible_module": "programs",
    "apt_pin": "packages.repositories",
    "apt_repository": "packages.repositories",
    "archive": "files",
    "assertion": "programs",
    "authorized_key": "accounts",
    "block_in_file": "text",
    "ca_certificate": "tls",
    "capabilities": "files",
    "command": "programs",
    "compose_project": "containers",
    "container": "containers",
    "container_image": "containers",
    "cron": "services",
    "debconf": "packages",
    "directory": "files",
    "diversion": "system",
    "dnf_group": "packages",
    "dnf_module": "packages",
    "dnf_repository": "packages.repositories",
    "download": "files.downloads",
    "file": "files",
    "filesystem": "storage",
    "gem": "packages.languages",
    "generate": "programs",
    "git_checkout": "files.downloads",
    "group": "accounts",
    "hard_link": "files",
    "host_entry": "network",
    "hostname": "network",
    "http_request": "programs",
    "ini_key": "text",
    "json_key": "text",
    "kernel_module": "system",
    "known_host": "ssh",
    "limits": "accounts",
    "line_in_file": "text",
    "locale": "system",
    "logrotate": "services",
    "lvm_logical_volume": "storage",
    "lvm_volume_group": "storage",
    "mariadb_database": "databases.mariadb",
    "mariadb_grant": "databases.mariadb",
    "mariadb_user": "databases.mariadb",
    "mount": "storage",
    "nftables": "network",
    "npm_package": "packages.languages",
    "package": "packages",
    "package_upgrade": "packages",
    "pacman_repository": "packages.repositories",
    "pam": "accounts",
    "password_aging": "accounts",
    "postgresql_database": "databases.postgresql",
    "postgresql_extension": "databases.postgresql",
    "postgresql_grant": "databases.postgresql",
    "postgresql_user": "databases.postgresql",
    "process": "services",
    "python_venv": "packages.languages",
    "quadlet": "containers",
    "reboot": "system",
    "redis_setting": "databases.redis",
    "release_binary": "files.downloads",
    "remove": "files",
    "replace": "text",
    "selinux_boolean": "system",
    "selinux_fcontext": "system",
    "selinux_port": "system",
    "service": "services",
    "ssh_config": "ssh",
    "ssh_key": "ssh",
    "sshd_config": "ssh",
    "sudoers": "accounts",
    "swap": "storage",
    "symlink": "files",
    "sysctl": "system",
    "systemd_unit": "services",
    "timezone": "system",
    "tls_certificate": "tls",
    "tls_key": "tls",
    "toml_key": "text",
    "ufw": "network",
    "ufw_rule": "network",
    "user": "accounts",
    "wait_for": "programs",
    "xattr": "files",
    "yaml_key": "text",
    "zypper_repository": "packages.repositories",
}
