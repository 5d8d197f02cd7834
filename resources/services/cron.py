"""Jobs of cron."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from statecfg import Action, Attrs, HostNode, Line, Name, NodeOptions, PublicLine, UserName, World, node_type
from statecfg.resources.shared import drop_in_texts, drop_ins, files, paths

DIRECTORY = "/etc/cron.d/"


@node_type
def cron(
    name: Name,
    *,
    schedule: PublicLine | None = None,
    command: Line | None = None,
    user: UserName = "root",
    environment: dict[str, Line] | None = None,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Run a command at certain times. The job is in a separate file in /etc/cron.d.

    statecfg checks the times before it contacts a host. cron would end a command at a `%`, so statecfg escapes it. If
    there is an environment, only root may read the file.

    Undo: statecfg restores the file that had this name before, or removes the job.

    :param name: the name of the job and of its file: letters, digits, `_` and `-`
    :param schedule: five fields, such as ``"30 4 * * mon-fri"``, or a word such as ``"@daily"``
    :param command: one line for ``/bin/sh``
    :param user: the user who runs the command
    :param environment: environment variables of the command, such as `MAILTO` or `PATH`; values may be secrets
    :param absent: there must be no job of this name

    In YAML::

        - cron: backup
          schedule: "30 4 * * *"
          command: /usr/local/bin/backup --date "$(date +%F)"
          environment: {MAILTO: admin@example.org}

    In Python::

        cron("renew", schedule="@daily", command="/usr/local/bin/renew", user="deploy")
    """


@cron.needs
def needs(attrs: Attrs) -> list[str]:
    """Need cron, the user and the program."""
    program = str(attrs.get("command") or "").partition(" ")[0]
    return ["package:cron", "user:" + attrs["user"], *(["program:" + program] if program[:1] == "/" else [])]


@cron.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse a name that cron ignores, a missing or invalid schedule, and a secret in the command."""
    paths.refuse_with_absent({**attrs, "user": None}, ("name", "absent"))
    drop_in_texts.check_name(attrs["name"])
    drop_in_texts.check_present(attrs, ("schedule", "command"))
    drop_in_texts.check_cron(attrs)


@cron.to_wire
def to_wire(node: Any) -> Any:
    """Send the content of the file."""
    attrs = node.attrs
    content = None if attrs.get("absent") else drop_in_texts.cron(attrs)
    mode = 0o600 if attrs.get("environment") else 0o644
    path = DIRECTORY + attrs["name"]
    return drop_in_texts.sent(node, path, content, mode, schedule=None, command=None, environment=None)


@cron.check
def check(node: HostNode, nodes: Mapping[str, HostNode], world: World) -> list[Action]:
    """Compare the file with the wanted one, after a check that its user exists."""
    if not node.attrs.get("absent"):
        paths.account(world, "users", node.attrs.get("user"), node, nodes)
    return drop_ins.check(node, nodes, world)


cron.identity(["path:" + DIRECTORY + "{name}"])
cron.implemented_by(files)
