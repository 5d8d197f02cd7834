"""Commands, for everything that no other node type covers."""

from __future__ import annotations

import re

from statecfg.remote.graph.model import ActionSpec, CheckError, Stays
from statecfg.remote.graph.nodetype import node_type
from statecfg.remote.graph.ops import op
from statecfg.remote.machine.world import ANYTHING
from statecfg.resources import _before

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Union

    from typing_extensions import Unpack

    from statecfg.remote.graph.model import Action, Node, Result
    from statecfg.remote.graph.values import (
        AbsolutePath,
        Argv,
        Name,
        NodeOptions,
        Seconds,
        Text,
        UserName,
        WorkingDirectory,
    )
    from statecfg.remote.machine.world import Machine, World

FACETS = ("packages", "units", "users", "groups")
SHELL = "/bin/sh"


@node_type
def command(
    name: Name,
    *,
    argv: Optional[Argv] = None,
    shell: Optional[Text] = None,
    creates: Optional[AbsolutePath] = None,
    removes: Optional[AbsolutePath] = None,
    unless: Optional[Union[Argv, Text]] = None,
    onlyif: Optional[Union[Argv, Text]] = None,
    undo: Optional[Union[Argv, Text]] = None,
    cwd: Optional[WorkingDirectory] = None,
    user: Optional[UserName] = None,
    env: Optional[Dict[str, Text]] = None,
    timeout: Seconds = 600.0,
    expect: Optional[List[int]] = None,
    effects: Optional[Dict[str, Any]] = None,
    **options: Unpack[NodeOptions],
) -> None:
    """Run a command if its guards say that it is needed.

    The guards are `creates`, `removes`, `unless` and `onlyif`. A command without guards runs in every run, and every
    run reports a change. If a node in `restart_on` changes, the command runs, whatever its guards say. With
    `restart_on` and without guards, it runs only then. Plans run guard commands as well, so a guard command must not
    change anything. statecfg cannot see in advance what a command changes. It therefore reports what requires the
    command as `known after` it, unless `effects` lists the changes.

    Undo: when the node leaves the definition, statecfg runs `undo`. Without `undo`, it only forgets the node. If
    `creates`, `removes` or `unless` said before the first apply that the command was not needed, its result existed
    already, and statecfg undoes nothing. After `undo`, these guards must say that the command is needed again; this
    confirms that `undo` worked. The host stores no secrets. If `undo` contains a secret, or names a variable of `env`
    that contains one, statecfg takes the secret from the playbook when you destroy that playbook. If the playbook no
    longer contains the secret, statecfg keeps the command and its record, and the run reports this. Any other `undo`
    runs without the variables that contain secrets.

    :param name: what the command is for; reports and requirements use this name
    :param argv: the program and its arguments, as a list; they are not passed through a shell
    :param shell: a script for ``/bin/sh``, instead of `argv`
    :param creates: a path; if something exists there, the command is not needed
    :param removes: a path; if nothing exists there, the command is not needed
    :param unless: a command (a list, or a string for the shell); if it succeeds, this command is not needed
    :param onlyif: a command in the same form; if it fails, this command is not needed
    :param undo: a command (a list, or a string for the shell) that reverts what this command does; it runs in the same
        directory as the same user, and must end with status 0
    :param cwd: the working directory
    :param user: the user who runs the command
    :param env: additional environment variables; values may be secrets. Secrets must not be in scripts or arguments
    :param timeout: seconds after which statecfg stops the command and everything that it started
    :param expect: exit statuses that mean success; default: 0
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


@op
def run(
    machine: Machine,
    argv: List[str],
    effect: Dict[str, Any],
    cwd: Optional[str] = None,
    user: Optional[str] = None,
    env: Optional[Dict[str, str]] = None,
    timeout: float = 600.0,
    codes: Optional[List[int]] = None,
) -> Result:
    """Run a program to its end."""
    return machine.run(argv, effect, cwd, env, user, timeout=timeout, codes=tuple(codes or (0,)))


@command.claims
def claims(attrs: Dict[str, Any]) -> List[str]:
    """Claim nothing: in another playbook a command of this name is another one."""
    return []


@command.validate
def contradictions(attrs: Dict[str, Any]) -> None:
    """Refuse a command without a program, or with two, and effects that mean nothing."""
    if (attrs.get("argv") is None) == (attrs.get("shell") is None):
        raise ValueError("either argv or shell is needed")
    for name in ("shell", "unless", "onlyif", "undo"):
        if hasattr(attrs.get(name), "reveal"):
            reason = (
                'a secret stands in %s, and every user of the host can read that; put it into env, and write "$NAME"'
            )
            raise ValueError(reason % name)
    effects = attrs.get("effects") or {}
    for key, value in effects.items():
        if key not in ("files", *FACETS):
            raise ValueError("effects has no %s; it has: files, %s" % (key, ", ".join(FACETS)))
        if key == "files":
            if isinstance(value, str) or not all(isinstance(path, str) and path.startswith("/") for path in value):
                raise ValueError("the files of effects are a list of absolute paths")
        elif not isinstance(value, bool):
            raise ValueError("%s of effects is true or false" % key)
    if any(not 0 <= code <= 255 for code in attrs.get("expect") or ()):
        raise ValueError("an exit status is a number from 0 to 255")


@command.check
def check(node: Node, world: World) -> List[Action]:
    """Ask the guards."""
    attrs = node.attrs
    if not needed(node, world):
        return []
    require_directory(attrs, world)
    argv = words(attrs["argv"] if attrs.get("argv") is not None else attrs["shell"])
    options = {name: attrs.get(name) for name in ("cwd", "user", "env")}
    return [run(argv, effect(attrs), timeout=attrs.get("timeout") or 600.0, codes=attrs.get("expect"), **options)]


def needed(node: Node, world: World) -> bool:
    """Return whether the command is to run: a trigger, or its guards, say so."""
    attrs = node.attrs
    if node.triggers and world.triggered_by:
        return True
    guards = lacking(attrs, world)
    if world.acted and not guards:  # it has run, and nothing but its exit status tells that it did its work
        return False
    if attrs.get("onlyif") is not None and all(guards):
        guards.append(succeeds(attrs["onlyif"], attrs, world))
    return all(guards) if guards else not node.triggers


def lacking(attrs: Dict[str, Any], world: World) -> List[bool]:
    """Return for each guard that tells the command's work whether it says that it is not done."""
    guards = []
    if attrs.get("creates") is not None:
        guards.append(world.stat(attrs["creates"]) is None)
    if attrs.get("removes") is not None:
        guards.append(world.stat(attrs["removes"]) is not None)
    if attrs.get("unless") is not None:
        guards.append(not succeeds(attrs["unless"], attrs, world))
    return guards


