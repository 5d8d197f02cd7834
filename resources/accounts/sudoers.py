"""Rules of sudo."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import Attrs, Name, NodeOptions, NoNul, PublicLine, node_type
from statecfg.resources.accounts import sudo_files, sudo_settings
from statecfg.resources.shared import drop_in_texts, files, item_rules, paths

DIRECTORY = "/etc/sudoers.d/"


@node_type
def sudoers(
    name: Name,
    *,
    users: list[PublicLine] | None = None,
    commands: list[PublicLine] | None = None,
    run_as: PublicLine = "ALL",
    password: bool = True,
    content: NoNul | None = None,
    allow_override: bool = False,
    absent: bool = False,
    **options: Unpack[NodeOptions],
) -> None:
    """Allow users to run commands as other users with sudo. The rule is in a separate file in /etc/sudoers.d.

    ``visudo`` checks each new content on the host before statecfg installs it, because one mistake locks all users out
    of sudo. Then it checks the whole configuration; if it is wrong, statecfg restores the former file at once. The host
    needs the package sudo.

    Of several rules for a command, sudo uses the last one. If a later rule wins over one of the node, or if sudo does
    not read the file, the node fails and names the line that wins, already in the plan.

    Undo: statecfg restores the file that had this name before, or removes the rule.

    :param name: the name of the file: letters, digits, `_` and `-`
    :param users: who may run the commands: users, groups as ``%group``, or aliases
    :param commands: the commands with absolute paths, or ``ALL``; sudoers needs a backslash before ``,``, ``:``, ``=``
        and ``#`` in their arguments
    :param run_as: the users as whom the commands may run, such as ``ALL``, ``postgres`` or ``ALL:ALL``
    :param password: false: sudo asks for no password
    :param content: the complete content of the file, instead of the other attributes
    :param allow_override: accept that later rules win, or that sudo does not read the file
    :param absent: there must be no file of this name

    In YAML::

        - sudoers: deploy
          users: [deploy, "%admins"]
          commands: [/usr/bin/systemctl restart shop, /usr/bin/systemctl reload nginx]
          password: false

    In Python::

        sudoers("no-lecture", content="Defaults lecture = never\\n")
    """


@sudoers.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse a name that sudo ignores, and attributes that contradict each other."""
    given = {name: attrs.get(name) for name in ("users", "commands", "content")}
    paths.refuse_with_absent({**given, "absent": attrs.get("absent")}, ("absent",))
    drop_in_texts.check_name(attrs["name"])
    if given["content"] is None:
        drop_in_texts.check_present(attrs, ("users", "commands"))
    elif given["users"] is not None or given["commands"] is not None:
        raise ValueError("content can't be combined with users or commands")
    if any(value is not None and not len(value) for value in given.values()):
        raise ValueError("users, commands and content can't be empty; absent: true removes the file")
    if given["users"] is not None and given["commands"] is not None:
        item_rules.check_sudo_users(given["users"])
        item_rules.check_sudo_commands(given["commands"])
        item_rules.check_run_as(str(attrs.get("run_as") or "ALL"))


@sudoers.to_wire
def to_wire(node: Any) -> Any:
    """Send the content of the file."""
    content = None if node.attrs.get("absent") else drop_in_texts.sudoers(node.attrs)
    gone = {"users": None, "commands": None, "run_as": None, "password": None}
    path = DIRECTORY + node.attrs["name"]
    return drop_in_texts.sent(node, path, content, 0o440, validate=["visudo", "-cf", "{}"], **gone)


sudoers.identity(["path:" + DIRECTORY + "{name}"])
sudoers.needs(["package:sudo"])
sudoers.effect(sudo_files.effect)
sudoers.check(sudo_settings.check)
sudoers.reads_as_code("users", "commands", "run_as", "content")
sudoers.implemented_by(files)
sudoers.logins()
