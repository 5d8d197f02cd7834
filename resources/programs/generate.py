"""Values that a host generates once and keeps: passwords, UUIDs, keys."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal, Unpack

from statecfg import Action, Attrs, CheckError, HostNode, Machine, Name, NodeOptions, Result, World, node_type, op
from statecfg.remote.ledger import state
from statecfg.resources.shared import paths

LENGTHS = {"password": range(12, 129), "key": range(16, 129)}  # characters, and bytes


@node_type
def generate(
    name: Name,
    *,
    kind: Literal["password", "uuid", "key"] = "password",
    length: int | None = None,
    encoding: Literal["hex", "base64"] | None = None,
    **options: Unpack[NodeOptions],
) -> None:
    """Generate a secret value once and keep it on the host.

    `!secret {generate: KIND, name: NAME}`, or `secret(NAME, generate=KIND)` in Python and Hy, declares this node on
    each host whose resources use the secret, and these resources require it. So declare it yourself only to name it in
    `restart_on`. The value never leaves the host. It is in a file of mode 0600 in the state directory, beside the
    ledger, which contains only the file's name. Each playbook has its own values.

    statecfg never replaces a value automatically: if the file is lost, or does not fit `kind`, `length` and `encoding`,
    the node fails. `statecfg secret rotate` generates a new value and updates what contains it. `statecfg secret
    reveal` prints the value.

    Undo: statecfg removes the file. The value is lost then.

    :param name: the name of the secret
    :param kind: ``password`` (letters and digits), ``uuid`` (random, version 4) or ``key`` (random bytes)
    :param length: characters of a password, 12 to 128; bytes of a key, 16 to 128. Default: 32
    :param encoding: how the bytes of a key are written: ``hex`` (default) or ``base64``

    In YAML::

        - generate: database-password
          length: 40

    In Python::

        generate("app-id", kind="uuid")
    """


@generate.identity
def identity(attrs: Attrs) -> list[str]:
    """Identify the file on a host; on the controller, the name."""
    return [f"generated:{attrs.get('id', attrs['name'])}"]


@generate.validate
def contradictions(attrs: Attrs) -> None:
    """Refuse attributes that the kind does not have, and lengths that are too short or too long."""
    kind, length = attrs["kind"], attrs.get("length")
    if attrs.get("encoding") is not None and kind != "key":
        raise ValueError("encoding requires `kind: key`")
    if length is not None and kind not in LENGTHS:
        raise ValueError("length requires `kind: password` or `kind: key`")
    if length is not None and length not in LENGTHS[kind]:
        valid = LENGTHS[kind]
        raise ValueError(f"length is {length}; a {kind} has {valid[0]} to {valid[-1]}")


@op
def make(machine: Machine, path: str, kind: str, length: int | None, encoding: str | None) -> Result:
    """Write a new value."""
    from statecfg.remote.run import generated  # hosts that only remove values don't have it

    machine.mkdir(os.path.dirname(path), 0o700, parents=True)
    return machine.write(path, generated.content(path, kind, length, encoding), mode=0o600)


@generate.check
def check(node: HostNode, world: World) -> list[Action]:
    """Write the value if it does not exist yet, or if the user wants a new one."""
    from statecfg.remote.run import generated

    attrs, path = node.attrs, _path(node.attrs)
    how = [attrs["kind"], attrs.get("length"), attrs.get("encoding")]
    stat, rotates = world.stat(path), bool(node.options.get("rotate"))
    if stat is not None and stat.file_type != "file":
        raise CheckError(f"{path} is not a file: remove it")
    if rotates and not world.acted:
        return [make(path, *how)]
    rotate = f"statecfg secret rotate PLAYBOOK {attrs['name']}"
    if stat is None:
        if node.options.get("made"):
            raise CheckError(f"the value is lost: {path} does not exist; restore it, or make a new one: {rotate}")
        return [make(path, *how)]
    if not generated.fits(world.read(path), *how):
        raise CheckError(f"{path} does not contain a {attrs['kind']} as defined; correct it, or run: {rotate}")
    return [paths.chmod(path, 0o600)] if stat.mode != 0o600 else []


generate.overwrites("the undo removes the value, also if others have changed it: only statecfg reads this file")


@generate.undo
def undo(node: HostNode, memory: Mapping[str, Any], world: World) -> list[Action]:
    """Remove the file."""
    path = _path(node.attrs)
    return [paths.remove(path)] if world.stat(path) is not None else []


def _path(attrs: Attrs) -> str:
    return os.path.join(state.directory(), state.GENERATED, attrs.get("id", attrs["name"]))
