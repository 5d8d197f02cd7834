"""Settings of SSH clients on the host."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import Attrs, Name, NodeOptions, NoNul, PublicLine, node_type
from statecfg.resources.shared import drop_in_texts, files
from statecfg.resources.ssh import ssh_client_files, ssh_settings, ssh_texts

DIRECTORY = "/etc/ssh/ssh_config.d/"


@node_type
def ssh_config(
    name: Name,
    *,
    settings: dict[str, Any] | None = None,
    host: PublicLine | None = None,
    content: NoNul | None = None,
    allow_override: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Manage settings of SSH clients for all users of the host, in a separate file in /etc/ssh/ssh_config.d.

    ssh reads the files in the order of their names, and of each setting it takes the first value that it finds. Files
    of users come before them. If another file of /etc/ssh wins, the node fails and names its line, already in the plan.
    ``ssh -G`` checks each new content on the host before statecfg installs it.

    Undo: statecfg restores the file that had this name before, or removes the file.

    :param name: the name of the file without ``.conf``: letters, digits, `_` and `-`
    :param settings: the settings by name; true and false become ``yes`` and ``no``, and a list one line per value
    :param host: patterns of the servers to which the settings apply, such as ``*.example.org``; default: all
    :param content: the complete content of the file, instead of `settings` and `host`
    :param allow_override: accept that another file of /etc/ssh wins
    :param absent: there must be no file of this name

    In YAML::

        - ssh_config: git
          host: git.example.org
          settings: {User: git, IdentityFile: /etc/ssh/deploy_key, StrictHostKeyChecking: true}

    In Python::

        ssh_config("no-agent", settings={"ForwardAgent": False, "SendEnv": ["LANG", "LC_*"]})
    """


@ssh_config.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse missing, unknown and invalid settings, and attributes that contradict each other."""
    ssh_texts.check(attrs, ssh_texts.CLIENT)
    if attrs.get("host") is not None and attrs.get("settings") is None:
        raise ValueError("host requires settings")


@ssh_config.to_wire
def to_wire(node: Any) -> Any:
    """Send the content of the file."""
    attrs = node.attrs
    content = None if attrs.get("absent") else ssh_texts.text(attrs, "Host %s" % (attrs.get("host") or "*"))
    path, validate = f"{DIRECTORY}{attrs['name']}.conf", ["ssh", "-G", "-F", "{}", "localhost"]
    return drop_in_texts.sent(node, path, content, settings=None, host=None, validate=validate)


ssh_config.identity(["path:" + DIRECTORY + "{name}.conf"])
ssh_config.check(ssh_settings.check_client)
ssh_config.effect(ssh_client_files.effect)
ssh_config.reads_as_code("host", "settings", "content")
ssh_config.implemented_by(files)