@command.remember
def remember(node: Node, world: World) -> Dict[str, Any]:
    """Take down whether what the command does was done already."""
    return {"done": not all(lacking(node.attrs, world)) if node.attrs.get("undo") is not None else None}


@command.undo
def undo(node: Node, memory: Mapping[str, Any], world: World) -> ActionSpec:
    """Run what takes the command's work back, where its guards say that it stands."""
    attrs = {**node.attrs, **getattr(node, "given", {})}
    name, left = attrs["name"], []
    if attrs.get("undo") is None:
        return ActionSpec(left=["what the command %s did stays: it has no undo" % name])
    if memory["done"]:
        return ActionSpec(left=["what the command %s is for was there before it: it stays" % name])
    missing = sorted(key for key, value in (attrs.get("env") or {}).items() if _before.masked(value))
    if _before.masked(attrs["undo"]) or any(names(attrs["undo"], variable) for variable in missing):
        text = "kept: the playbook no longer contains the secret that the undo of the command %s needs; define the "
        raise Stays((text + "command as it was and destroy the playbook, or remove its work by hand") % name)
    if missing:
        attrs["env"] = {key: value for key, value in attrs["env"].items() if key not in missing}
        text = "the undo of the command %s runs without %s: the playbook no longer contains that secret"
        left.append(text % (name, ", ".join(missing)))
    if _before.masked(attrs.get("unless")):  # nobody can ask it, and that the command did its work is known
        attrs["unless"] = None
    guards = lacking(attrs, world)
    if world.acted if not guards else all(guards):
        return ActionSpec()
    require_directory(attrs, world)
    given = {option: attrs.get(option) for option in ("cwd", "user", "env")}
    action = run(words(attrs["undo"]), effect(attrs), timeout=attrs.get("timeout") or 600.0, **given)
    return ActionSpec([action], left=left)


def names(command: Union[List[str], str], variable: str) -> bool:
    """Tell whether a command names a variable of its environment."""
    return any(re.search(r"\b%s\b" % re.escape(variable), word) for word in words(command))


def succeeds(guard: Union[List[str], str], attrs: Dict[str, Any], world: World) -> bool:
    """Return whether a guard's command ends with status 0."""
    require_directory(attrs, world)
    given = {name: attrs[name] for name in ("cwd", "user", "env") if attrs.get(name) is not None}
    return world.probe(words(guard), **given).status == 0


def require_directory(attrs: Dict[str, Any], world: World) -> None:
    """Raise CheckError where the directory to run in neither is there nor is coming."""
    cwd = attrs.get("cwd")
    if cwd is not None and world.apparent(cwd) is None and world.settled(cwd):
        raise CheckError("the directory it runs in, cwd %s, does not exist; what makes it? Then require that" % cwd)


def words(command: Union[List[str], str]) -> List[str]:
    """Return the argument list of a command: a text is a script for the shell."""
    return [SHELL, "-c", command] if isinstance(command, str) else list(command)


def effect(attrs: Dict[str, Any]) -> Dict[str, Any]:
    """Return the declared effects as the machine takes them; anything at all where none are declared."""
    declared = attrs.get("effects")
    if declared is None:
        return dict(ANYTHING)
    paths = [*declared.get("files", ()), *([attrs["creates"]] if attrs.get("creates") else [])]
    return {"files": paths, "unknown": [facet for facet in FACETS if declared.get(facet)]}
