"""Commands, for everything that no other node type covers."""

from __future__ import annotations

from typing import Any, Unpack

from statecfg import (
    AbsolutePath,
    Action,
    Argv,
    HostNode,
    LocalPath,
    Name,
    NodeOptions,
    NoNul,
    Pause,
    Seconds,
    Text,
    UserName,
    WorkingDirectory,
    World,
    node_type,
)
from statecfg.resources.programs import command_rules, commands


@node_type
def command(
    name: Name,
    *,
    argv: Argv | None = None,
    shell: NoNul | None = None,
    script: LocalPath | None = None,
    interpreter: Argv | None = None,
    stdin: Text | None = None,
    creates: AbsolutePath | None = None,
    removes: AbsolutePath | None = None,
    unless: Argv | NoNul | None = None,
    onlyif: Argv | NoNul | None = None,
    always: bool | None = None,
    undo: Argv | NoNul | None = None,
    cwd: WorkingDirectory | None = None,
    user: UserName | None = None,
    env: dict[str, NoNul] | None = None,
    timeout: Seconds = 600.0,
    expect: list[int] | None = None,
    failed_when: dict[str, Any] | None = None,
    retries: int | None = None,
    retry_delay: Pause | list[Pause] | None = None,
    effects: dict[str, Any] | None = None,
    **options: Unpack[NodeOptions],
) -> None:
    """Run a command if its guards say that it is needed.

    The guards are `creates`, `removes`, `unless` and `onlyif`. A command without guards runs in every run, and every
    run reports a change; statecfg warns about it unless it has `always`, `effects` or `restart_on`. If a node in
    `restart_on` changes, the command runs, regardless of its guards. With `restart_on` and without guards and `always`,
    it runs only then. Plans run guard commands as well, so a guard command must not change anything. statecfg cannot
    see in advance what a command changes. It therefore reports what requires the command as `known after` it, unless
    `effects` lists the changes.

    Success: a command fails if its exit status is not in `expect`, if it matches `failed_when`, if a signal ends it, or
    after `timeout`. If `failed_when` lists exit statuses and there is no `expect`, every other status means success.
    The patterns of `failed_when` apply in addition to the exit status.

    Undo: when the node leaves the definition, statecfg runs `undo`. Without `undo`, it only forgets the node. If
    `creates`, `removes` or `unless` showed before the first apply that the command was not needed, its result existed
    already, and statecfg undoes nothing. After `undo`, these guards must say that the command is needed again; this
    confirms that `undo` worked. The host stores no secrets. If `undo` contains a secret, or names a variable of `env`
    that contains one, statecfg takes the secret from the playbook when you destroy that playbook. If the playbook no
    longer contains the secret, statecfg keeps the command and its record, and the run reports this. Any other `undo`
    runs without the variables that contain secrets.

    :param name: what the command is for; reports and requirements use this name
    :param argv: the program and its arguments, as a list; they are not passed through a shell
    :param shell: a script for ``/bin/sh``, instead of `argv`
    :param script: a local script to send and run, instead of `argv`; next to the playbook or in the project's
        ``files/``. Its first line, such as ``#!/bin/bash``, names the program that runs it
    :param interpreter: the program that runs `script`, and its arguments, instead of the one that its first line names
    :param stdin: text for standard input; may contain secrets. `undo` and guards don't receive it
    :param creates: a path; if something exists there, the command is not needed
    :param removes: a path; if nothing exists there, the command is not needed
    :param unless: a command (a list, or a string for the shell); if it succeeds, this command is not needed
    :param onlyif: a command in the same form; if it fails, this command is not needed
    :param always: true: run the command in every apply. It takes no guards then
    :param undo: a command (a list, or a string for the shell) that reverts what this command does; it runs in the same
        directory as the same user, and must end with status 0
    :param cwd: the working directory
    :param user: the user who runs the command
    :param env: additional environment variables; values may be secrets. Secrets must not be in scripts or arguments
    :param timeout: seconds after which statecfg stops the command and everything that it started; for each attempt
    :param expect: exit statuses that mean success; default: 0
    :param failed_when: what else means failure: `exit` is an exit status or a list of them; `stdout` and `stderr` are
        regular expressions (``^`` and ``$`` match at each line) for the last MiB of the output
    :param retries: how often statecfg repeats a command that fails; the report's log shows each attempt
    :param retry_delay: seconds before an attempt is repeated, or a list with the delay before each repetition, whose
        last one applies to all further ones; default: 5
    :param effects: what the command changes: `files` is a list of the paths that it writes; `packages`, `units`,
        `users` and `groups` are true if it may change any of them. An empty map means: nothing that another node reads

    In YAML::

        - command: initialise-database
          argv: [initdb, -D, /srv/db]
          creates: /srv/db/PG_VERSION
          user: postgres
          effects: {files: [/srv/db]}

    In Python::

        aliases = line_in_file("/etc/aliases", line="root: admin@example.org", match="^root:")
        command("rebuild-aliases", argv=["newaliases"], restart_on=[aliases], effects={})
    """


@command.check
def check(node: HostNode, world: World) -> list[Action]:
    """Run the command if its guards or a trigger say that it is needed."""
    if not commands.needed(node, world):
        return []
    commands.require_directory(node.attrs, world)
    return [commands.wanted(node)]


command.identity([])  # a command of this name in another playbook is a different command
command.validate(command_rules.check)
command.to_wire(command_rules.with_script)
command.produces(commands.stdout)
command.drifts(commands.guarded)
command.implemented_by(commands)
