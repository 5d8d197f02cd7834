"""Files that programs run or read as rules, known by their paths, their modes and their first lines."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Any

# Attributes with text for a file.
TEXTS = frozenset(("block", "content", "key", "line", "replacement", "section", "value"))
SHELL = "shell"  # a shell runs the text: it can be quoted
LINES = "lines"  # a shell runs each line: it can be quoted, but must not end a line
RULES = "rules"  # other programs run it or read it: quotes of a shell protect nothing
DATA = ""
# What follows /etc/. A name matches all that begin with it.
_LINES = ("anacrontab", "cron.d/", "crontab")
_SHELL = (
    "bash", "default/", "dhcp/dhclient-e", "init.d/", "ksh", "profile", "rc", "sysconfig/", "zsh", "X11/Xsession",
    "cron.daily/", "cron.hourly/", "cron.monthly/", "cron.weekly/", "update-motd.d/", "skel/.",
)  # fmt: skip
_RULES = (
    "acpi/", "aliases", "apparmor.d/", "apt/apt.conf", "audit/", "binfmt.d/", "containers/systemd/", "csh", "dbus-1/",
    "doas.conf", "dpkg/", "environment.d/", "fail2ban/", "hosts.allow", "hosts.deny", "incron", "inetd.conf", "init",
    "iptables/", "ld.so", "logrotate", "modprobe.d/", "monit", "network/", "nftables", "pam", "polkit-1/",
    "postgresql/", "rsyslog", "security/", "ssh/authorized", "ssh/ssh_config", "ssh/sshd_config", "ssh/sshrc", "sudo",
    "supervisor", "sysusers.d/", "systemd/", "tmpfiles.d/", "udev/", "xdg/", "xinetd",
)  # fmt: skip
# Patterns: most runs need none of them, so they are compiled when they are first used.
_SYSTEM = (
    r"(?:/usr|/usr/local)?/(?:lib|share)/(?:containers/systemd|dbus-1|initramfs-tools|modprobe\.d|polkit-1|systemd|"
    r"sysusers\.d|tmpfiles\.d|udev)/|/run/(?:containers/systemd|systemd|sysusers\.d|tmpfiles\.d|udev)/|"
    r".*/\.(?:git|config/(?:autostart|containers|environment\.d|fish|git|systemd))/|.*\.git/hooks/|"
    r".*/\.ssh/(?:config|environment|rc$)"
)
_SHELL_NAME = (
    r"\.(?:ba|k|z)sh(?:rc|env)|\.bash_\w+|\.z(?:profile|login|logout)|\.(?:login|logout|profile|xinitrc|xprofile|xsession)|"
    r".*\.(?:ash|bash|dash|ksh|sh|zsh)"
)
_RULES_NAME = (
    r"\.(?:ex|gdb|gem|input|irb|lftp|mail|nano|npm|procmail|psql|pry|screen|sqlite|tc?sh|csh|vim|wget|curl)rc|\.forward|"
    r"\.gdbinit|\.gitconfig|\.my\.cnf|\.tmux\.conf|(?:GNUm|[Mm])akefile|(?:Docker|Container|Jenkins|Vagrant|Proc|Rake)file|"
    r"Gemfile|(?:docker-|podman-)?compose(?:\.[\w-]+)?\.ya?ml|postgresql(?:\.auto)?\.conf|sudoers|authorized_keys2?|"
    r".*\.(?:awk|build|cgi|container|cjs|csh|desktop|fish|hy|image|j2|jinja2?|js|kube|lua|mjs|mk|mount|automount|network|"
    r"nft|path|php|pl|pm|pod|py|rb|rules|scope|sed|service|slice|socket|sql|swap|target|tcl|timer|ts|volume|wsgi)"
)
_FIRST_LINE = r"#![ \t]*(?:\S*/)?(?:env[ \t]+(?:-\S+[ \t]+)*)?(?:\S*/)?(?:ba|da|a|k|mk|z)?sh(?:[ \t]|\n|\r|$)"


def language(attrs: Mapping[str, Any]) -> str:
    """Return the kind of the file that a node writes: `SHELL`, `LINES`, `RULES`, or `DATA`.

    :param attrs: the node's attributes
    """
    content = attrs.get("content")
    if isinstance(content, str) and content.startswith("#!"):
        return SHELL if re.match(_FIRST_LINE, content) else RULES
    path = attrs.get("path")
    return (_of_path(posixpath.normpath(str(path))) if isinstance(path, str) else DATA) or _of_mode(attrs.get("mode"))


def _of_path(path: str) -> str:
    name = posixpath.basename(path)
    below = path[len("/etc/") :] if path.startswith("/etc/") else ""
    if below.startswith(_LINES) or path.startswith(("/var/spool/cron", "/var/spool/anacron")) or name == "crontab":
        return LINES
    if (below and below.startswith(_SHELL)) or re.fullmatch(_SHELL_NAME, name):
        return SHELL
    if (below and below.startswith(_RULES)) or re.match(_SYSTEM, path) or re.fullmatch(_RULES_NAME, name):
        return RULES
    return SHELL if re.search(r"/s?bin/|/libexec/", path) else DATA


def _of_mode(mode: Any) -> str:
    """Return `SHELL` if a mode lets a user run the file."""
    if isinstance(mode, str):
        runs = re.search(r"[+=][rwst]*x", mode) or (mode.isdecimal() and int(mode, 8) & 0o111)
        return SHELL if runs else DATA
    return SHELL if isinstance(mode, int) and mode & 0o111 else DATA
