"""Settings of the SSH server."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import Attrs, Name, NodeOptions, NoNul, PublicLine, node_type
from statecfg.resources.shared import drop_in_texts, files
from statecfg.resources.ssh import ssh_files, ssh_settings, ssh_texts

DIRECTORY = "/etc/ssh/sshd_config.d/"


@node_type
def sshd_config(
    name: Name,
    *,
    settings: dict[str, Any] | None = None,
    match: PublicLine | None = None,
    content: NoNul | None = None,
    allow_override: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage settings of the SSH server in a separate file in /etc/ssh/sshd_config.d.

    sshd reads the files in the order of their names, and of each setting it takes the first value that it finds: a name
    such as ``10-hardening`` comes early. If sshd uses another value, the node fails and names the line that wins,
    already in the plan. After each change, ``sshd -t`` checks the whole configuration on the host. If sshd refuses it,
    statecfg restores the former file at once.

    sshd uses new settings after a restart. Declare a ``service: ssh`` with this node in `restart_on`: after the
    restart, statecfg tries a new login, and restores the former settings if it fails.

    Undo: statecfg restores the file that had this name before, or removes the file.

    :param name: the name of the file without ``.conf``: letters, digits, `_` and `-`
    :param settings: the settings by name; true and false become ``yes`` and ``no``, and a list one line per value
    :param match: criteria to which the settings are limited, such as ``User backup``
    :param content: the complete content of the file, instead of `settings` and `match`
    :param allow_override: accept that sshd uses other values
    :param absent: there must be no file of this name

    In YAML::

        - sshd_config: 10-hardening
          settings: {PermitRootLogin: prohibit-password, PasswordAuthentication: false, AllowGroups: [admins, deploy]}
        - sshd_config: 20-backup
          match: User backup
          settings: {ForceCommand: internal-sftp, PermitTTY: false}

    In Python::

        sshd_config("backup", match="User backup", settings={"ForceCommand": "internal-sftp", "PermitTTY": False})
    """


@sshd_config.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse missing, unknown and invalid settings, and attributes that contradict each other."""
    ssh_texts.check(attrs, ssh_texts.SERVER)
    if attrs.get("match") is not None:
        if attrs.get("settings") is None:
            raise ValueError("match requires settings")
        ssh_texts.check_match(attrs["match"])


@sshd_config.to_wire
def to_wire(node: Any) -> Any:
    """Send the content of the file."""
    attrs = node.attrs
    block = f"Match {attrs['match']}" if attrs.get("match") is not None else ""
    content = None if attrs.get("absent") else ssh_texts.text(attrs, block)
    return drop_in_texts.sent(node, f"{DIRECTORY}{attrs['name']}.conf", content, settings=None, match=None)


sshd_config.identity(["path:" + DIRECTORY + "{name}.conf"])
sshd_config.check(ssh_settings.check_server)
sshd_config.effect(ssh_files.effect)
sshd_config.reads_as_code("match", "settings", "content")
sshd_config.implemented_by(files)
